"""One card and one prompt: numbers worked by hand, limits, and the same sums done another way."""

import math

import numpy as np
import pytest
import sympy

from tpmodel.book import figures
from tpmodel.planner.evidence.articles import GPU, MODEL
from tpmodel.catalog.links import link
from tpmodel.planner.evidence.prompts import points, prompt
from tpmodel.book.figures.options import AS_COUNTED, DRIVER
from tpmodel.book.figures.prefill import decode
from tpmodel.formula import symbol
from tpmodel.formulas import card, collectives, passes as one, prefill
from tpmodel.planner.plan.plan import plan

CARD, MESSAGE, LENGTH = figures.card_memory(), figures.message_time(), figures.prompt_time()
GIB = 2**30


def test_the_mtp_layer_counted_matrix_by_matrix():
    shapes = [(10240, 5120), (5120, 2 * 24 * 256), (5120, 4 * 256), (5120, 4 * 256), (24 * 256, 5120),
              (5120, 17408), (5120, 17408), (17408, 5120)]
    by_hand = sum(rows * columns for rows, columns in shapes) + 2 * 5120  # two norms
    assert card.mtp_parameters(5120, 17408, 24, 4, 256) == by_hand
    assert by_hand < MODEL.idle_parameters, "the vision tower is idle too"


def test_the_articles_card_by_hand():
    v = CARD.view()
    expected = 0.92 * 16 * GIB - 10e9 - 1.2 * GIB - 262144 * 16 * 2 * 2 * 256 - 48 * 24 * 128 * 128 * 4
    assert v.left_bytes == pytest.approx(expected, abs=1)
    assert CARD.view({"card": DRIVER}).left_bytes - v.left_bytes == pytest.approx(0.92 * (15.48 - 16) * 2**30, abs=1)


@pytest.mark.parametrize("settings", [
    {}, {"mtp_layer": "BF16 layer, 3 drafts"}, {"tp": "8 GPUs"}, {"build_bytes": "28"}])
def test_what_fits_leaves_nothing_for_one_more_token(settings):
    v = CARD.view(settings)
    full = v.extended(context_tokens=math.floor(v.room_tokens))
    assert 0 <= full.left_bytes < v.kv_bytes_per_token


def test_drafts_cost_a_state_each_and_the_mtp_layer_a_cache():
    one, three = (CARD.view({"mtp_layer": f"BF16 layer, {words}"}) for words in ("1 draft", "3 drafts"))
    assert three.state_pool_bytes / one.state_pool_bytes == 2
    assert one.kv_cache_bytes / CARD.view().kv_cache_bytes == 17 / 16


@pytest.mark.parametrize("settings, words", [
    ({"build_bytes": "55.6"}, "weights alone"), ({"build_bytes": "28"}, "Not even without any overhead"),
    ({"mtp_layer": "BF16 layer, 3 drafts"}, "Even the low end"), ({}, "The overhead decides"),
    ({"build_bytes": "17"}, "even with the high end")])
def test_the_verdict_in_words(settings, words):
    shown = CARD.shown_texts(settings)
    assert words in shown["readout-decides"]
    assert shown["readout-verdict"].startswith("Fits") == (CARD.view(settings).left_bytes >= 0)


def test_the_bars_end_where_the_table_says():
    canvas = CARD.draw({"mtp_layer": "BF16 layer, 3 drafts"})
    artists = {artist.get_gid(): artist for artist in canvas.axes[0].patches}
    v = CARD.view({"mtp_layer": "BF16 layer, 3 drafts"})
    end = artists["card-memory-kv"].get_xy()[:, 0].max()
    assert end == pytest.approx(100 * (v.used_bytes + v.state_pool_bytes) / v.vram_bytes)


def test_a_prompt_by_hand():
    v = prompt(8192, allreduce_latency_s=0)
    assert v.linear_s == pytest.approx(2 * MODEL.parameters * 8192 / 2 / GPU.fp4_flop_per_s)
    pairs = sum(range(8192)) + 8192 / 2  # half of the diagonal
    assert v.attention_s == pytest.approx(2 * 2 * 16 * 24 * 256 * pairs / 2 / 47.4e12)
    assert v.communication_s == pytest.approx(128 * 80 * 2**20 / 31.5e9)


def test_scaling_of_the_three_parts():
    one, two = prompt(4096, allreduce_latency_s=0), prompt(8192, allreduce_latency_s=0)
    assert two.linear_s == 2 * one.linear_s and two.attention_s == 4 * one.attention_s
    assert two.communication_s == pytest.approx(2 * one.communication_s)
    assert prompt(8192, ranks=1).communication_s == 0


