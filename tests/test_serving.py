"""Serving, speculation, what others measured, trust: hand-worked numbers, limits, and tables that can be read."""

import random

import pytest

from tpmodel.book import figures
from tpmodel.catalog.gpus import gpu
from tpmodel.catalog.links import link
from tpmodel.planner.engine.versions import Setting
from tpmodel.planner.plan import one_pass, wire
from tpmodel.planner.plan.placement import place
from tpmodel.planner.shapes.models import find_config
from tpmodel.planner.evidence import cases, checks, measured, statements
from tpmodel.planner.evidence.articles import OVERHEAD, setting
from tpmodel.book.figures import ends, serving
from tpmodel.book.figures.options import AS_COUNTED
from tpmodel.formulas import decode, speculation
from tpmodel.book.live.marks import place as place_of
from tpmodel.book.pages import listings
from tpmodel.book.pages.tables import Words, short
from tpmodel.planner.plan.plan import plan
from tpmodel.formula.view import View

ALARM, DRAFTS, WATERFALL = figures.alarm(), figures.speculation(), figures.why_lower()
PAIR = "qwen3.8-27b-nvfp4", ["rtx-5060-ti-16gb"] * 2, "tp"
ROUND = dict(drafts=2, acceptance_frac=0.5, read_bytes=15e9, draft_bytes=2e9, ranks=2, memory_bytes_per_s=500e9,
             achieved_frac=1, cache_read_bytes=0, linear_s=0, attention_s=0, experts_s=0, floor_s=0,
             unhidden_frac=0, gap_s=1e-3, layers=64, draft_allreduces=3, draft_gap_s=5e-4,
             message_bytes=0, link_bytes_per_s=1e9, allreduce_latency_s=10e-6, bulk_latency_s=10e-6)


def a_round(**more):
    return View(ROUND | more, given=("read_bytes", "cache_read_bytes", "linear_s", "attention_s"))


def test_a_round_by_hand():
    """15 GB read, 2 GB a draft, two cards of 500 GB/s: 15 ms, 2 ms; 128 x 10 us; 3 x 10 us and 0.5 ms of
    waiting a draft; 1 ms of waiting; nothing to carry."""
    v = a_round()
    assert (v.pass_s, v.draft_s) == (pytest.approx(17.28e-3), pytest.approx(2.53e-3))
    assert v.round_s == pytest.approx(22.34e-3) and v.confirmed_tokens_per_s == pytest.approx(1.75 / 22.34e-3)


def test_a_verify_pass_grows_by_its_bytes_alone():
    at = lambda k: a_round(drafts=k, message_bytes=(k + 1) * 10240, link_bytes_per_s=2e9)
    assert at(3).pass_s - at(0).pass_s == pytest.approx(3 * 128 * 10240 / 2e9)
    assert at(0).round_s == at(0).pass_s, "without drafts a round is a decode step"
    assert at(3).draft_allreduce_s == at(0).protocol_allreduce_s, "a draft carries one token"


def test_round_tokens_by_simulation():
    """An independent oracle: draw the drafts."""
    rng = random.Random(5)
    draw = lambda k, a: 1 + next((i for i in range(k) if rng.random() >= a), k)
    mean = sum(draw(4, 0.7) for _ in range(40_000)) / 40_000
    assert speculation.round_tokens(4, 0.7) == pytest.approx(mean, rel=0.01)


def test_the_gap_undoes_the_decode_step():
    v, other = (measured.setting("rtx-4090", key, context_tokens=4096) for key in ("staged", "shm"))
    left_s = decode.unexplained_s(1, 1 / other.pass_s, v.pass_s)
    assert decode.gap_allreduce_s(v.communication_s, left_s, 64) == pytest.approx(other.protocol_allreduce_s, rel=1e-9)
    assert decode.gap_allreduce_s(0.002, decode.unexplained_s(1, 1e6, 0.02), 64) == 0


# --- the alarm -----------------------------------------------------------------------------------

def said(readout, rate, **more):
    return ALARM.shown_texts({"measured_tokens_per_s": rate, "drafts": "0"} | more)[f"readout-{readout}"]


@pytest.mark.parametrize("rate, more, words", [
    ("25", {}, "rings"), ("27", {}, "plausible"), ("43", {}, "plausible"), ("50", {}, "faster than the model"),
    ("60", {}, "beyond the bound"), ("60", {"drafts": "3"}, "plausible"), ("30", {"drafts": "3"}, "rings"),
    ("30", {"drafts": "3", "acceptance_frac": "0.4"}, "plausible")])
def test_the_alarm_says(rate, more, words):
    assert words in said("verdict", rate, **more)


