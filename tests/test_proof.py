"""Whole against split, as the chapter shows it, and where the split stops being exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ranks import property_test

from tpmodel.ranks.group import Call, Group, columns
from tpmodel.ranks.limits import Bf16Group, bf16, bias_on_every_rank, refusal, swiglu_of_partial_sums
from tpmodel.ranks.linear import row_parallel, swiglu, swiglu_naive_a, swiglu_naive_b, swiglu_naive_b_scatter
from tpmodel.ranks.mixers import gated_delta_net, gqa_attention, transformer_block
from tpmodel.ranks.proof import (
    TOLERANCE, compare, distance, formula_bytes, kv_kept_bytes, kv_table, ledger, sweep, table,
)
from tpmodel.ranks.weights import normal, random_attention, random_block, random_delta_net, random_swiglu

HIDDEN = 64
X = 2 * normal(4, HIDDEN, seed=1)
FFN = random_swiglu(HIDDEN, 128, seed=2)
ATTENTION = random_attention(HIDDEN, heads=16, kv_heads=4, width=8, seed=3)
DELTA_NET = random_delta_net(HIDDEN, key_heads=8, value_heads=16, key_width=4, value_width=4, taps=4, seed=4)
RUNS = [
    *((way, FFN) for way in (swiglu, swiglu_naive_a, swiglu_naive_b, swiglu_naive_b_scatter)),
    (gqa_attention, ATTENTION),
    (gated_delta_net, DELTA_NET),
    (transformer_block, random_block(ATTENTION, HIDDEN, 128, seed=5)),
    (transformer_block, random_block(DELTA_NET, HIDDEN, 128, seed=6)),
]


@pytest.mark.parametrize(("layer", "weights"), RUNS)
def test_split_equals_whole_and_counted_equals_formula(layer, weights):
    for run in sweep(layer, X, weights):
        assert run.error <= TOLERANCE and run.equal == "yes" and run.layer == layer.__name__
        assert run.sent_bytes == min(run.group.wire_bytes()) == pytest.approx(run.formula_bytes, rel=1e-12)
        assert run.steps == sum(call.steps for call in run.group.calls)


def test_a_wrong_split_is_seen():
    """swiglu_of_partial_sums is right on one rank, where nothing is partial, and far off on more."""
    assert compare(swiglu_of_partial_sums, X, FFN, 1).equal == "yes"
    for ranks in (2, 4, 8):
        run = compare(swiglu_of_partial_sums, X, FFN, ranks)
        assert run.error > 0.1 and run.equal.startswith("off by ")


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_bias_added_on_every_rank_arrives_ranks_times(ranks):
    weight, bias = normal(HIDDEN, 5, seed=2), 1 + np.arange(5.0)
    wrong = bias_on_every_rank(columns(X, ranks), weight, Group(ranks), bias)
    right = row_parallel(columns(X, ranks), weight, Group(ranks), bias)
    assert np.allclose(wrong - right, (ranks - 1) * bias, rtol=1e-10)


def test_formulas_know_no_send():
    assert formula_bytes(Call("all-gather", "", 12, (8, 8, 8), 2), ranks=3) == 8
    with pytest.raises(KeyError):
        formula_bytes(Call("send", "", 12, (12, 0), 1), ranks=2)


def test_refusal_is_a_text_and_empty_where_the_split_works():
    said = refusal(gqa_attention, X, ATTENTION, 3)
    assert said == "heads=16 does not divide over ranks=3; accepted is a multiple of 3"
    assert refusal(gqa_attention, X, ATTENTION, 2) == ""


def test_the_kv_cache_of_a_rank_stops_shrinking_at_one_head():
    whole = 2 * 4 * 8 * len(X) * 2
    kept = [kv_kept_bytes(X, ATTENTION, ranks) for ranks in (1, 2, 4, 8)]
    assert kept == [(whole,), (whole // 2,) * 2, (whole // 4,) * 4, (whole // 4,) * 8]
    assert kv_table(X, ATTENTION, (2, 8)).splitlines()[1:] == [
        "    2  0 1 | 2 3                                  256             512",
        "    8  0 | 0 | 1 | 1 | 2 | 2 | 3 | 3              128           1,024",
    ]


@property_test
@given(st.floats(-1e30, 1e30))
def test_bf16_is_the_nearest_of_its_grid(x):
    """Seven bits behind the leading one: the grid's step is 2**-7 of the power of two below."""
    rounded = float(bf16(x))
    assert float(bf16(rounded)) == rounded
    assert abs(rounded - x) <= 2.0**-8 * abs(x) * (1 + 2**-20) + 2.0**-134


def test_bf16_ties_go_to_even():
    assert bf16(np.array([257.0, 259.0, -257.0, 256.5, 257.5])).tolist() == [256, 260, -256, 256, 258]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_in_bf16_whole_and_split_differ_but_are_about_as_good(ranks):
    exact = swiglu(X, FFN, Group(1))
    whole, split = swiglu(X, FFN, Bf16Group(1)), swiglu(X, FFN, Bf16Group(ranks))
    assert 0 < distance(split, whole) < 2**-6
    assert distance(split, exact) < 3 * distance(whole, exact)


def test_a_table_of_nothing_is_its_head():
    assert ledger(compare(swiglu, X, FFN, 1)).split()[:2] == ["layer", "collective"]


def test_tables_have_a_line_a_run_and_a_line_a_collective():
    runs = sweep(swiglu_naive_a, X, FFN, (1, 2))
    assert table(*runs).splitlines() == [
        "layer           ranks  collectives  each rank sends  by formula  equal",
        "swiglu_naive_a      1            0                0           0  yes",
        "swiglu_naive_a      2            2              768         768  yes",
    ]
    assert ledger(*runs).splitlines() == [
        "layer           collective  of            payload  each rank sends  by formula  ring steps",
        "swiglu_naive_a  all-gather  intermediate    1,024              512         512           1",
        "swiglu_naive_a  all-gather  hidden            512              256         256           1",
    ]
