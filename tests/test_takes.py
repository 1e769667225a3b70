"""What an engine takes beside weights and cache: sums by hand, limits, what moves which part, and what logs print."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tpmodel.catalog.gpus import gpu
from tpmodel.formula.units import GIB, MIB
from tpmodel.planner.engine import takes
from tpmodel.planner.engine.versions import Setting, version
from tpmodel.planner.plan.plan import make, plan
from tpmodel.planner.plan.values import Ask
from tpmodel.planner.plan.why import why
from tpmodel.planner.shapes.models import find_config, shapes

CARD = "rtx-5060-ti-16gb"


def taken(name, ranks=1, first=True, last=True, release="0.33", **more):
    config = find_config(name)
    given = {"batch_tokens": 2048, "context_tokens": 8192} | more
    return takes.taken(config, Setting(version(release), ranks=ranks, **given),
                       takes.Stage(config.order, first, last, ranks))


def part(found, quantity):
    return next((row for row in found.parts if row["quantity"] == quantity), {"bytes": 0, "counted": False})


def test_a_dense_model_by_hand():
    """Qwen3-8B on one card, 256 sequences: 36 layers, hidden 4,096, intermediate 12,288, 151,936 words."""
    found = taken("qwen3-8b")
    assert part(found, "forward_bytes")["bytes"] == 2 * 2048 * (2 * 4096 + 3 * 12288)
    assert part(found, "sampler_bytes")["bytes"] == 256 * 151936 * 14
    assert part(found, "counts_bytes")["bytes"] == 256 * 151936 * 33 / 8
    assert part(found, "graph_bytes")["bytes"] == pytest.approx(51 * 37 * 0.48 * MIB)
    added = [256 * 151936 * (14 + 33 / 8), 51 * 37 * 0.48 * MIB, 0.22 * GIB]
    assert found.ends[1] == pytest.approx(sum(added))
    assert [row["quantity"] for row in found.parts if not row["counted"]] == ["forward_bytes"]


@pytest.mark.parametrize("sequences, drafts, tokens, count", [
    (256, 0, 2048, 51), (1024, 0, 8192, 51), (1, 0, 2048, 2), (2, 0, 2048, 3), (8, 0, 2048, 5), (8, 3, 2048, 11),
    (256, 0, 4, 3), (150, 0, 2048, 38)])
def test_sizes_of_graphs(sequences, drafts, tokens, count):
    """1, 2, 4, every 8 to 256, every 16 to twice the sequences, at most 512; and the sequences themselves."""
    assert takes.sizes(sequences, drafts, tokens) == count


def test_each_knob_moves_its_own_parts():
    base = taken("qwen3.8-27b-fp8")
    sizes = lambda found: {row["quantity"]: row["bytes"] for row in found.parts}
    moved = lambda found: {name for name, size in sizes(found).items() if size != sizes(base)[name]}
    assert moved(taken("qwen3.8-27b-fp8", sequences=8)) == {"sampler_bytes", "counts_bytes", "graph_bytes"}
    assert moved(taken("qwen3.8-27b-fp8", batch_tokens=4096)) == {"forward_bytes"}
    twice = part(taken("qwen3.8-27b-fp8", batch_tokens=4096), "forward_bytes")
    assert twice["bytes"] == 2 * sizes(base)["forward_bytes"]
    assert part(taken("qwen3.8-27b-fp8", first=False), "vision_bytes")["bytes"] == 0
    later = taken("qwen3.8-27b-fp8", last=False)
    assert part(later, "sampler_bytes")["bytes"] == part(later, "counts_bytes")["bytes"] == 0


def test_the_workspace_of_experts_and_the_padding_of_mxfp4():
    """gpt-oss-20b: 2,880 is padded to 2,944 and 3,072; W = 13.72 GiB was printed where the file has 12.82."""
    found, config = taken("gpt-oss-20b"), find_config("gpt-oss-20b")
    assert part(found, "workspace_bytes")["bytes"] == 2 * 2048 * 4 * (2880 + 2 * 2880)
    loaded = config.weights_bytes + part(found, "padding_bytes")["bytes"]
    assert loaded / GIB == pytest.approx(13.72, rel=0.005)
    assert part(taken("qwen3-30b-a3b"), "padding_bytes")["bytes"] == 0


def test_releases_differ():
    sorted_, newer = taken("llama-3.1-8b", release="0.8.5"), taken("llama-3.1-8b")
    assert part(sorted_, "sampler_bytes")["bytes"] / GIB == pytest.approx(1.23, abs=0.05)  # 1.19 to 1.26 in logs
    assert not {"graph_bytes", "counts_bytes"} & {row["quantity"] for row in sorted_.parts if row["bytes"]}
    assert part(newer, "graph_bytes")["bytes"] > 0
    assert part(taken("llama-3.1-8b", release="0.24"), "counts_bytes")["bytes"] == 0
    whole = taken("llama-3.1-8b", release="0.6", context_tokens=16384)
    assert part(whole, "forward_bytes")["bytes"] == 8 * part(newer, "forward_bytes")["bytes"]


@pytest.mark.parametrize("name", sorted(shapes()))
def test_a_text_model_is_known_within_one_gib(name):
    config = find_config(name)
    text = replace(config, modules=tuple(m for m in config.modules if m.name != "vision"))
    for ranks in (1, 2):
        low, mid, high = takes.taken(text, Setting(), takes.Stage(text.order, True, True, ranks)).ends
        assert 0 < low < mid < high <= low + GIB


def test_a_film_grows_with_the_context_and_can_be_left_out(tmp_path):
    """Qwen2.5-VL's 14 frames are 7 pictures of 16,384 tokens, 4 patches each, where the context holds them."""
    (tmp_path / "config.json").write_text(json.dumps(shapes()["qwen3-8b"] | {
        "model_type": "qwen2_5_vl", "vision_config": {
            "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "patch_size": 14, "spatial_merge_size": 2,
            "temporal_patch_size": 2}}))
    found = {tokens: taken(str(tmp_path), context_tokens=tokens) for tokens in (8192, 40960, 131072)}
    patch = 2 * (2 * 1280 + 3 * 3420) + 6 * 3 * 2 * 14 * 14
    assert [part(one, "vision_bytes")["bytes"] for one in found.values()] == [n * 65536 * patch for n in (1, 2, 7)]
    asked = dict(model=str(tmp_path), gpus=("rtx-4090",), context=8192)
    seen, blind = make(Ask(**asked)).best, make(Ask(**asked, text_only=True)).best
    assert seen.at_once is None and blind.memories[0]["kv_pool_bytes"] > seen.memories[0]["kv_pool_bytes"] + GIB


