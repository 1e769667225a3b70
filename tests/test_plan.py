"""`tpmodel plan`: the numbers of its parts, the comparison, the line it prints, and what it refuses."""

import json
import subprocess
import sys

import pytest

from tpmodel.catalog.models import find_config, shapes
from tpmodel.plan.plan import plan

PAIR = ["rtx-5060-ti-16gb", "rtx-5060-ti-16gb"]
GIB = 2**30


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "tpmodel", *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("name, billions", [
    ("qwen3.8-27b", 27.78), ("qwen3-32b", 32.76), ("qwen3-30b-a3b", 30.53), ("qwen3-8b", 8.19), ("llama-3.1-8b", 8.03),
    ("llama-3.1-70b", 70.55), ("gpt-oss-20b", 20.9), ("mixtral-8x7b", 46.7)])
def test_shapes_give_the_published_parameter_counts(name, billions):
    assert find_config(name).parameters / 1e9 == pytest.approx(billions, rel=0.005)


def test_the_articles_twenty_gigabytes_come_out_of_the_shape():
    config = find_config("qwen3.8-27b-nvfp4")
    kept = {m.name: m.bytes for m in config.modules if m.format == "bf16"}
    assert config.weights_bytes / 1e9 == pytest.approx(20.56, abs=0.02)
    assert kept["embedding"] == kept["head"] == 248320 * 5120 * 2
    assert config.read_bytes == pytest.approx(config.weights_bytes - sum(kept[name] for name in ("embedding", "vision", "mtp")))


def test_tensor_parallel_memory_and_speed_by_hand():
    found = plan("qwen3.8-27b-nvfp4", PAIR, "tp", kv_dtype="fp8")
    config, gpu = find_config("qwen3.8-27b-nvfp4"), found["gpus"][0]
    assert gpu["weights_bytes"] == config.weights_bytes / 2
    assert gpu["kv_bytes_per_token"] == 16 * 2 * 256 * 2
    assert gpu["budget_bytes"] == pytest.approx(0.92 * 16311 * 2**20)
    assert gpu["kv_pool_bytes"] == pytest.approx(gpu["budget_bytes"] - gpu["weights_bytes"] - 1.2 * GIB)
    terms = found["decode"]["terms"]
    assert terms["weight read"]["mid_ms"] == pytest.approx(config.read_bytes / 2 / (0.8 * 448e9) * 1e3)
    assert found["decode"]["mid"] == pytest.approx(1e3 / sum(t["mid_ms"] for t in terms.values()))
    assert found["decode"]["low"] < found["decode"]["mid"] < found["decode"]["high"]
    assert found["decode"]["limited_by"] == "weight read"


def test_batch_one_decode_gains_nothing_from_a_pipeline():
    one = plan("qwen3-8b", ["h200"], "one")
    pp = plan("qwen3-8b", ["h200", "h200"], "pp", link="nvlink-h200")
    tp = plan("qwen3-8b", ["h200", "h200"], "tp", link="nvlink-h200")
    assert pp["decode"]["mid"] <= one["decode"]["mid"] < tp["decode"]["mid"]
    assert pp["prefill"]["mid"] > one["prefill"]["mid"]


def test_auto_picks_the_uneven_pipeline_for_article_2():
    found = plan("nemotron-3-embed-8b", ["rtx-5080", "rtx-5060-ti-16gb"], goal="prefill", link="nccl-shm-wsl2", reserve_gib="1.4,0")
    assert found["split"]["kind"] == "pp" and found["split"]["layers"][0] in (23, 24)
    by_kind = {(c["kind"], tuple(c["layers"])): c for c in found["compared"]}
    assert not by_kind[("one", (34,))]["fits"]
    assert by_kind[("tp", (34,))]["prefill"]["mid"] < by_kind[("pp", (17, 17))]["prefill"]["mid"] < found["prefill"]["mid"]
    assert "VLLM_PP_LAYER_PARTITION=" in found["command"]


def test_the_given_context_and_the_kv_dtype_move_the_memory():
    fp8, bf16 = (plan("qwen3.8-27b-nvfp4", PAIR, "tp", kv_dtype=kind)["max_context_tokens"] for kind in ("fp8", "bf16"))
    assert bf16 < fp8 < 2.2 * bf16
    assert not plan("qwen3.8-27b-nvfp4", PAIR, "tp", kv_dtype="fp8", context=262144)["fits"]
    assert plan("qwen3.8-27b-nvfp4", PAIR, "tp", kv_dtype="fp8", context=131072)["fits"]


