"""What stops vLLM at its start, by hand: cache formats by card, shares of a matrix, sequences against blocks."""

import json
from dataclasses import replace

import pytest

from tpmodel.catalog.gpus import gpu, gpus
from tpmodel.planner.engine import starts
from tpmodel.planner.engine.versions import Refused, version
from tpmodel.planner.plan.plan import make
from tpmodel.planner.plan.values import Ask
from tpmodel.planner.plan.why import why
from tpmodel.planner.shapes.configs import parse_config
from tpmodel.planner.shapes.layers import Module
from tpmodel.planner.shapes.models import find_config, shapes

TI = "rtx-5060-ti-16gb"
HYBRID = "qwen3.8-27b-nvfp4"
H200 = [gpu("h200")]


def flags(model, cards, **more):
    """{flag: value} of the line that `plan` prints."""
    words = make(Ask(model, tuple(cards), **more)).command.split()
    return {word: words[i + 1] for i, word in enumerate(words) if word.startswith("--") and i + 1 < len(words)}


def test_the_readmes_line_says_as_many_sequences_as_there_are_blocks():
    """vLLM refuses its default of 256 sequences; the line asks for no more than the low end has blocks for."""
    asked = dict(kv_dtype="fp8", context=65536)
    plan = make(Ask(HYBRID, (TI, TI), **asked))
    said = int(flags(HYBRID, (TI, TI), **asked)["--max-num-seqs"])
    gpu, pool = plan.best.memories[0], plan.best.pool
    least = gpu["budget_bytes"] - gpu["weights_bytes"] - gpu["overhead_range"]["high"]
    assert 16 < said <= least // pool.block_bytes < pool.pool_blocks < 256
    assert any(f"--max-num-seqs {said}" in words and "256" in words for words in plan.assumptions)


@pytest.mark.parametrize("model, most", [("qwen3.8-27b-fp8", 939), ("qwen3.8-27b", 556), (HYBRID, 1011)])
def test_the_default_of_large_cards_is_not_trusted(model, most):
    """Public starts on one RTX PRO 6000: 1,024 sequences were refused for want of so many blocks."""
    assert int(flags(model, ("rtx-pro-6000",))["--max-num-seqs"]) <= most


def test_a_batch_says_itself_and_a_model_without_states_says_nothing():
    assert flags(HYBRID, (TI, TI), kv_dtype="fp8", batch=4)["--max-num-seqs"] == "4"
    assert "--max-num-seqs" not in flags("qwen3-8b", (TI, TI))
    assert flags("qwen3-8b", ("h200",), batch=4096)["--max-num-batched-tokens"] == "4096"
    assert flags("qwen3-8b", ("a100-80gb",), batch=4096)["--max-num-batched-tokens"] == "4096"


@pytest.mark.parametrize("key, most", [
    (TI, 256), ("rtx-pro-6000", 1024), ("h200", 1024), ("a100-80gb", 256), ("dgx-spark", 256), ("mi300x", 1024)])
def test_sequences_that_vllm_takes_by_itself(key, most):
    assert starts.default_sequences(gpu(key)) == most


@pytest.mark.parametrize("model, key, kv_dtype, fine", [
    ("qwen3-8b", "rtx-3090", "fp8", True), ("qwen3-8b", "rtx-2080-ti", "fp8", False),
    ("qwen3-8b", "rtx-4090", "fp8_per_token_head", True), ("qwen3-8b", "rtx-3090", "fp8_per_token_head", False),
    ("qwen3-8b", "rtx-3090", "int8_per_token_head", True), ("qwen3-8b", "rtx-3090", "fp16", False),
    ("qwen3-8b", "rtx-2080-ti", "fp16", True), ("gpt-oss-20b", "rtx-3090", "fp8", False),
    ("gpt-oss-20b", "rtx-4090", "fp8", True), ("gpt-oss-20b", "rtx-5090", "nvfp4", False),
    ("qwen3-8b", "b200", "nvfp4", True), ("deepseek-v3", "a100-80gb", "fp8", False),
    ("deepseek-v3", "h200", "fp8", True), ("deepseek-v3", "h200", "fp8_ds_mla", False),
    ("qwen3-8b", "mi300x", "fp8", True)])