def test_the_sum_of_what_counts_is_the_overhead_everywhere():
    found = plan("qwen3.8-27b-nvfp4", [CARD] * 2, "tp", kv_dtype="fp8")
    gpu_ = found["gpus"][0]
    compiled = 0.1 * GIB if part_counted(gpu_) == "forward_bytes" else 0
    counted = sum(row["bytes"] for row in gpu_["parts"] if row["counted"])
    assert counted + compiled == pytest.approx(gpu_["overhead_bytes"])
    assert gpu_["kv_pool_bytes"] == pytest.approx(gpu_["budget_bytes"] - gpu_["weights_bytes"] - gpu_["overhead_bytes"])
    assert all(row["kind"] and row["source"] for row in gpu_["parts"])
    tree = why(make(Ask("qwen3.8-27b-nvfp4", (CARD,) * 2, "tp", kv_dtype="fp8")), "kv_pool_bytes")
    under = next(one for one in tree["parts"] if one["name"] == "overhead_bytes")
    assert under["parts"][0]["name"] == "parts_bytes" and under["parts"][0]["value"] == under["value"]


def part_counted(gpu_):
    return next(row["quantity"] for row in gpu_["parts"] if row["counted"] and row["quantity"] in (
        "forward_bytes", "sampler_bytes", "vision_bytes"))


def test_a_measured_overhead_counts_in_place_of_the_parts():
    rows = plan("nemotron-3-embed-8b", ["rtx-5080", CARD], "pp")["gpus"]
    assert [row["parts"][0]["name"] for row in rows] == ["as measured"] * 2
    assert rows[0]["overhead_bytes"] == 2.1 * GIB


def test_a_line_asks_for_fewer_sequences_where_the_default_leaves_no_room():
    tight = make(Ask("qwen2.5-32b", ("rtx-4090",) * 4, "tp", util=0.85, context=32768))
    free = make(Ask("qwen2.5-32b", ("h200",), "one", context=32768))
    assert tight.best.fits and (tight.best.at_once or 256) < 257 and free.best.at_once is None
    short = make(Ask("qwen3-8b", ("rtx-4090",), "one", context=40960))
    assert short.best.fits and short.best.at_once < 256 and f"--max-num-seqs {short.best.at_once}" in short.command


def test_the_log_has_what_the_release_prints():
    asked = dict(model="qwen3.8-27b-fp8", gpus=["h200"], parallel="one", context=32768)
    new, old = (plan(**asked, engine=f"vllm-{text}") for text in ("0.33", "0.20"))
    assert new["log"]["kv_cache_tokens"] == int(new["log"]["max_concurrency"] * 32768)
    assert old["log"]["kv_cache_tokens"] == old["log"]["num_blocks"] // 4 * 784
    assert new["log"]["available_bytes"] == [new["gpus"][0]["kv_pool_bytes"]]
    assert old["log"]["graph_bytes"] == [0] and new["log"]["graph_bytes"][0] > 0
    padded = plan("gpt-oss-20b", ["h200"], "one")
    assert padded["log"]["model_loading_bytes"][0] / GIB == pytest.approx(13.72, rel=0.005)


def test_explain_prints_each_part_with_kind_and_source():
    words = ["plan", "--model", "qwen3.8-27b-nvfp4", "--gpu", f"2x {CARD}", "--explain"]
    done = subprocess.run([sys.executable, "-m", "tpmodel", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if "vision tower" in line)
    assert "--language-model-only" in line and "(computed: tpmodel.formulas.overhead.vision_bytes)" in line
    assert done.stdout.count("kernels and buffers") == 1 and "vLLM's log: Model loading took" in done.stdout
    assert gpu(CARD).numbers["reported_bytes"].source in done.stdout
