"""What times a prompt: ranges measured apart, swaps in pairs, cards that add at half the rate, links not said, fits."""

import csv
import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpmodel.catalog.gpus import gpu
from tpmodel.catalog.links import link
from tpmodel.planner.evidence import checks, checks_prefill
from tpmodel.planner.plan import apart, assume, one_pass, places, wire

ROOT = Path(__file__).resolve().parents[1]
ENDS = st.tuples(*[st.floats(0.01, 1e3)] * 3).map(lambda three: tuple(sorted(three, reverse=True)))
NAMES = [name for names in apart.SHARED for name in names]
PAIR = (gpu("rtx-5060-ti-16gb"),) * 2


@given(st.dictionaries(st.sampled_from(NAMES), ENDS, min_size=1), st.floats(1, 1e6))
def test_a_prompt_is_no_further_out_than_with_all_at_their_worst_and_no_nearer_than_one_alone(terms, tokens):
    low, middle, high = apart.rates(terms, tokens)
    worst, centre, best = one_pass.rates(terms, (tokens,) * 3)
    assert middle == pytest.approx(centre)
    assert worst * (1 - 1e-6) <= low <= middle * (1 + 1e-6) and middle * (1 - 1e-6) <= high <= best * (1 + 1e-6)
    for ends in terms.values():
        alone = tokens / (sum(one[1] for one in terms.values()) + ends[0] - ends[1])
        assert low <= alone * (1 + 1e-6)


def test_terms_that_one_number_moves_are_added_and_those_measured_apart_are_not():
    one = {"weight read": (3, 1, 1), "cache read": (3, 1, 1)}
    assert apart.rates(one, 1)[0] == pytest.approx(1 / 6), "all of it: one fraction of the bandwidth"
    two = {"linear layers": (3, 1, 1), "attention": (3, 1, 1)}
    assert apart.rates(two, 1)[0] == pytest.approx(1 / (2 + 2 / 3**0.5 * 8**0.5))
    assert set(one_pass.WORK + one_pass.SENT) | {"engine's wait"} == set(NAMES), "each term of a prompt has its part"


@pytest.mark.parametrize("ranks, swaps", [(2, 1), (3, 3), (4, 2), (5, 4), (6, 4), (7, 4), (8, 3), (16, 4)])
def test_swaps_in_pairs_add_up_every_tensor(ranks, swaps):
    """Run it: those beyond a power of two give theirs to another first, and get the sum back last."""
    held, even, steps = [{gpu} for gpu in range(ranks)], 2 ** (ranks.bit_length() - 1), 0
    if even < ranks:
        held, steps = [held[i] | held[i + even] if i + even < ranks else held[i] for i in range(even)], 1
    apart_by = even // 2
    while apart_by:
        held, steps, apart_by = [held[i] | held[i ^ apart_by] for i in range(even)], steps + 1, apart_by // 2
    steps += even < ranks
    assert all(one == set(range(ranks)) for one in held) and steps == swaps == wire.exchanges(ranks)


def test_llama_cpp_swaps_from_three_cards_on_and_may_have_nccl():
    way = places.link_at("shm", places.place("desktop", "pcie4-x8", ()))
    pairs = wire.of_engine(way, "pairs", 4)
    by_hand = 2 * (17e-6 + 2 * 1e6 / 6e9)  # twice, in 32 bits, copies of PCIe 4.0 x8
    assert wire.allreduce_s(pairs, 1e6, 4, 1) == pytest.approx(by_hand)
    assert wire.allreduce_s(pairs, 1e6, 4, 2) <= wire.allreduce_s(way, 1e6, 4, 2)
    assert wire.of_engine(way, "pairs", 2) is way and wire.of_engine(way, None, 4) is way
    oneshot = link("oneshot-pcie5-x16")
    assert wire.of_engine(oneshot, "pairs", 4) is oneshot, "an engine's own kernel stays"
    slow = wire.at_end(pairs, 0)
    assert wire.allreduce_s(slow, 1e6, 4, 1) == pytest.approx(wire.allreduce_s(pairs, 1e6, 4, 0))


def test_a_card_that_adds_at_half_the_rate_reaches_it_nearly_whole():
    reach = lambda key, kernel: assume.mfu_number(gpu(key), kernel).value
    assert {key: assume.adds(gpu(key)) for key in ("rtx-3090", "rtx-2080-ti", "h200")} == {
        "rtx-3090": "half", "rtx-2080-ti": "half", "h200": "whole"}
    for kernel in ("bf16", "marlin", "fp8"):
        assert reach("rtx-5090", kernel) > reach("l40s", kernel), kernel
    assert reach("rtx-5090", "fp4") == reach("b200", "fp4"), "FP4 has no such half"
    assert reach("h200", "bf16") == 0.722, "what was measured on a card counts first"
    keeps = [[assume.grouped(gpu(key), kernel, 1) for kernel in ("fp4", "marlin")] for key in ("rtx-5090", "b200")]
    assert keeps == [[0.2, 1], [1, 1]], "of experts in FP4 such a card multiplies a fifth as fast"


def test_a_link_that_is_not_said_is_a_plans_too_and_holds_every_transport():
    here = places.place(None, None, PAIR)
    found = places.chosen("pcie-unknown", here, PAIR, link).numbers["link_bytes_per_s"].base_range
    kinds = [places.link_at(kind, here).numbers["link_bytes_per_s"].base_range for kind in ("shm", "p2p")]
    assert found[0] == min(ends[0] for ends in kinds) and found[2] == max(ends[2] for ends in kinds)
    assert found[1] == pytest.approx(0.37 * 31.51e9, rel=1e-3), "a card of PCIe 5.0, on a host as new"
    old = places.chosen("pcie-unknown", places.place(None, None, (gpu("rtx-3090"),) * 2), (), link)
    assert old.link_bytes_per_s == 3.9e9
    told = places.chosen("pcie-unknown", places.place(None, "pcie3-x8", PAIR), PAIR, link)
    assert told.numbers["link_bytes_per_s"].base_range[2] < 8e9, "no more than the slot"


def test_a_prompt_that_meets_a_full_cache_says_so():
    line = next(line for line in checks.own_table("prefill")[0] if line["id"] == "F25")
    with_it, without = (checks_prefill.predict(checks.Cells(line | {"kv_depth_tokens": depth}))[0][1]
                        for depth in ("99000", ""))
    assert abs(with_it / float(line["tokens_per_s"]) - 1) < 0.1 < without / float(line["tokens_per_s"]) - 1


def test_the_table_of_rows_left_out_is_what_its_script_makes_of_the_rows():
    """The catalog's numbers lie among what the fits choose, or within 3 % of it."""
    script = runpy.run_path(str(ROOT / "benchmarks" / "left_out.py"))
    lines, chosen = script["tables"]()
    with open(script["FILE"], encoding="utf-8", newline="") as file:
        stored = list(csv.DictReader(file))
    assert [{name: str(cell) for name, cell in line.items()} for line in lines] == stored
    whole = {line["kind"]: line for line in stored if line["source"] == "all"}
    assert float(whole["prefill"]["left_out_frac"]) < 0.25 and float(whole["decode"]["left_out_frac"]) < 0.15
    assert all(float(line["off_frac"]) <= float(line["left_out_frac"]) for line in whole.values())
    outside = {name for _, name, catalog, _, least, most in chosen if not 0.97 * least <= catalog <= 1.03 * most}
    assert not outside