@pytest.mark.parametrize("chunk", [1, 1000, 1024, 8192, 10**6])
def test_chunks_add_latency_and_nothing_else(chunk):
    v = prompt(8192, chunk_tokens=chunk)
    passes = [min(chunk, 8192 - start) for start in range(0, 8192, chunk)]
    by_pass = sum(128 * (20e-6 + tokens * 10240 / 31.5e9) for tokens in passes)
    assert v.chunks * v.communication_s == pytest.approx(by_pass)
    assert v.chunks == len(passes) and v.pass_tokens == pytest.approx(8192 / len(passes))
    cached = np.cumsum([0, *passes[:-1]])
    assert v.chunks * v.attention_s == pytest.approx(sum(
        v(one.attention_s, tokens=tokens, context_tokens=float(before)) for tokens, before in zip(passes, cached)))
    if chunk >= 1000:  # shorter passes wait for the weights
        assert v.prefill_s == pytest.approx(v.chunks * (v.linear_s + v.attention_s) + by_pass)


def test_crossings_are_where_the_curves_meet():
    for flop_per_s in (GPU.fp4_flop_per_s, GPU.bf16_flop_per_s):
        at = prompt(8192, flop_per_s=flop_per_s).overtake_tokens
        v = prompt(at, flop_per_s=flop_per_s)
        assert v.linear_s == pytest.approx(v.attention_s)
    for ranks in (2, 4, 8):
        even = collectives.even_message_bytes(ranks, 31.5e9, 20e-6)
        assert collectives.allreduce_s(even, ranks, 31.5e9, 20e-6) == pytest.approx(40e-6)


def test_sympy_finds_the_same_crossing():
    found = sympy.solve(sympy.expand((one.linear_s.expr() - one.attention_s.expr(context_tokens=0)) / symbol("tokens")),
                        symbol("tokens"))
    ours = prefill.overtake_tokens.expr().subs(sympy.Max(1, symbol("full_layers")), symbol("full_layers"))
    assert sympy.simplify(found[0] - ours) == 0


def test_two_numbers_explain_five_public_times():
    """The line and the square through two points, by least squares of NumPy, meet the rest and the model's own fit."""
    measured = points("length")
    tokens, seconds = np.array([(p.tokens, p.seconds) for p in measured], float).T
    line, square = np.linalg.solve(np.stack([tokens[[1, -1]], tokens[[1, -1]] ** 2], axis=1), seconds[[1, -1]])
    assert np.abs(line * tokens + square * tokens**2 - seconds).max() / seconds.max() < 0.01
    mfu = prompt(1024).attention_s / (square * 1024**2)
    assert mfu == pytest.approx(0.70, abs=0.01)
    per_token = line - prompt(1, mfu_frac=mfu).linear_s - 128 * 20e-6 / 1024
    assert 128 * 10240 / per_token / 1e9 == pytest.approx(8.5, abs=0.1)


def test_the_shares_of_the_picture_are_the_shares_of_the_table():
    texts = {"format": "BF16, also W4A16: 47 TFLOP/s", "link_bytes_per_s": "2.2", "prompt_tokens": "8192"}
    v = MESSAGE.view(texts)
    canvas = MESSAGE.draw(texts)
    boxes = {artist.get_gid(): artist.get_xy()[:, 0] for artist in canvas.axes[1].patches}
    share = 100 - boxes["message-time-prompt-comm"].min()
    assert share == pytest.approx(100 * prompt(8192, flop_per_s=47.4e12, link_bytes_per_s=2.2e9).communication_frac)
    assert boxes["message-time-decode-comm"].min() == pytest.approx(100 * 20e9 / 2 / 448e9 / (
        20e9 / 2 / 448e9 + 128 * (20e-6 + 10240 / 2.2e9)))
    assert v.message_bytes == 80 * 2**20


def test_links_are_ranges_not_facts():
    for key in ("shm", "staged", "p2p-pcie5-x8"):
        low, value, high = link(key).numbers["link_bytes_per_s"].base_range
        assert low <= value <= high and low < high < link("pcie5-x8-line-rate").link_bytes_per_s
    assert LENGTH.view().chunk_tokens == points("length")[0].chunk_tokens


PLANNED = plan("qwen3.8-27b-nvfp4", ["rtx-5060-ti-16gb"] * 2, "tp", kv_dtype="fp8")


@pytest.mark.parametrize("figure", [MESSAGE, LENGTH], ids=lambda f: f.name)
def test_as_counted_is_what_plan_says(figure):
    texts, terms = figure.preset(AS_COUNTED), PLANNED["prefill"]["terms"]
    v = figure.view(texts)
    assert v.tokens_per_s == pytest.approx(PLANNED["prefill"]["mid"], rel=1e-9)
    parts = {"linear layers": v.all_linear_s, "attention": v.all_attention_s, "all-reduces": v.all_communication_s,
             "engine's wait": v.all_gap_s}
    planned = {name: term["mid_ms"] for name, term in terms.items()}
    assert {name: 1e3 * seconds for name, seconds in parts.items()} == pytest.approx(planned, rel=1e-9)
    assert f"{PLANNED['prefill']['mid']:,.0f}" in " ".join(figure.shown_texts(texts).values())
    assert all(control.kind == "choice" or texts[control.name] in control.texts
               for control in figure.controls if control.name in texts)


def test_decode_beside_the_prompt_is_what_plan_says():
    v = MESSAGE.view(MESSAGE.preset(AS_COUNTED))
    assert decode(v).decode_tokens_per_s == pytest.approx(PLANNED["decode"]["mid"], rel=1e-9)