def test_speculation_counts_confirmed_tokens():
    plain = plan("qwen3.8-27b-nvfp4", PAIR, "tp", kv_dtype="fp8", context=8192)
    drafting = plan("qwen3.8-27b-nvfp4", PAIR, "tp", kv_dtype="fp8", context=8192, mtp=3, acceptance=0.7)
    hopeless = plan("qwen3.8-27b-nvfp4", PAIR, "tp", kv_dtype="fp8", context=8192, mtp=3, acceptance=0.0)
    assert hopeless["decode"]["mid"] < plain["decode"]["mid"] < drafting["decode"]["mid"]
    assert "num_speculative_tokens" in drafting["command"]


@pytest.mark.parametrize("name", list(shapes()))
def test_every_named_model_plans_or_is_refused_in_words(name):
    found = plan(name, ["h200", "h200"], link="nvlink-h200")
    assert found["verdict"].startswith(("fits", "does not fit"))


def test_a_catalog_of_ones_own(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('[my-card]\nname = "Mine"\n' + "\n".join(
        f'{name} = {{ value = {value}, unit = "{unit}", kind = "measured", source = "my machine", date = "2026-11-30" }}'
        for name, value, unit in (("vram_bytes", 48, "GiB"), ("memory_bytes_per_s", 900, "GB/s"), ("bf16_flop_per_s", 100, "TFLOP/s"))))
    found = plan("qwen3-32b", ["my-card", "my-card"], "tp", catalog=str(mine))
    assert found["fits"] and found["gpus"][0]["name"] == "my-card"


def test_json_has_the_promised_keys():
    done = run("plan", "--model", "qwen3.8-27b-nvfp4", *("--gpu", PAIR[0]) * 2, "--parallel", "tp", "--kv-dtype", "fp8", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"gpus", "max_context_tokens", "decode", "prefill", "split", "verdict", "command", "assumptions"} <= set(found)
    assert set(found["gpus"][0]) == {"name", "weights_bytes", "kv_bytes_per_token", "state_bytes", "overhead_bytes", "budget_bytes", "kv_pool_bytes"}
    assert {"low", "mid", "high", "unit", "limited_by", "terms"} <= set(found["decode"])
    assert found["command"].startswith("vllm serve")


def test_a_config_json_of_ones_own(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(shapes()["qwen3-8b"]))
    assert plan(str(tmp_path), ["rtx-4090"], "one")["max_context_tokens"] == plan("qwen3-8b", ["rtx-4090"], "one")["max_context_tokens"]


@pytest.mark.parametrize("arguments, word", [
    (["--model", "nope", "--gpu", "h200"], "nope"), (["--model", "qwen3-8b", "--gpu", "nope"], "nope"), (["--model", "qwen3-8b"], "gpu"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--parallel", "tp"], "parallel"), (["--model", "qwen3-8b", "--gpu", "h200", "--util", "2"], "util"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--util", "nan"], "util"), (["--model", "qwen3-8b", "--gpu", "h200", "--link", "string"], "string"),
    (["--model", "qwen3-8b", *("--gpu", "h200") * 2, "--parallel", "pp", "--layers", "20,20"], "layers"),
    (["--model", "qwen3-8b", *("--gpu", "h200") * 2, "--parallel", "pp", "--layers", "36,0"], "layers"),
    (["--model", "qwen3-8b", *("--gpu", "h200") * 2, "--parallel", "pp", "--layers", "a,b"], "layers"),
    (["--model", "qwen3-8b", *("--gpu", "h200") * 3, "--parallel", "tp"], "ranks"), (["--model", "qwen3-8b", "--gpu", "h200", "--mtp", "2"], "mtp"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--context", "0"], "context"), (["--model", "qwen3-8b", "--gpu", "h200", "--context", "99999999"], "context"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--kv-dtype", "fp3"], "kv_dtype"), (["--model", "qwen3-8b", "--gpu", "h200", "--engine", "x"], "version"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--acceptance", "1"], "acceptance"), (["--model", "qwen3-8b", "--gpu", "h200", "--catalog", "/nope"], "nope")])
def test_bad_input_is_one_line_and_exit_2(arguments, word):
    done = run("plan", *arguments)
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert word in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
