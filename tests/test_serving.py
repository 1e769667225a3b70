"""Serving, speculation, what others measured, trust: hand-worked numbers, limits, and tables that can be read."""

import random

import pytest

from tpmodel import figures
from tpmodel.catalog.links import link
from tpmodel.evidence import cases, checks, measured, statements, trust
from tpmodel.figures import serving
from tpmodel.formulas import decode, speculation
from tpmodel.live import listings
from tpmodel.live.tables import Words, short


def test_a_round_by_hand():
    """15 GB read, 2 GB a draft, two cards of 500 GB/s: 15 ms, 2 ms; 128 x 10 us; 3 x 10 us a draft; nothing to carry."""
    verify = speculation.verify_s(2, 15e9, 2, 500e9, 1, 16384, 0, 128, 0, 1e9, 10e-6)
    draft = speculation.draft_s(2e9, 2, 500e9, 1, 3, 0, 1e9, 10e-6)
    assert (verify, draft) == (pytest.approx(16.28e-3), pytest.approx(2.03e-3))
    whole = speculation.round_s(verify, 2, draft, 1e-3)
    assert whole == pytest.approx(21.34e-3)
    assert speculation.confirmed_tokens_per_s(speculation.round_tokens(2, 0.5), whole) == pytest.approx(1.75 / 21.34e-3)


def test_a_verify_pass_grows_by_its_bytes_alone():
    call = lambda k: speculation.verify_s(k, 15e9, 2, 500e9, 1, 16384, 0, 128, 10240, 2e9, 10e-6)
    assert call(3) - call(0) == pytest.approx(3 * 128 * 10240 / 2e9)
    assert call(0) == decode.decode_s(15e9, 2, 500e9, 1, 16384, 0, 128, 10240, 2e9, 10e-6)


def test_round_tokens_by_simulation():
    """An independent oracle: draw the drafts."""
    rng = random.Random(5)
    draw = lambda k, a: 1 + next((i for i in range(k) if rng.random() >= a), k)
    mean = sum(draw(4, 0.7) for _ in range(40_000)) / 40_000
    assert speculation.round_tokens(4, 0.7) == pytest.approx(mean, rel=0.01)


def test_the_gap_undoes_the_decode_step():
    v = measured.setting("rtx-4090", "staged", context_tokens=4096)
    step = v(decode.decode_s)
    from tpmodel.formulas.collectives import allreduce_s
    again = v(decode.gap_allreduce_s, round_tokens=1, decode_tokens_per_s=1 / step,
              weight_read_s=v(decode.weight_read_s), kv_read_s=v(decode.kv_read_s))
    assert again == pytest.approx(v(allreduce_s), rel=1e-9)
    assert decode.gap_allreduce_s(1, 1e6, 0.02, 0, 64) == 0


def test_the_alarm_does_not_blame_what_the_reads_explain():
    said = figures.alarm().shown_texts({"achieved_frac": "0.5"})
    assert "explains it all" in said["readout-ratio"] and "nothing to explain" in said["readout-gap"]


@pytest.mark.parametrize("rate, tokens, words", [("30", "1", "suspect"), ("40", "1", "plausible"), ("60", "1", "beyond the bound"), ("60", "1.5", "plausible")])
def test_the_alarm_says(rate, tokens, words):
    assert words in figures.alarm().shown_texts({"decode_tokens_per_s": rate, "round_tokens": tokens})["readout-ratio"]


def test_the_alarm_names_the_transport():
    said = lambda rate, **more: figures.alarm().shown_texts({"decode_tokens_per_s": rate, **more})["readout-gap"]
    assert "NCCL through host memory" in said("40") and "more than a link takes" in said("20")
    assert "nothing to explain" in said("50") and "nothing to explain" in said("60", tp="1 GPU")
    one = figures.alarm().shown_texts({"decode_tokens_per_s": "10", "tp": "1 GPU"})
    assert "one GPU makes no all-reduce" in one["readout-gap"] and "µs" not in one["readout-gap"]
    assert "suspect" in one["readout-ratio"] and "link" not in one["readout-ratio"]


def test_drafts_that_are_never_accepted_only_cost():
    v = figures.speculation().view({"acceptance_frac": "0", "drafts": "3"})
    assert serving.confirmed(v) < serving.plain(v)
    free = v.extended(acceptance_frac=0.9, draft_bytes=1.0, draft_allreduces=0, round_overhead_s=0, link_bytes_per_s=1e15)
    assert serving.confirmed(free) == pytest.approx(serving.plain(free) * (1 - 0.9**4) / 0.1, rel=1e-6)


def test_a_public_row_by_hand():
    """D38: one RTX 5060 Ti, 14.4 GB: 14.4 / (448 GB/s x 0.7, 0.8, 0.9) and llama.cpp's 3.4, 1.6, 0.3 ms."""
    row = {c.id: c for c in cases.cases()}["D38"]
    assert (row.low, row.mid, row.high) == tuple(
        pytest.approx(1 / (14.4 / (448 * frac) + gap)) for frac, gap in ((0.7, 3.4e-3), (0.8, 1.6e-3), (0.9, 0.3e-3)))
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
    """Measured: the step without all-reduces 7.639 ms, with them 8.860 ms, 51.2 GB read by both."""
    share = statements.VERDICTS["a1.scaling_nvlink"][1]()
    assert share == pytest.approx(7.639 / 8.860, rel=0.01)


def test_swings_are_sorted_and_start_from_the_middle():
    for swings in (trust.decode_swings(), trust.context_swings()):
        assert [s.size for s in swings] == sorted((s.size for s in swings), reverse=True)
    latency = next(s for s in trust.decode_swings() if s.input.startswith("latency"))
    low, middle, high = link("shm").numbers["allreduce_latency_s"].base_range
    assert latency.answers[0] > measured.rate() > latency.answers[1]
    assert latency.answers == (measured.rate(allreduce_latency_s=low), measured.rate(allreduce_latency_s=high))


def test_tables():
    table = Words("A < B", ("name", "n"), ((r"\(x < y\)", "1"), ("see https://a.b/c, there", "2")), (1,))
    html = table._repr_html_()
    assert r"\(x &lt; y\)" in html and '<a href="https://a.b/c">a.b/c</a>, there' in html and "A &lt; B" in html
    assert repr(table).splitlines()[2].startswith(r"\(x < y\)")
    with pytest.raises(ValueError, match="3 cells under a head of 2"):
        Words("t", ("a", "b"), (("1", "2", "3"),))
    assert short(2.0) == "2" and short(12345.6) == "12,346" and short(0.12346) == "0.1235"


def test_listings_hold_everything():
    from tpmodel.evidence.claims import claims
    from tpmodel.vocabulary import NAMES

    assert sum(len(t.rows) for t in listings.symbols().tables) == len(NAMES)
    assert sum(len(listings.claims_table(a).rows) for a in ("000", "002")) == len(claims())
    assert listings.counts()["rows"] == len(claims())
    assert repr(listings.sources()) == repr(listings.sources())


def test_the_slow_end_of_a_transport_is_slow_in_both():
    fast, slow = measured.setting(end=measured.FAST), measured.setting(end=measured.SLOW)
    bandwidth, latency = (link("shm").numbers[name].base_range for name in ("link_bytes_per_s", "allreduce_latency_s"))
    assert (fast.link_bytes_per_s, fast.allreduce_latency_s) == (bandwidth[2], latency[0])
    assert (slow.link_bytes_per_s, slow.allreduce_latency_s) == (bandwidth[0], latency[2])
