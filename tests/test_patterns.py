"""Patterns of a config: read as Python reads them, in bounded time; what is not read is refused."""

import fnmatch
import re
import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpmodel.planner.shapes.configs import parse_config
from tpmodel.planner.shapes.models import shapes
from tpmodel.planner.shapes.patterns import Name, Pattern, Unread

NAMES = ("model.layers.0.self_attn.q_proj", "layers.12.mlp.experts.0.down_proj", "lm_head", "visual", "", "aab0",
         "ab_b.x", "b.a.b.a.b", "x-y z")
PART = st.sampled_from(["a", "b", "x", r"\.", ".", "[ab]", "[^a]", "[0-9]", "[a-z_]", r"\d", r"\w", r"\W", "model",
                        "_proj", "(a|b)", "(?:ab|)", "(x)?", "(a.*|b_)?", "^", "$", "layers", "|"])
OFTEN = st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?"])


@given(st.lists(st.tuples(PART, OFTEN), min_size=1, max_size=7))
@settings(max_examples=300, deadline=None)
def test_what_is_read_is_read_as_python_does(parts):
    text = "".join(part + often for part, often in parts)
    try:
        mine = Pattern("re:" + text)
        with warnings.catch_warnings(action="ignore"):
            python = re.compile(text)
    except (Unread, re.error):
        return
    assert [mine(Name(name)) for name in NAMES] == [bool(python.match(name)) for name in NAMES]


WILD = st.sampled_from(["*", "?", "[ab]", "[!a]", "[^a]", "[a-c]", "a", "b", ".", "model", "layers", "x", "["])


@given(st.lists(WILD, min_size=1, max_size=7).map("".join))
@settings(max_examples=200, deadline=None)
def test_wildcards_are_read_as_a_shell_does(text):
    mine = Pattern(text)
    assert [mine(Name(name)) for name in NAMES] == [fnmatch.fnmatchcase(name, text) for name in NAMES]


@pytest.mark.parametrize("text", [
    "re:((", "re:a)", "re:[z-a]", "re:(a+)+", "re:(a|b)*", "re:a{2,3}", "re:a**", "re:a*+", "re:*a", r"re:\b",
    r"re:(a)\1", "re:(?i)a", "re:(?<=a)b", "re:" + "a" * 198, "re:" + "(" * 190, "re:[", "re:\\", "re:(?!a)b",
    "re:(?=a)b", "re:^*", "re:$?"])
def test_what_is_not_read_is_refused(text):
    with pytest.raises(Unread):
        Pattern(text)
    said = "a pattern of the quantised modules = .* is not accepted: it must be a name with"
    with pytest.raises(ValueError, match=said):
        parse_config(shapes()["qwen3-8b"] | {"quantization_config": {"quant_method": "fp8", "ignore": [text]}})


@pytest.mark.parametrize("ignore", [
    ["re:.*.*.*.*[x]"] * 200, [f"re:.*.*.*.*[x]{'a' * i}" for i in range(90)],
    ["re:" + ".*x?" * 49] * 9, ["*a" * 99 + "*"] * 50])
def test_no_pattern_runs_away(ignore):
    start = time.process_time()
    parse_config(shapes()["qwen3-32b"] | {"quantization_config": {"quant_method": "fp8", "ignore": ignore}})
    assert time.process_time() - start < 2


def test_patterns_have_a_bound_together():
    many = {"quant_method": "fp8", "ignore": [f"re:.*[x].*{i}" for i in range(400)]}
    with pytest.raises(ValueError, match="parts of the patterns of the quantised modules = .* at most 1000 in all"):
        parse_config(shapes()["qwen3-32b"] | {"quantization_config": many})
