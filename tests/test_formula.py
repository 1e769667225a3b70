"""The recorder: what it keeps, what it refuses, and that all forms of a formula agree to the bit."""

import ast
import csv
import json
import math
import pickle
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpmodel.book import figures
from tpmodel.formula import ops, printers
from tpmodel.catalog import assumptions, gpus, hosts, links
from tpmodel.planner.shapes import models
from tpmodel.formula import REGISTRY, Formula, formula, symbol
from tpmodel.formulas import collectives, decode, memory, passes
from tpmodel.book.pages.listings import every_formula
from tpmodel.formula.tree import Node, walk
from tpmodel.formula.vocabulary import DOMAINS, NAMES, check

every_formula()  # loads every module, used or not
FORMULAS = list(REGISTRY.values())


def points(form, count, seed=0):
    """`count` random points inside the domains of a formula's parameters, as lists of floats."""
    rng = np.random.default_rng(seed)
    columns = []
    for name in form.parameters:
        domain = NAMES[name].domain
        if domain.startswith("int"):
            column = np.floor(10 ** rng.uniform(0, 3, count))
        elif domain in ("[0,1]", "(0,1]", "[0,1)"):
            column = rng.uniform(0.01, 0.99, count)
        else:
            column = 10 ** rng.uniform(-6, 12, count)
            column[::17] = np.round(column[::17]) + 1
            if domain == ">=1":
                column += 1
            if domain == "real":
                column *= rng.choice([-1, 1], count)
        columns.append(column)
    return [list(map(float, row)) for row in zip(*columns)]


@pytest.mark.parametrize("form", FORMULAS, ids=lambda f: f.__name__)
def test_javascript_equals_python_to_the_bit(form, blank):
    rows = points(form, 1000)
    library = printers.javascript_library(FORMULAS)
    name = form.__name__
    theirs = blank.evaluate(f"rows => {{ const F = {library}; return rows.map(row => F.{name}(...row)); }}", rows)
    ours = [form(*row) for row in rows]
    assert list(map(float, theirs)) == ours


@pytest.mark.parametrize("form", FORMULAS, ids=lambda f: f.__name__)
def test_arrays_equal_numbers_to_the_bit(form):
    rows = points(form, 300, seed=1)
    array = form(*map(np.array, zip(*rows)))
    assert list(array) == [form(*row) for row in rows]