def test_a_format_of_the_cache_needs_its_kernel(model, key, kv_dtype, fine):
    if fine:
        starts.check_cache(find_config(model), kv_dtype, [gpu(key)])
    else:
        with pytest.raises(Refused, match=f"kv_dtype = '{kv_dtype}' is not accepted on {key}: vLLM 0.33 takes it"):
            starts.check_cache(find_config(model), kv_dtype, [gpu("h200" if key == "a100" else key)])


@pytest.mark.parametrize("module, rows", [
    (Module("mlp", 1, "fp8", 8 + 32 / 128**2, 1, 128), 128), (Module("experts", 1, "fp8", 8 + 32 / 128**2, 1, 128), 32),
    (Module("experts", 1, "fp8", 8.0, 1), 1), (Module("mlp", 1, "nvfp4", 4.5, 1, 16), 16),
    (Module("experts", 1, "mxfp4", 4.25, 1, 32), 1), (Module("mlp", 1, "mxfp4", 4.25, 1, 32), 32),
    (Module("experts", 1, "int4", 4 + 20 / 64, 1, 64), 64)])
def test_rows_that_share_a_scale(module, rows):
    assert starts.group_of(module, "fp8", [gpu("h200")], version("0.33")) == rows


@pytest.mark.parametrize("method, key, release, rows", [
    ("fp8", "h200", "0.33", 32), ("fp8", "rtx-4090", "0.33", 32), ("fp8", "rtx-3090", "0.33", 128),
    ("fp8", "h200", "0.32", 128), ("fp8", "mi300x", "0.33", 32), ("awq", "rtx-3090", "0.33", 1),
    ("gptq", "h200", "0.33", 1), ("compressed-tensors", "h200", "0.33", 32)])
def test_rows_of_experts_hang_on_card_and_release(method, key, release, rows):
    """As 0.33 says of Qwen3-235B over 8 ranks, 192 rows each: FP8 blocks need compute capability 8.9."""
    module = Module("experts", 1, "fp8", 8 + 32 / 128**2, 1, 128)
    assert starts.group_of(module, method, [gpu("h200"), gpu(key)], version(release)) == rows


@pytest.mark.parametrize("q, group", [
    ({"quant_method": "awq"}, 128), ({"quant_method": "gptq", "group_size": 32}, 32), ({"quant_method": "fp8"}, 1),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 128), ({"quant_algo": "NVFP4"}, 16),
    ({"quant_method": "gptq", "group_size": -1}, 1)])
def test_a_build_says_the_rows_of_its_scales(q, group):
    config = parse_config(shapes()["qwen3-8b"] | {"quantization_config": q})
    assert {module.group for module in config.modules if module.name == "mlp"} == {group}
    assert {module.group for module in config.modules if module.name in ("embedding", "head")} == {1}


def test_a_ranks_share_falls_on_whole_groups():
    """18,432 rows over 32 ranks are 576, which blocks of 128 do not divide: vLLM's own words for DeepSeek-V3."""
    config = find_config("deepseek-v3")
    new, old = version("0.33"), version("0.32")
    starts.check_ranks(config, H200, 16, new)
    with pytest.raises(Refused, match="18432 / 32 = 576, must be a multiple of 128"):
        starts.check_ranks(config, H200, 32, new)
    thin = replace(config, expert_intermediate=2048 + 16)
    with pytest.raises(Refused, match="rows of experts"):
        starts.check_ranks(thin, H200, 8, new)
    starts.check_ranks(thin, H200, 1, new)
    finer = replace(config, expert_intermediate=1536)  # 192 rows of 8 ranks: refined to 64 or 32 by 0.33 only
    starts.check_ranks(finer, H200, 8, new)
    with pytest.raises(Refused, match="1536 / 8 = 192, must be a multiple of 128"):
        starts.check_ranks(finer, H200, 8, old)
    with pytest.raises(Refused, match="ranks = 7 is not accepted: it must divide the 129280 rows"):
        starts.check_ranks(config, H200, 7, new)


