"""A quantity answers to its name: what a View finds, refuses, keeps, forgets; numbers, arrays, algebra, recording."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import tpmodel
from tpmodel.formula import ops, printers
from tpmodel.planner.evidence.articles import GPU, MODEL, setting
from tpmodel.formula import symbol
from tpmodel.formulas import collectives, memory
from tpmodel.formula.tree import Node, as_node, calls, names, substitute
from tpmodel.formula.view import MODULES, View, Why, formula_of

PACKAGE = Path(tpmodel.__file__).parent
STEP = {  # one decode step, every leaf of it
    "read_bytes": 20e9, "ranks": 2.0, "memory_bytes_per_s": 448e9, "achieved_frac": 0.8, "full_layers": 16.0,
    "kv_heads": 4.0, "head_elements": 256.0, "kv_element_bytes": 1.0, "context_tokens": 8192.0, "state_bytes": 75e6,
    "parameters": 27e9, "tokens": 1.0, "flop_per_s": 47.4e12, "mfu_frac": 0.7, "heads": 24.0,
    "attention_flop_per_s": 47.4e12, "hidden": 5120.0, "element_bytes": 2.0, "layers": 64.0, "link_bytes_per_s": 2.2e9,
    "allreduce_latency_s": 9e-6, "bulk_latency_s": 35e-6, "gap_s": 5e-3, "experts_s": 0.0, "floor_s": 0.0,
    "unhidden_frac": 0.0}
SAME = {"message_bytes": "allreduce_payload_bytes"}
GIVEN = ("read_bytes", "state_bytes")
WANTED = ("pass_s", "decode_tokens_per_s", "bound_frac", "communication_s", "busy_s", "kv_read_s", "pass_overlapped_s")


def step(**more):
    return View(STEP | more, SAME, GIVEN)


def counted(function):
    """The function, and the list of its calls."""
    calls = []
    return (lambda v: calls.append(1) or function(v)), calls


# --- found by name ---------------------------------------------------------------------------------------------------

def test_a_name_is_found_by_its_formula_and_the_formulas_under_it():
    v = step()
    read_s = 20e9 / (2 * 0.8 * 448e9) + (16 * 2 * 2 * 256 * 8192 + 2 * 75e6) / (0.8 * 448e9)
    link_s = 128 * min(9e-6 + 2 * 10240 / 2.2e9, 35e-6 + 10240 / 2.2e9)
    assert v.pass_s == pytest.approx(read_s + link_s + 5e-3, rel=1e-12)
    assert v.decode_tokens_per_s == 1 / v.pass_s


def test_two_names_for_one_thing_are_said_once():
    v = step()
    assert v.message_bytes == v.allreduce_payload_bytes == 10240
    assert v.extended(message_bytes=1).message_bytes == 1, "a value replaces the other name"


def test_each_value_is_computed_once():
    recipe, calls = counted(lambda v: v.hidden * 2)
    v = View({"hidden": 5.0}, {"twice": recipe, "again": lambda v: v.twice + v.twice})
    assert (v.again, v.twice, v.again, len(calls)) == (20, 10, 20, 1)


def test_a_name_that_nothing_gives_says_what_is_held_and_who_asked():
    v = View({"message_bytes": 100, "ranks": 2})
    said = "holds no link_bytes_per_s, and no formula gives it; it holds message_bytes, ranks"
    with pytest.raises(AttributeError, match=said):
        v(collectives.allreduce_s)
    with pytest.raises(AttributeError, match=r"holds no allreduce_latency_s.*\(asked for by communication_s\)"):
        View({"layers": 2, "message_bytes": 1, "ranks": 2, "link_bytes_per_s": 1}).communication_s
    with pytest.raises(TypeError, match="has no parameter layers"):
        v(collectives.allreduce_wire_bytes, layers=2)
    with pytest.raises(AttributeError, match="read only"):
        v.ranks = 3
    assert v(collectives.allreduce_wire_bytes, ranks=4) == 150 and v.ranks == 2, "arguments of one call only"


# --- given -----------------------------------------------------------------------------------------------------------

def test_a_value_beats_its_formula_only_when_declared():
    message = "decode_tokens_per_s is not accepted: a formula gives it"
    with pytest.raises(ValueError, match=message):
        View({"decode_tokens_per_s": 30})
    with pytest.raises(ValueError, match=message):
        View({}, {"decode_tokens_per_s": lambda v: 30})
    with pytest.raises(ValueError, match=message):
        step().extended(decode_tokens_per_s=30)
    declared = View(STEP | {"decode_tokens_per_s": 30.0}, SAME, (*GIVEN, "decode_tokens_per_s"))
    for v in (declared, step().given(decode_tokens_per_s=30.0)):
        assert v.bound_frac == 30 / v.decode_bound_tokens_per_s
        assert v.extended(decode_tokens_per_s=15.0).bound_frac == 15 / v.decode_bound_tokens_per_s, "given stays given"
        assert v.why("decode_tokens_per_s").how == "given" and v.why("decode_tokens_per_s").parts == ()
    assert View({"layers": 2}, {"allreduces": lambda v: v.layers}, ("allreduces",)).allreduces == 2
    assert step().derived(allreduces=lambda v: v.layers).communication_s == step().communication_s / 2


# --- forgetting ------------------------------------------------------------------------------------------------------

def test_extended_forgets_what_depended_on_a_replaced_name_and_keeps_the_rest():
    wide, wides = counted(lambda v: v.hidden * 2)
    long, longs = counted(lambda v: v.context_tokens * 2)
    v = View({"hidden": 5.0, "context_tokens": 7.0}, {"wide": wide, "long": long, "both": lambda v: v.wide + v.long})
    assert v.both == 24 and v.extended(hidden=6.0).both == 26 and v.both == 24
    assert (len(wides), len(longs)) == (2, 1)
    assert v.extended(wide=1.0).both == 15 and len(longs) == 1, "a value in a recipe's place"


def test_a_recipe_that_extends_is_forgotten_with_what_it_read():
    v = View({"hidden": 5.0, "intermediate": 9.0, "tokens": 1.0, "element_bytes": 2.0},
             {"inner": lambda v: v.extended(hidden=v.intermediate).allreduce_payload_bytes})
    assert v.inner == 18 and v.allreduce_payload_bytes == 10
    assert v.extended(intermediate=3.0).inner == 6 and v.extended(element_bytes=1.0).inner == 9
    assert v.extended(tokens=2.0).inner == 36


CHANGED = sorted(set(STEP) - {"ranks", "layers", "full_layers", "kv_heads", "head_elements", "heads"})


@given(st.dictionaries(st.sampled_from(CHANGED), st.floats(0.01, 1.0), min_size=1, max_size=5),
       st.sampled_from(WANTED))
@settings(max_examples=200, deadline=None)
def test_an_extended_view_answers_as_a_new_one(more, asked):
    whole = lambda name: name.endswith("_tokens") or name in ("tokens", "hidden")
    more = {name: float(round(100 * factor) + 1) if whole(name) else STEP[name] * factor
            for name, factor in more.items()}
    old = step()
    for name in WANTED:
        getattr(old, name)
    assert getattr(old.extended(**more), asked) == getattr(step(**more), asked)
    assert getattr(old, asked) == getattr(step(), asked), "the old view is as it was"


# --- rings, and the table of names -----------------------------------------------------------------------------------

def test_a_ring_through_extended_views_is_printed_and_a_nested_question_is_not_one():
    ring = View({"x": 1.0}, {"a": lambda v: v.extended(x=v.x + 1).b, "b": lambda v: v.extended(x=v.x + 1).a})
    with pytest.raises(ValueError, match="a ring of names: b <- a <- b|a ring of names: a <- b <- a"):
        ring.a
    countdown = View({"x": 5.0}, {"a": lambda v: v.extended(x=v.x - 1).a + 1 if v.x > 0 else 0.0})
    assert countdown.a == 5.0


def test_a_ring_of_names_is_printed():
    v = View({}, {"a": lambda v: v.b, "b": lambda v: v.c + 1, "c": "a"})
    with pytest.raises(ValueError, match="a ring of names: a <- b <- c <- a: one of them must be given"):
        v.a
    with pytest.raises(ValueError, match="a ring of names: b <- c <- a <- b"):
        v.b
    assert v.extended(c=1.0).a == 2
    with pytest.raises(ValueError, match="message_bytes <- allreduce_payload_bytes <- hidden <- message_bytes"):
        View({"tokens": 1, "element_bytes": 2}, {"hidden": "message_bytes", **SAME}).message_bytes


def test_the_table_names_every_module_that_holds_formulas():
    holding = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py")
               if re.search(r"^@formula$", path.read_text(), re.M)}
    assert holding == {f"formulas/{module}" for module in MODULES}


ORDERS = ("", "import tpmodel.formulas.passes; ", "import tpmodel.formulas.blocks, tpmodel.formulas.card; ",
          "import tpmodel.planner.evidence.claims; ")


def test_no_answer_depends_on_what_was_imported():
    code = ("from tpmodel.formula.view import View, formula_of; "
            "held = {'message_bytes': 10240.0, 'ranks': 4.0, 'pool_blocks': 9.0, 'request_blocks': 2.0}; "
            "v = View(held, given=['pool_blocks']); "
            "print(v.allreduce_wire_bytes, v.concurrency, v.why('concurrency'), "
            "formula_of('layers'), formula_of('pass_s').__module__)")
    found = {subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, check=True).stdout
             for before in ORDERS}
    assert len(found) == 1 and "15360.0 4.5" in found.pop()


# --- arrays, algebra, recording --------------------------------------------------------------------------------------

@pytest.mark.thorough
@pytest.mark.parametrize("asked", WANTED)
def test_arrays_algebra_and_recording_answer_as_numbers_do(asked):
    ranks, contexts = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.0, 8192.0, 131072.0, 262144.0])
    numbers = [getattr(step(ranks=float(n), context_tokens=float(c)), asked) for n, c in zip(ranks, contexts)]
    assert list(getattr(step(ranks=ranks, context_tokens=contexts), asked) + 0 * ranks) == numbers
    algebra = getattr(View({name: symbol(name) for name in STEP}, SAME, GIVEN), asked)
    tree = getattr(View({name: Node("name", name) for name in STEP}, SAME, GIVEN), asked)
    assert names(substitute(tree, {})) == {str(free) for free in algebra.free_symbols} <= set(STEP)
    for n, c, number in zip(ranks, contexts, numbers):
        at = {symbol(name): value for name, value in (STEP | {"ranks": n, "context_tokens": c}).items()}
        assert float(algebra.subs(at)) == pytest.approx(number, rel=1e-12)


@pytest.mark.browser
def test_what_is_recorded_computes_the_same_to_the_bit_on_the_page(blank):
    recorded = View({name: Node("name", name) for name in STEP}, SAME, GIVEN)
    trees = printers.interned([getattr(recorded, name) for name in WANTED])
    library = printers.javascript_library({f.__name__: f for tree in trees for f in calls(tree)}.values())
    function = printers.javascript_function(["v"], trees, prefix="v.")
    rng = np.random.default_rng(5)
    whole = {"ranks", "layers", "full_layers", "kv_heads", "head_elements", "heads", "hidden", "tokens",
             "context_tokens"}
    drawn = lambda name, value: float(
        np.ceil(value) if name in whole else min(value, 1.0) if name.endswith("_frac") else value)
    views = [{name: drawn(name, value * f)
              for (name, value), f in zip(STEP.items(), rng.uniform(0.1, 1.5, len(STEP)))} for _ in range(200)]
    theirs = blank.evaluate(f"views => {{ const F = {library}; return views.map({function}); }}", views)
    ours = [[getattr(step(**view), name) for name in WANTED] for view in views]
    assert [list(map(float, row)) for row in theirs] == ours


def test_a_curve_hoists_what_does_not_depend_on_its_name():
    recorded = View({name: Node("name", name) for name in STEP}, SAME, GIVEN)
    once = recorded.weight_read_s
    longer = recorded.extended(context_tokens=Node("name", "context_tokens"))
    assert longer.weight_read_s is once, "kept, so computed once"
    text = printers.javascript_curve("context_tokens", [as_node(recorded.pass_s)])
    fixed, moving = text.split("return context_tokens =>")
    assert "context_tokens" not in fixed and "F.weight_read_s" in fixed and "F.communication_s" in fixed
    assert "F.kv_cache_bytes" in moving and "F.weight_read_s" not in moving


# --- why -------------------------------------------------------------------------------------------------------------

def leaves(why):
    return [leaf for part in why.parts for leaf in leaves(part)] if why.parts else [why]


def test_why_is_the_tree_of_quantities_down_to_what_is_held():
    v = step()
    why = v.why("decode_tokens_per_s")
    source = "tpmodel.formulas.decode.decode_tokens_per_s"
    assert (why.value, why.how, why.source) == (v.decode_tokens_per_s, "formula", source)
    assert [part.name for part in why.parts] == ["pass_s"]
    assert [part.name for part in why.parts[0].parts] == ["busy_s", "communication_s", "gap_s"]
    assert {leaf.name for leaf in leaves(why)} == set(STEP)
    assert all(leaf.how == "given" and leaf.value == STEP[leaf.name] for leaf in leaves(why))
    same = v.why("message_bytes")
    assert (same.how, same.source) == ("same as", "allreduce_payload_bytes")
    assert same.parts[0].name == "allreduce_payload_bytes"


def test_why_names_kind_and_source_of_a_number_of_the_catalog():
    v = setting()
    number = GPU.numbers["memory_bytes_per_s"]
    assert v.why("memory_bytes_per_s") == Why(
        "memory_bytes_per_s", GPU.memory_bytes_per_s, number.kind, number.source)
    assert v.why("hidden").how == MODEL.numbers["hidden"].kind
    replaced = Why("hidden", 1.0, "given", "the setting")
    assert v.extended(hidden=1.0).why("hidden") == replaced, "a replaced value has another source"


def test_why_of_a_recipe_is_what_it_read_also_in_a_view_that_it_extends():
    def room(v):
        """Beside the states."""
        pool = v.given(kv_pool_bytes=v.kv_pool_bytes - v.hidden).pool_tokens
        return pool + v(memory.kv_cache_bytes, context_tokens=1.0)

    v = View({"kv_pool_bytes": 100.0, "hidden": 20.0, "kv_bytes_per_token": 8.0}, {"room": room},
             ("kv_pool_bytes", "kv_bytes_per_token"))
    why = v.why("room")
    assert (why.value, why.how, why.source) == (18, "recipe", "Beside the states.")
    assert [(part.name, part.value) for part in why.parts] == [
        ("kv_pool_bytes", 100), ("hidden", 20), ("pool_tokens", 10), ("kv_bytes_per_token", 8)]
    assert [part.value for part in why.parts[2].parts] == [80, 8], "under it, the values of the view that it extended"


def test_ops_are_what_a_recipe_may_use_and_sympy_may_follow():
    v = View({"hidden": symbol("hidden"), "tokens": 3}, {"some": lambda v: ops.maximum(v.hidden, v.tokens)})
    assert v.some == sympy.Max(3, symbol("hidden")) and formula_of("some") is None