@pytest.mark.parametrize("form", FORMULAS, ids=lambda f: f.__name__)
def test_sympy_agrees(form):
    for row in points(form, 5, seed=2):
        expression = form.expr(**dict(zip(form.parameters, row)))
        assert float(expression) == pytest.approx(form(*row), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("form", FORMULAS, ids=lambda f: f.__name__)
def test_docstring_names_everything(form):
    for word in (*form.parameters, "returns :", "limits :", "source :", ">>> "):
        assert word in form.__doc__, f"{form.__name__}: docstring does not mention {word}"
    typed = form.__wrapped__.__doc__.split("\n")[0]
    assert form.latex() in form.__doc__
    assert not re.search(r"\$[^$]*=[^$]*\$", typed), "the equation is made, not typed"


# --- units ---------------------------------------------------------------------------------------

PER = {"byte": {"B": 1}, "s": {"s": 1}, "token": {}, "byte/s": {"B": 1, "s": -1}, "token/s": {"s": -1},
       "byte/token": {"B": 1}, "FLOP": {}, "FLOP/s": {"s": -1},
       "document/s": {"s": -1}, "": {}}


def unit_of(node):
    """The unit of a node as powers of byte and second; tokens and FLOP are counts; None for a zero, which fits all."""
    kind = node.kind
    if kind == "number":
        return None if node.value == 0 else {}
    if kind == "name":
        return PER[NAMES[node.value].unit]
    if kind == "call":
        for parameter, arg in zip(node.value.parameters, node.args):
            assert unit_of(arg) in (PER[NAMES[parameter].unit], None), f"{node.value.__name__}({parameter})"
        return PER[NAMES[node.value.__name__].unit]
    if kind in ("*", "/"):
        left, right = (unit_of(arg) or {} for arg in node.args)
        sign = 1 if kind == "*" else -1
        total = {u: left.get(u, 0) + sign * right.get(u, 0) for u in {*left, *right}}
        return {u: power for u, power in total.items() if power}
    args = node.args
    if node.value == "where":
        assert unit_of(args[0].args[0]) == unit_of(args[0].args[1]) or None in map(unit_of, args[0].args)
        args = args[1:]
    if node.value in ("maximum", "minimum"):
        args = [arg for arg in args if arg.kind != "number"]  # a bound has the unit of what it bounds
    units = [unit for unit in map(unit_of, args) if unit is not None]
    assert all(unit == units[0] for unit in units), f"adds or compares {units}"
    return units[0] if units else None


@pytest.mark.parametrize("form", FORMULAS, ids=lambda f: f.__name__)
def test_units(form):
    assert unit_of(form.tree) == PER[NAMES[form.__name__].unit]


def test_the_unit_check_can_fail():
    wrong = Node("name", "message_bytes") * Node("name", "link_bytes_per_s")
    assert unit_of(wrong) != PER["s"]
    with pytest.raises(AssertionError):
        unit_of(Node("name", "message_bytes") + Node("name", "link_latency_s"))


# --- what cannot be recorded ---------------------------------------------------------------------

REFUSED = {
    "if": lambda layers: 1 if layers > 2 else 2,
    "and": lambda layers: layers > 1 and layers,
    "max": lambda layers: max(layers, 1),
    "min": lambda layers: min(1, layers),
    "//": lambda layers: layers // 2,
    "r//": lambda layers: 2 // layers,
    "%": lambda layers: layers % 2,
    "r%": lambda layers: 5 % layers,
    "**": lambda layers: layers**2,
    "r**": lambda layers: 2**layers,
    "abs": lambda layers: abs(layers),
    "int": lambda layers: int(layers),
    "float": lambda layers: float(layers),
    "round": lambda layers: round(layers),
    "round2": lambda layers: round(layers, 2),
    "==": lambda layers: layers == 1,
    "!=": lambda layers: layers != 1,
    "chain": lambda layers: 1 < layers < 3,
    "not": lambda layers: not layers,
    "math.sqrt": lambda layers: math.sqrt(layers),
    "math.floor": lambda layers: math.floor(layers),
    "math.ceil": lambda layers: math.ceil(layers),
    "math.trunc": lambda layers: math.trunc(layers),
    "np.sqrt": lambda layers: np.sqrt(layers),
    "np.maximum": lambda layers: np.maximum(layers, 1),
    "np array": lambda layers: np.array([1.0, 2.0]) * layers,
    "range": lambda layers: sum(range(layers)),
    "iterate": lambda layers: sum(layers),
    "len": lambda layers: len(layers),
    "index": lambda layers: layers[0],
    "[][x]": lambda layers: [1, 2][layers],
    "in": lambda layers: 1 in layers,
    "&": lambda layers: (layers > 1) & (layers < 3),
    "|": lambda layers: (layers > 1) | (layers < 3),
    "~": lambda layers: ~layers,
    "divmod": lambda layers: divmod(layers, 2),
    "<<": lambda layers: layers << 1,
    "@": lambda layers: layers @ layers,
    "bool": lambda layers: layers + True,
    "text": lambda layers: layers + "1",
    "none": lambda layers: None,
    "complex": lambda layers: complex(layers),
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_the_recorder_does_not_know_is_refused_when_defined(body):
    def hidden(layers):
        return body(layers)

    with pytest.raises(TypeError) as error:
        formula(hidden)
    assert str(error.value)
    assert "hidden" not in REGISTRY


def test_names_come_from_the_vocabulary():
    with pytest.raises(NameError, match="'colour' is not in tpmodel/formula/terms.csv"):
        exec("@formula\ndef hidden(colour): return colour", {"formula": formula})
    with pytest.raises(NameError, match="'shade' is not in"):
        exec("@formula\ndef shade(layers): return layers", {"formula": formula})


def test_a_parameter_without_use_a_default_and_a_star_are_refused():
    with pytest.raises(TypeError, match="does not use ranks"):
        exec("@formula\ndef hidden(layers, ranks): return layers", {"formula": formula})
    with pytest.raises(TypeError, match="no defaults"):
        exec("@formula\ndef hidden(layers=1): return layers", {"formula": formula})
    with pytest.raises(TypeError, match="no defaults"):
        exec("@formula\ndef hidden(*layers): return layers", {"formula": formula})


def test_a_zero_denominator_is_refused_when_defined():
    with pytest.raises(TypeError, match="divides by message_bytes"):
        exec("@formula\ndef hidden(message_bytes): return 1 / (2 * message_bytes)", {"formula": formula})


# --- bad numbers ---------------------------------------------------------------------------------

BAD = [-1.0, float("nan"), float("inf"), "20", None, True, [1.0], 1j, 10**400, np.array(["a"]), np.array([]),
       np.array([1.0, -1.0]), np.array([1.0, np.nan]), np.array([True])]


@pytest.mark.parametrize("bad", BAD, ids=lambda b: repr(b)[:20])
def test_bad_numbers_are_named(bad):
    with pytest.raises(ValueError) as error:
        collectives.allreduce_s(message_bytes=1, ranks=2, link_bytes_per_s=1, allreduce_latency_s=bad)
    message = str(error.value)
    assert message.startswith("allreduce_latency_s [s] = ") and "it must be a finite number >= 0" in message
    assert "\n" not in message and len(message) < 250


def test_zero_where_it_divides_is_named():
    said = r"link_bytes_per_s \[byte/s\] = 0 is not accepted.*must be a finite number > 0"
    with pytest.raises(ValueError, match=said):
        collectives.allreduce_s(1, 2, 0, 0)
    with pytest.raises(ValueError, match=r"ranks = 1.5 is not accepted.*whole number >= 1"):
        collectives.allreduce_wire_bytes(1, 1.5)
    with pytest.raises(ValueError, match=r"utilisation_frac = 1.01 .*above 0, at most 1"):
        memory.budget_bytes(1, 1.01)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"allreduce_wire_bytes: shapes.*message_bytes \(3,\), ranks \(4,\)"):
        collectives.allreduce_wire_bytes(np.ones(3), np.ones(4))


def test_missing_and_unknown_arguments_are_named():
    with pytest.raises(TypeError, match="allreduce_wire_bytes needs ranks"):
        collectives.allreduce_wire_bytes(1)
    with pytest.raises(TypeError, match="no free parameter rank"):
        collectives.allreduce_wire_bytes(1, rank=2)
    with pytest.raises(TypeError, match="takes 2 values"):
        collectives.allreduce_wire_bytes(1, 2, 3)


def test_large_integers_do_not_overflow():
    tokens = np.array([2**40], dtype=np.int64)
    assert memory.kv_cache_bytes(tokens, 2**40)[0] == 2.0**80


# --- ops, View, printing -------------------------------------------------------------------------

@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_ops_agree_between_numbers_and_arrays(a, b):
    pair = np.array([a]), np.array([b])
    assert ops.maximum(a, b) == ops.maximum(*pair)[0] == max(a, b)
    assert ops.minimum(a, b) == ops.minimum(*pair)[0] == min(a, b)
    assert ops.floor(a) == ops.floor(pair[0])[0] and ops.ceil(a) == ops.ceil(pair[0])[0]
    assert ops.where(a < b, a, b) == ops.where(pair[0] < pair[1], *pair)[0]


POWERS = [(a, n) for a in (0.0, 0.5, 1.0, 1.7, 0.83, 0.999, -0.3, 12.25) for n in (0, 1, 2, 3, 7, 16, 64)]


def test_power_is_the_same_product_everywhere(blank):
    """To the bit in numbers, arrays and JavaScript; SymPy's powers round once: to the bit where nothing is rounded."""
    numbers = [ops.power(a, n) for a, n in POWERS]
    for (a, n), number in zip(POWERS, numbers):
        by_hand = 1.0
        for _ in range(n):
            by_hand *= a
        assert number == by_hand and type(number) is float
        algebra = float(ops.power(symbol("acceptance_frac"), n).subs(symbol("acceptance_frac"), a)) if n else 1.0
        assert algebra == (number if a in (0.0, 0.5, 1.0, 12.25) and n < 8 else pytest.approx(number, rel=1e-13))
    bases, counts = (np.array(column, float) for column in zip(*POWERS))
    assert list(ops.power(bases, counts)) == numbers
    assert list(ops.power(bases, 3.0)) == [ops.power(a, 3.0) for a in bases]
    assert list(ops.power(0.83, counts)) == [ops.power(0.83, n) for n in counts]
    function = printers.javascript_function(["a", "n"], [ops.power(Node("name", "a"), Node("name", "n"))], single=True)
    library = printers.javascript_library([])
    theirs = blank.evaluate(
        f"rows => {{ const F = {library}; return rows.map(([a, n]) => ({function})(a, n)); }}", POWERS)
    assert list(map(float, theirs)) == numbers


def test_formula_objects_pickle_and_show_their_doctests():
    assert pickle.loads(pickle.dumps(passes.pass_s)) is passes.pass_s
    written = passes.pass_s.__wrapped__.__doc__.splitlines()
    assert isinstance(passes.pass_s, Formula) and set(written) <= set(passes.pass_s.__doc__.splitlines())


N = lambda name: Node("name", name)


@pytest.mark.parametrize("tree, latex, javascript", [
    (N("layers") - (N("hidden") - N("ranks")), r"L - \left(H - N\right)", "layers - (hidden - ranks)"),
    (N("layers") - N("hidden") - N("ranks"), "L - H - N", "layers - hidden - ranks"),
    (N("layers") * 2, r"L \cdot 2", "layers * 2"),
    (2 * (N("ranks") - 1) / N("ranks"), r"\frac{2 \, \left(N - 1\right)}{N}", "2 * (ranks - 1) / ranks"),
    (N("layers") / (N("hidden") * N("ranks")), r"\frac{L}{H \, N}", "layers / (hidden * ranks)"),
    (N("layers") * (N("hidden") * N("ranks")), r"L \, H \, N", "layers * (hidden * ranks)"),
    (-(N("layers") + 1), r"-\left(L + 1\right)", "-(layers + 1)"),
    (N("layers") + -2.5, "L + -2.5", "layers + -2.5"),
    (N("layers") * 1e-6, r"L \cdot 10^{-6}", "layers * 1e-06"),
    (N("layers") / 2**30, r"\frac{L}{\mathrm{GiB}}", "layers / 1073741824"),
    (ops.ceil(N("layers") / 2), r"\left\lceil \frac{L}{2} \right\rceil", "Math.ceil(layers / 2)"),
])
def test_printers(tree, latex, javascript):
    assert printers.latex(tree) == latex
    assert printers.javascript_expression(tree) == javascript


def test_a_value_used_twice_is_computed_once():
    twice = N("layers") * N("hidden")
    assert printers.javascript_function(["layers", "hidden"], [twice + twice], single=True) == (
        "(layers, hidden) => { const $0 = layers * hidden; return $0 + $0; }")


def test_latex_of_a_call_lists_only_what_differs():
    assert passes.pass_s.latex() == r"t = t_b + t_{\mathrm{comm}} + t_g"
    assert r"t_w\left(\eta = 1\right)" in decode.decode_bound_tokens_per_s.latex()
    assert r"t_w" not in decode.decode_bound_tokens_per_s.latex("all")


def test_every_row_of_the_vocabulary_is_whole_and_stands_once():
    table = (resources.files("tpmodel.formula") / "terms.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(table.splitlines()))
    assert len(rows) == len(NAMES) and [row["name"] for row in rows] == list(NAMES)
    assert all(set(row) == {"name", "symbol", "unit", "domain", "theme", "meaning"} for row in rows)
    assert all(row["symbol"] and row["theme"] and row["meaning"] and row["domain"] in DOMAINS for row in rows)


def test_every_name_of_the_vocabulary_is_used():
    """A term that nothing uses is dead: no formula, no parameter, no figure, no number of the catalog."""
    used = {f.__name__ for f in FORMULAS} | {p for f in FORMULAS for p in f.parameters}
    for entry in (*gpus.gpus().values(), *hosts.hosts().values(), *links.links().values(), *models.models().values(),
                  *assumptions.assumptions().values()):
        used |= set(entry.numbers)
    for make in figures.ALL:
        for nodes in make().recorded.values():
            used |= {node.value for tree in nodes for node in walk(tree) if node.kind == "name"}
    assert set(NAMES) - used == set()


def spoken(node):
    """The names that a piece of code reads, and those in its texts: in a template, or alone as in "pass_s/MS"."""
    for part in ast.walk(node):
        yield from (part.id,) if isinstance(part, ast.Name) else (part.attr,) if isinstance(part, ast.Attribute) else ()
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from (*re.findall(r"\{(\w+)", part.value), part.value.partition("/")[0])


def test_every_formula_is_used():
    """Outside itself: by another formula, a figure, the planner, a notebook."""
    root = Path(__file__).resolve().parents[1]
    cells = [cell for path in root.glob("notebooks/*.ipynb")
             for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    code = [path.read_text() for path in root.glob("tpmodel/**/*.py")] + ["".join(cell["source"]) for cell in cells]
    used = {name for text in code for node in ast.parse(text).body
            for name in spoken(node) if name != getattr(node, "name", "")}
    assert [form.__name__ for form in FORMULAS if form.__name__ not in used] == []


def test_check_keeps_ints_exact():
    assert check("tokens", 2**53) == 2.0**53