@pytest.mark.parametrize("model, key, kv_dtype, found", [
    (HYBRID, "rtx-3090", "fp8", {"checkpoints": 0}), (HYBRID, "rtx-4090", "fp8", {"checkpoints": 0}),
    (HYBRID, "h200", "fp8", {}), (HYBRID, TI, "fp8", {}), ("qwen3-8b", "rtx-3090", "fp8", {}),
    ("deepseek-v3", "b200", "bf16", {"block_tokens": 32}), ("deepseek-v3", "h200", "fp8", {"block_tokens": 64}),
    ("deepseek-v3", "h200", "bf16", {}), ("deepseek-v3", "rtx-pro-6000", "bf16", {}), (HYBRID, "mi300x", "fp8", {})])
def test_what_a_cards_kernels_change(model, key, kv_dtype, found):
    assert starts.kernels(find_config(model), kv_dtype, [gpu(key)]) == found


def test_the_log_is_counted_at_the_lines_own_length():
    """vLLM's concurrency is for --max-model-len: a sequence as long as all that fits is there once and a bit."""
    plan = make(Ask("llama-3.1-8b", ("rtx-5080", TI), parallel="tp"))
    assert 1 <= plan.best.pool.concurrency < 1.01 and plan.best.holds_tokens < 131072


@pytest.mark.parametrize("more", [{"load_in_4bit": True}, {"load_in_8bit": True}])
def test_a_build_of_bitsandbytes_is_no_plan(tmp_path, more):
    config = shapes()["qwen3-8b"] | {"quantization_config": {"quant_method": "bitsandbytes", **more}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="vLLM 0.33 has dropped it"):
        make(Ask(str(tmp_path), ("h200",)))


def test_every_nvidia_card_says_its_compute_capability():
    without = {key for key, card in gpus().items() if starts.capability(card) is None}
    assert without == {"mi300x", "mi210", "mi100", "arc-b580", "rx-7900-xtx"}


def test_cards_of_two_makers_do_not_share_a_model_and_the_line_says_which_build_it_is_for():
    with pytest.raises(ValueError, match="gpu = 'rtx-4090, rx-7900-xtx' is not accepted: .* not of cuda and rocm"):
        make(Ask("qwen3-8b", ("rtx-4090", "rx-7900-xtx")))
    found = make(Ask("qwen3-8b", ("rx-7900-xtx",) * 2))
    assert found.with_peer_access is None and "vLLM's build for rocm" in found.notes[0]
    assert not make(Ask("qwen3-8b", ("rtx-5090",) * 2)).notes


@pytest.mark.parametrize("more, said", [
    (dict(host="desktop"), "host = 'desktop' is not accepted: it must be given with two GPUs or more"),
    (dict(slot="pcie4-x8"), "slot = 'pcie4-x8' is not accepted: it must be given with two GPUs or more"),
    (dict(kernel="marlin"), "kernel = 'marlin' is not accepted: qwen3-8b has no quantised weights"),
    (dict(context=4096, prompt=5000), "prompt = 5000 is not accepted: it must be a whole number from 1 to .*4096")])
def test_what_would_be_ignored_is_refused(more, said):
    with pytest.raises(ValueError, match=said):
        make(Ask("qwen3-8b", ("rtx-3090",), **more))


def test_a_release_that_was_not_read_is_told():
    told = lambda engine: make(Ask("qwen3-8b", ("rtx-3090",), engine=engine)).notes
    assert told("vllm-0.34") == ("vLLM 0.34 was not read: the rules are those of 0.33",)
    assert told("vllm-0.33.1") == told("llama.cpp") == ()


def test_a_cache_in_four_bits_needs_heads_that_the_kernels_have():
    with pytest.raises(Refused, match="for heads of 128, 256 or 512 elements"):
        starts.check_cache(find_config("phi-3-mini"), "nvfp4", [gpu("rtx-3090")])
    starts.check_cache(find_config("qwen3-8b"), "nvfp4", [gpu("rtx-3090")])


CONTEXT = {"rtx-4090": (0.23, 0.5, 0.54), "rtx-5090": (0.5, 0.5, 0.51)}  # GiB, of one GPU