@pytest.mark.parametrize("rate, more, words", [
    ("36", {}, "nothing to explain"), ("33", {}, "engine's wait alone"), ("31.9", {}, "slow link of this kind"),
    ("40", {"transport": "mailbox in host memory", "engine": "NInfer"}, "low share of the bandwidth alone"),
    ("28", {}, "all of them at their slow ends"), ("10", {}, "without CUDA graphs"),
    ("30", {"engine": "NInfer", "transport": "mailbox in host memory"}, "no range explains it"),
    ("30", {"drafts": "3"}, "see first how many drafts are accepted. If so many are"),
    ("45", {"drafts": "3"}, "see first how many drafts are accepted;"),
    ("10", {"tp": "1 GPU"}, "no range explains it")])
def test_the_alarm_names_the_term(rate, more, words):
    assert words in said("gap", rate, **more)


def counted(card, engine, link_key, ranks, context, drafts=0, acceptance=0.0):
    """(low, middle, high) of the one pass that `plan` and `check` call, in tokens/s."""
    config = find_config("qwen3.8-27b-nvfp4")
    placement = place(config, (gpu(card),) * ranks, "tp" if ranks > 1 else "one")
    job = one_pass.decode(Setting(ranks=ranks, kv_dtype="fp8", drafts=drafts), context, drafts=drafts, engine=engine)
    terms = one_pass.terms(config, placement, link(link_key), job)
    return one_pass.rates(terms, (speculation.round_tokens(drafts, acceptance),) * 3)


@pytest.mark.parametrize("seed", range(60))
def test_the_alarm_and_the_waterfall_are_the_one_pass(seed):
    """Any card, engine and link: the low end, the middle and the high end are plan's, and the alarm keeps to them."""
    rng = random.Random(seed)
    (card, key), (engine, named), (way, link_key) = (
        rng.choice(list(table.items())) for table in (ends.CARD_NAMES, ends.ENGINES, ends.TRANSPORTS))
    ranks, drafts, context = (rng.choice(found) for found in ((1, 2, 4), (0, 1, 3), (0, 8192, 131072)))
    acceptance = 0.7
    texts = {"card": card, "engine": engine, "transport": way, "tp": f"{ranks} GPU{'s' * (ranks > 1)}",
             "context_tokens": f"{context}"}
    low, mid, high = counted(key, named, link_key, ranks, context, drafts, acceptance)
    v = ALARM.view(texts | {"drafts": f"{drafts}", "acceptance_frac": f"{acceptance}"})
    found = [at(v).confirmed_tokens_per_s for at in (ends.LOW, ends.MID, ends.HIGH)]
    assert found == pytest.approx([low, mid, high], rel=1e-6), texts
    assert v.confirmed_tokens_per_s == found[1], "as it stands, a view is in the middle"
    if not drafts:
        assert WATERFALL.view(texts).pass_s == pytest.approx(1 / mid, rel=1e-9), "the waterfall ends at the same middle"
    shown = lambda rate: ALARM.shown_texts(
        texts | {"drafts": f"{drafts}", "measured_tokens_per_s": f"{rate:.4f}"})["readout-verdict"]
    assert "rings" not in shown(mid) and "rings" in shown(0.999 * low) and "rings" not in shown(1.001 * low)


def test_the_alarm_is_quiet_for_public_runs_inside_the_range():
    """vLLM without drafts on this pair, an FP8 cache: none of them is suspect."""
    runs = [c for c in cases.cases() if c.setting.startswith("2 × RTX 5060 Ti, TP2, vllm")]
    assert len(runs) >= 3
    assert not any("rings" in said("verdict", f"{c.measured}", context_tokens=f"{c.tokens}") for c in runs)


# --- the waterfall -------------------------------------------------------------------------------

def places(figure, texts):
    """{mark: (left, right) or (x, y)} of the marks that stand inside the axes."""
    view, found = figure.view(texts), {mark.name: mark.parts() for mark in figure.marks}
    found = {name: [float(place_of(part, view)) for part in parts] for name, parts in found.items()}
    return {name: ends[::2] for name, ends in found.items() if len(ends) > 2 or ends[0] >= 0}


@pytest.mark.parametrize("seed", range(20))
def test_the_waterfall_falls_from_the_bound_to_the_model(seed):
    rng = random.Random(seed)
    texts = {c.name: rng.choice(list(c.texts if c.kind == "slider" else c.options)) for c in WATERFALL.controls}
    found, v = places(WATERFALL, texts), WATERFALL.view(texts)
    assert found["bound"] == [0, 1] and v.rate_0 == pytest.approx(v.ranks * v.memory_bytes_per_s / v.read_bytes)
    steps = [found[f"step-{i}"] for i in range(1, 6)]
    assert all(left <= right for left, right in steps) and steps[0][1] == 1, "each term only takes"
    assert all(one[0] == next[1] for one, next in zip(steps, steps[1:])), "each begins where the last one ends"
    assert steps[-1][0] == found["model"][1] and found["model"][0] == 0, "what is left is the model's bar"
    assert found["model"][1] == pytest.approx(v.decode_tokens_per_s / v.rate_0, rel=1e-12)
    assert found["range"][0] < found["model"][1] < found["range"][1]


