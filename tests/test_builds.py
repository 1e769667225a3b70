"""What a plan can be asked of a build: its options on the line, contradictions in one line."""

import pytest

from tpmodel.formula.units import GIB
from tpmodel.planner.plan.plan import make
from tpmodel.planner.plan.values import Ask
from tpmodel.planner.shapes.models import find_config

TI = "rtx-5060-ti-16gb"
HYBRID, PAIR = "qwen3.8-27b-nvfp4", (TI, TI)


def asked(model=HYBRID, gpus=PAIR, **more):
    return make(Ask(model, gpus, **({"kv_dtype": "fp8"} if model == HYBRID else {}) | more))


def test_options_stand_in_the_line():
    words = asked(context=8192, max_num_seqs=3, max_num_batched_tokens=4096, text_only=True,
                  repository="me/mine").command
    assert words.startswith("vllm serve me/mine ") and words.endswith(" --language-model-only")
    assert " --max-num-seqs 3 --max-num-batched-tokens 4096 " in words
    assert "--language-model-only" not in asked(context=8192).command


def test_text_only_leaves_the_tower_out_and_nothing_else():
    """The tower of the 27B is 0.86 GiB in 16 bits: two ranks hold half of it each."""
    whole, text = (asked(parallel="tp", context=8192, text_only=flag).best for flag in (False, True))
    tower = sum(module.bytes for module in find_config(HYBRID).modules if module.name == "vision")
    assert whole.placement.weights_bytes[0] - text.placement.weights_bytes[0] == pytest.approx(tower / 2)
    assert 0.8 * GIB < tower < 0.9 * GIB and text.decode == whole.decode


def test_a_prompt_is_the_one_that_was_asked_for():
    found = {tokens: asked(parallel="tp", prompt=tokens).best for tokens in (100, None, 20000)}
    assert [way.prefill.prompt_tokens for way in found.values()] == [100, 8192, 20000]
    assert found[20000].context_tokens == 20000 and found[100].context_tokens == 8192
    seconds = [way.prefill.prompt_tokens / way.prefill.rates[1] for way in found.values()]
    assert seconds == sorted(seconds)
    assert not any(way.fits for way in asked("qwen3-8b", (TI,), parallel="one", prompt=40000).tried)


def test_larger_passes_read_the_weights_less_often():
    """16,384 tokens in passes of 2,048 wait for the engine eight times, in passes of 8,192 twice."""
    few, many = (asked(parallel="tp", prompt=16384, max_num_batched_tokens=tokens).best.prefill
                 for tokens in (8192, 2048))
    assert many.terms["engine's wait"][1] == pytest.approx(4 * few.terms["engine's wait"][1])


@pytest.mark.parametrize("more, words", [
    (dict(model="qwen3-8b", text_only=True), "text_only = True is not accepted: qwen3-8b has no vision tower"),
    (dict(max_num_seqs=500), "max_num_seqs = 500 is not accepted: it must be at most 158, the blocks for states"),
    (dict(parallel="tp", max_num_seqs=159), "at most 158, the blocks"),
    (dict(batch=5, max_num_seqs=4), "max_num_seqs = 4 is not accepted: it must be a whole number from 5"),
    (dict(max_num_seqs=0), "max_num_seqs = 0"), (dict(max_num_batched_tokens=0), "max_num_batched_tokens = 0"),
    (dict(max_num_seqs=8, max_num_batched_tokens=7), "max_num_batched_tokens = 7 is not accepted"),
    (dict(mtp=3, max_num_batched_tokens=3), "max_num_batched_tokens = 3 is not accepted"),
    (dict(acceptance=0.5), "acceptance = 0.5 is not accepted: it must be given with --mtp"),
    (dict(context=8192, prompt=8193), "prompt = 8193 is not accepted"), (dict(prompt=0), "prompt = 0"),
    (dict(prompt=300000), "at most 262144, the native length"),
    *((dict(repository=name), "repository = ") for name in ("", "-x", "a b", "a\nb"))])
def test_contradictions_are_one_line(more, words):
    with pytest.raises(ValueError, match="^[^\n]*$") as error:
        asked(**more)
    assert words in str(error.value)


def test_as_many_sequences_as_blocks_are_accepted():
    assert "--max-num-seqs 158" in asked(parallel="tp", context=65536, max_num_seqs=158).command
    assert "--max-num-seqs 500" in asked("qwen3-8b", max_num_seqs=500).command  # no states: any number queues
