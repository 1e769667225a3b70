"""Orders that every plan keeps, over random settings: more memory never holds less, and low <= mid <= high."""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tpmodel.planner.plan import ways
from tpmodel.planner.plan.machine import machine, model
from tpmodel.planner.plan.plan import make
from tpmodel.planner.plan.values import Ask
from tpmodel.planner.engine.versions import Refused

MODELS = ("qwen3.8-27b-nvfp4", "qwen3.6-27b-nvfp4", "qwen3-8b", "qwen3-30b-a3b", "gpt-oss-20b", "llama-3.1-8b",
          "mistral-7b", "qwen3-32b")
CARDS = ("rtx-3060-12gb", "rtx-3090", "rtx-4090", "rtx-5060-ti-16gb", "rtx-5080", "rtx-5090", "h200")
KINDS = ("one", "tp", "pp", "offload")

asks = st.builds(
    Ask, model=st.sampled_from(MODELS),
    gpus=st.sampled_from(CARDS).flatmap(lambda key: st.sampled_from([(key, key), (key,)])),
    parallel=st.sampled_from(KINDS), kv_dtype=st.sampled_from(["bf16", "fp8"]),
    util=st.floats(0.7, 0.97).map(lambda u: round(u, 3)),
    batch=st.sampled_from([1, 2, 4, 16]), context=st.sampled_from([None, 2048, 8192, 32768]), mtp=st.just(0))


def holds(ask, more_bytes=0.0):
    """Tokens that a way holds at each end, on cards with so much more memory; None where the engine refuses it."""
    if len(ask.gpus) == 1 and ask.parallel in ("tp", "pp"):
        ask = replace(ask, gpus=ask.gpus * 2)
    ask = replace(ask, max_num_seqs=ask.max_num_seqs or ask.batch)  # more of them take more memory
    rig, (config, setting) = machine(ask), model(ask)
    grown = tuple(replace(card, numbers=card.numbers | {
        name: replace(card.numbers[name], value=card.numbers[name].base + more_bytes, unit="byte",
                      low=None, high=None, kind="computed")
        for name in ("vram_bytes", "reported_bytes") if name in card.numbers}) for card in rig.cards)
    try:
        return ways.way(config, replace(rig, cards=grown), setting, ask, ask.parallel)
    except Refused:
        return None


def best(ask):
    """The best way; None where the card has no kernel for the cache's format."""
    try:
        return make(ask)
    except ValueError as error:
        assert "vLLM 0.33 takes it" in str(error)
        return None


def more(big, small):
    """Whether the way holds at least as much at every end; one that needs no offload any more holds as `one` does."""
    return all(b >= s for b, s in zip(big.longest, small.longest))


@settings(max_examples=80, deadline=None)
@given(asks, st.sampled_from([0.1, 0.5, 1, 3.7]))
@example(Ask("qwen3.8-27b-nvfp4", ("rtx-3090",), parallel="offload", kv_dtype="bf16", util=0.836), 1)  # to the byte
def test_more_memory_never_holds_less(ask, gib):
    small, big = holds(ask), holds(ask, gib * 2**30)
    assume(small and big)
    assert more(big, small)


@settings(max_examples=80, deadline=None)
@given(asks)
def test_a_smaller_cache_format_never_holds_less(ask):
    wide, narrow = holds(replace(ask, kv_dtype="bf16")), holds(replace(ask, kv_dtype="fp8"))
    assume(wide and narrow)
    assert more(narrow, wide)


@settings(max_examples=80, deadline=None)
@given(asks, st.floats(0.005, 0.2))
def test_a_higher_utilisation_never_holds_less(ask, step):
    low, high = holds(ask), holds(replace(ask, util=min(1.0, ask.util + step)))
    assume(low and high)
    assert more(high, low)


@settings(max_examples=80, deadline=None)
@given(asks, st.sampled_from([2, 3, 8]))
def test_a_smaller_batch_never_holds_less(ask, times):
    ask = replace(ask, max_num_seqs=ask.batch * times)
    many, few = holds(replace(ask, batch=ask.batch * times)), holds(ask)
    assume(many and few)
    assert more(few, many)


@settings(max_examples=80, deadline=None)
@given(asks)
def test_every_term_and_total_is_in_order(ask):
    way = holds(ask)
    assume(way and way.fits)
    for speed in (way.decode, way.prefill):
        assert speed.rates[0] <= speed.rates[1] <= speed.rates[2]
        for name, (slow, middle, fast) in speed.terms.items():
            assert slow >= middle >= fast >= 0, name
    assert way.longest[0] <= way.longest[1] <= way.longest[2]


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(asks, st.sampled_from([4096, 16384]))
def test_auto_fits_monotonely(ask, context):
    """At a given context, what fits with less fits with more."""
    ask = replace(ask, parallel="auto", context=context)
    assume(best(ask) and best(replace(ask, kv_dtype="fp8")))
    if make(replace(ask, util=0.8)).best.fits:
        assert make(replace(ask, util=0.9)).best.fits and make(replace(ask, util=0.8, kv_dtype="fp8")).best.fits
        assert make(replace(ask, util=0.8, batch=1)).best.fits


@settings(max_examples=25, deadline=None)
@given(asks)
def test_auto_gives_up_context_only_in_words(ask):
    """Where another way holds much more than the one chosen, the verdict names it and what it costs."""
    plan = best(replace(ask, parallel="auto", context=None))
    if plan and plan.best.fits:
        most = max((way for way in plan.tried if way.fits), key=lambda way: way.holds_tokens)
        said = f"{most.label} holds {most.holds_tokens:,}"
        assert most.holds_tokens <= 1.1 * plan.best.holds_tokens or said in plan.verdict