@pytest.mark.parametrize("texts, expected", [
    ({}, {"D07": 31.7, "D10": 33.5, "D12": 32.3}), ({"engine": "llama.cpp"}, {"D02": 37.1, "D05": 38.3}),
    ({"context_tokens": "131072"}, {}), ({"read_bytes": "27"}, {}), ({"card": "RTX 3090"}, {}),
    ({"card": "RTX 3090", "transport": "peer access, PCIe 5.0 x8"}, {}),  # of cards held to 220 W
    ({"card": "RTX 3090", "tp": "1 GPU"}, {"D105": 36.0}),
    ({"card": "RTX 5060 Ti 16 GB", "engine": "NInfer", "transport": "mailbox in host memory"}, {"D13": 35.73})])
def test_the_dots_are_the_public_runs_of_the_setting(texts, expected):
    found, bound = places(WATERFALL, texts), WATERFALL.view(texts).rate_0
    dots = {name.removeprefix("run-"): ends[0] * bound for name, ends in found.items() if name.startswith("run-")}
    assert dots == {name: pytest.approx(rate) for name, rate in expected.items()}
    said = WATERFALL.shown_texts(texts)["readout-runs"]
    assert said.startswith(f"Public runs of this setting: {len(expected)}")
    ends = [f"{pick(expected.values()):.1f}" for pick in (min, max)] if expected else []
    assert all(end in said for end in ends) and ("from" in said) == bool(expected)


# --- drafts --------------------------------------------------------------------------------------

def test_as_counted_is_what_plan_says():
    plain, drafted = (plan(*PAIR, kv_dtype="fp8", **more)["decode"]["mid"]
                      for more in ({}, {"mtp": 3, "acceptance": 0.7}))
    shown = DRAFTS.shown_texts(DRAFTS.preset(AS_COUNTED))["readout-rate"]
    assert f"{drafted:.1f} tokens/s, {drafted / plain:.2f}×" in shown and f"at {plain:.1f} tokens/s" in shown


def test_drafts_that_are_never_accepted_only_cost():
    rates = lambda v: (v.confirmed_tokens_per_s, serving.undrafted(v).decode_tokens_per_s)
    v = DRAFTS.view({"acceptance_frac": "0", "drafts": "3"})
    confirmed, plain = rates(v)
    assert confirmed < plain
    confirmed, plain = rates(v.extended(acceptance_frac=0.9, draft_bytes=1.0, draft_allreduces=0, gap_s=0,
                                        draft_gap_s=0, link_bytes_per_s=1e15).given(state_bytes=0))
    assert confirmed == pytest.approx(plain * (1 - 0.9**4) / 0.1, rel=1e-6)


# --- what others measured ------------------------------------------------------------------------

def test_a_public_row_by_hand():
    """D38: one RTX 5060 Ti, 14.4 GB and 48 states, read and written, at 448 GB/s x 0.78, 0.88, 0.95; of llama.cpp
    1.6, 0.5, 0.1 ms a step, and 180, 130, 100 thousand cycles of 2.572 GHz a layer."""
    row = {c.id: c for c in cases.cases()}["D38"]
    states = 2 * 48 * (48 * 128 * 128 * 4 + 3 * (2 * 16 + 48) * 128 * 2) / 1e9
    assert (row.low, row.mid, row.high) == tuple(
        pytest.approx(1 / ((14.4 + states) / (448 * frac) + gap), rel=1e-6)
        for frac, gap in ((0.78, 1.6e-3 + 64 * 180 / 2.572e6), (0.88, 0.5e-3 + 64 * 130 / 2.572e6),
                          (0.95, 0.1e-3 + 64 * 100 / 2.572e6)))
    assert row.inside and row.measured == 24.66


def test_predictions_read_no_measured_number(monkeypatch):
    before = [(c.low, c.mid, c.high) for c in cases.cases()]
    changed = [checks.Cells(row | {"tokens_per_s": "1"}) for row in checks.own_table("decode")[0]]
    monkeypatch.setattr(cases, "own_table", lambda kind: (changed, None))
    assert [(c.low, c.mid, c.high) for c in cases.cases.__wrapped__()] == before


def test_two_cards_never_gain_more_than_two():
    for key in ("rtx-5060-ti-16gb", "rtx-4090", "rtx-5090"):
        slow, mid, fast = (measured.speedup(key, "shm", end) for end in (measured.SLOW, measured.MIDDLE, measured.FAST))
        assert 0.9 < slow < mid < fast < 2 and mid > 1  # at the slow end a second RTX 5090 gains nothing
    assert measured.speedup("rtx-5090", "shm") < measured.speedup("rtx-5060-ti-16gb", "shm")