@pytest.mark.parametrize("key", CONTEXT)
def test_a_share_that_cudas_context_cannot_leave_free_is_refused_and_one_that_it_may_not_is_told(key):
    size, (low, _, high) = gpu(key).reported_bytes / 2**30, CONTEXT[key]
    asked = lambda util, **more: make(Ask("qwen3-8b", (key,), "one", context=2048, util=util, **more))
    assert starts.context(gpu(key), 1).base_range == tuple(end * 2**30 for end in CONTEXT[key])
    assert not any("CUDA" in said for said in asked(1 - high / size - 1e-6).notes)
    between = asked(1 - low / size - 1e-6)
    assert "vLLM refuses a share that is not free: if it does, say --util 0.9" in between.notes[-1] and between.command
    with pytest.raises(ValueError, match=f"^util = .* is not accepted: CUDA's context takes {low:.2f} to {high:.2f} G"):
        asked(1 - low / size + 1e-4)
    assert asked(0.999, engine="vllm-0.9").best.fits, "before that release nobody asked"


def test_public_free_memories_lie_in_the_range_of_the_context():
    """vLLM's 'Free memory on device' on idle cards: (free, total) GiB, and how many GPUs serve together."""
    for key, gpus_, free, total in (("rtx-5090", 1, 30.86, 31.36), ("a100-80gb", 1, 78.84, 79.25),
                                    ("h100-sxm", 1, 78.66, 79.19), ("rtx-3090", 1, 23.05, 23.56),
                                    ("rtx-3090", 8, 22.93, 23.56), ("h200", 2, 139.21, 139.81),
                                    ("rtx-pro-6000", 2, 94.05, 95.01), ("l40s", 2, 43.93, 44.42)):
        low, _, high = (end / 2**30 for end in starts.context(gpu(key), gpus_).base_range)
        assert low - 0.005 <= total - free <= high + 0.005, key


def test_what_is_reserved_stands_beside_the_context():
    """Free are 23.55 less 2 of a display less 0.5 GiB: no more is asked for, and what the range may take is told."""
    made = make(Ask("qwen3-8b", ("rtx-4090",), "one", reserve_gib="2", context=2048))
    size = gpu("rtx-4090").reported_bytes
    assert made.best.util <= (size - 2.5 * 2**30) / size < made.best.util + 0.001
    assert any("vLLM refuses a share that is not free" in said for said in made.notes)
    rows = {row["quantity"]: row for row in made.best.memories[0]["parts"]}
    assert rows["context_bytes"]["high_bytes"] == 0.54 * 2**30 and not rows["context_bytes"]["counted"]
    with pytest.raises(ValueError, match="rtx-4090 has 23.55 GiB in all, and CUDA's context takes 0.50"):
        make(Ask("qwen3-8b", ("rtx-4090",), "one", reserve_gib="23.2"))


def test_a_batch_that_is_too_large_says_how_many_fit_though_no_context_was_said():
    made = make(Ask("qwen3-8b", ("rtx-4090",), batch=4096))
    users = made.best.users
    assert not made.best.fits and users.context_tokens == 8192 and users.largest_batch > 1
    assert f"takes {users.largest_batch} of the 4,096 at once with 8,192 tokens each" in made.verdict
    assert make(Ask("qwen3-8b", ("rtx-4090",), batch=users.largest_batch, context=8192)).best.fits


def test_what_a_card_or_a_model_has_not_is_refused_in_one_line():
    with pytest.raises(ValueError, match="kv_dtype = 'nvfp4' is not accepted on mi300x: .* on NVIDIA's cards only"):
        make(Ask("qwen3-8b", ("mi300x",), kv_dtype="nvfp4"))
    embeds = make(Ask("nemotron-3-embed-8b", ("rtx-4090",)))
    with pytest.raises(ValueError, match="why = 'decode_tokens_per_s' is not accepted: .* such as pass_s or kv_pool"):
        why(embeds, "decode_tokens_per_s")
    assert why(embeds, "pass_s")["value"] > 0


def test_cards_that_are_machines_of_their_own_meet_over_a_network():
    made = make(Ask("qwen3-32b", ("dgx-spark",) * 2))
    assert made.machine.link.key == "roce-dgx-spark" and any("--nnodes" in said for said in made.notes)
    assert not make(Ask("qwen3-8b", ("dgx-spark",))).notes