def test_our_h200_pair_is_met():
    """Measured, of a pass of one token: 12.928 ms on one, 8.619 on both; and of 51.2 GB read by both 8.860 ms."""
    share = statements.VERDICTS["a1.scaling_nvlink"][1]()
    assert share == pytest.approx(12.928 / 8.619 / 2, rel=0.025)
    pair = measured.setting("h200", "nvlink-h200", measured.FAST, **statements.OURS)
    assert pair.pass_s == pytest.approx(8.860e-3, rel=0.025)


@pytest.mark.parametrize("figure", (figures.rate_tornado(), figures.room_tornado()), ids=lambda figure: figure.name)
@pytest.mark.parametrize("seed", range(8))
def test_the_tornado_is_sorted_and_stands_around_the_middle(figure, seed):
    rng = random.Random(seed)
    texts = {c.name: rng.choice(list(c.texts if c.kind == "slider" else c.options)) for c in figure.controls}
    v, marks = figure.view(texts), {mark.name: mark.parts() for mark in figure.marks}
    keys = [name.removesuffix("-name") for name in marks if name.endswith("-name")]
    place = lambda name, part: float(place_of(marks[name][part], v))
    assert sorted(getattr(v, f"{key}_row") for key in keys) == list(range(len(keys))), "each has a row of its own"
    down = sorted(keys, key=lambda key: -place(f"{key}-name", 1))
    swings = [getattr(v, f"{key}_high") - getattr(v, f"{key}_low") for key in down]
    assert swings == sorted(swings, reverse=True), "the largest swing stands on top"
    for key in keys:
        low, high = (place(f"{key}-{end}", 2) for end in ("low", "high"))
        assert low <= 0 <= high and place(f"{key}-low", 0) == place(f"{key}-high", 0) == 0
        assert v.middle * (1 + high / 100) == pytest.approx(getattr(v, f"{key}_high"), rel=1e-9)


def test_an_input_of_the_tornado_moves_alone():
    """The start of an all-reduce, by the catalog's link; the overhead, by article 1's own sum."""
    v, numbers = figures.rate_tornado().view(), wire.in_step(link("shm")).numbers
    starts = zip(*(numbers[name].base_range[::-2] for name in ("allreduce_latency_s", "bulk_latency_s")))
    moved = [measured.rate(context_tokens=8192, allreduce_latency_s=start, bulk_latency_s=bulk)
             for start, bulk in starts]
    assert [v.start_low, v.start_high] == pytest.approx(moved, rel=1e-9) and moved[0] < v.middle < moved[1]
    room, most_to_least = figures.room_tornado().view(), OVERHEAD.base_range[::-2]
    assert [room.overhead_low, room.overhead_high] == [
        setting(kv_element_bytes=1, overhead_bytes=overhead).pool_tokens for overhead in most_to_least]


def test_tables():
    table = Words("A < B", ("name", "n"), ((r"\(x < y\)", "1"), ("see https://a.b/c, there", "2")), (1,))
    html = table._repr_html_()
    assert r"\(x &lt; y\)" in html and '<a href="https://a.b/c">a.b/c</a>, there' in html and "A &lt; B" in html
    assert repr(table).splitlines()[2].startswith(r"\(x < y\)")
    with pytest.raises(ValueError, match="3 cells under a head of 2"):
        Words("t", ("a", "b"), (("1", "2", "3"),))
    assert short(2.0) == "2" and short(12345.6) == "12,346" and short(0.12346) == "0.1235"


def test_listings_hold_everything():
    from tpmodel.planner.evidence.claims import claims
    from tpmodel.formula.vocabulary import NAMES

    assert sum(len(t.rows) for t in listings.symbols().tables) == len(NAMES)
    assert sum(len(listings.claims_table(a).rows) for a in ("000", "002")) == len(claims())
    assert listings.counts()["rows"] == len(claims())
    assert repr(listings.sources()) == repr(listings.sources())


def test_the_slow_end_of_a_transport_is_slow_in_both():
    fast, slow = measured.setting(end=measured.FAST), measured.setting(end=measured.SLOW)
    bandwidth, latency = (link("shm").numbers[name].base_range for name in ("link_bytes_per_s", "allreduce_latency_s"))
    latency = [alone * part for alone, part in zip(latency, (0.58, 0.74, 1))]  # inside a graph
    assert (fast.link_bytes_per_s, fast.allreduce_latency_s) == (bandwidth[2], latency[0])
    assert (slow.link_bytes_per_s, slow.allreduce_latency_s) == (bandwidth[0], latency[2])
