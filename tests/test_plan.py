"""`tpmodel plan`: the numbers of its parts, the comparison, the line it prints, and what it refuses."""

import json
import shlex
import subprocess
import sys

import pytest

from tpmodel.planner.shapes.configs import parse_config
from tpmodel.catalog.gpus import gpu
from tpmodel.catalog.links import link
from tpmodel.planner.shapes.models import find_config, shapes
from tpmodel.planner.plan import assume, one_pass, placement
from tpmodel.planner.plan.plan import plan
from tpmodel.planner.engine import starts
from tpmodel.planner.engine.versions import Setting
from tpmodel.tools import cli

PAIR = ["rtx-5060-ti-16gb", "rtx-5060-ti-16gb"]
GIB = 2**30


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "tpmodel", *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("name, billions", [
    ("qwen3.8-27b", 27.78), ("qwen3-32b", 32.76), ("qwen3-30b-a3b", 30.53), ("qwen3-8b", 8.19), ("qwen3-4b", 4.02),
    ("qwen2.5-32b", 32.76), ("mistral-7b", 7.24), ("llama-3.1-8b", 8.03), ("llama-3.1-70b", 70.55),
    ("gpt-oss-20b", 20.9), ("mixtral-8x7b", 46.7),
    ("qwen2.5-1.5b", 1.54), ("deepseek-r1-distill-qwen-1.5b", 1.78), ("qwen3-coder-480b-a35b", 480.15),
    ("codellama-34b", 33.74), ("glm-4.6", 356.8),
    ("qwen3-14b", 14.77), ("qwen3-1.7b", 1.72), ("qwen3-0.6b", 0.596), ("qwen3-235b-a22b", 235.09),
    ("qwen3-next-80b-a3b", 79.67), ("qwen3.5-35b-a3b", 35.5), ("qwen3.5-9b", 9.2), ("qwen2.5-7b", 7.62),
    ("qwen2.5-14b", 14.77), ("qwen2.5-72b", 72.71), ("qwen2.5-3b", 3.09), ("llama-2-7b", 6.74),
    ("llama-2-13b", 13.02), ("llama-2-70b", 68.98), ("llama-3.2-1b", 1.236), ("llama-3.2-3b", 3.213),
    ("llama-3.1-405b", 405.9), ("llama-4-scout", 107.8), ("gpt-oss-120b", 116.8), ("gemma-3-4b", 3.88),
    ("gemma-3-12b", 11.77), ("gemma-3-27b", 27.01), ("gemma-2-9b", 9.24), ("gemma-2-27b", 27.23),
    ("gemma-4-31b", 30.7), ("gemma-4-26b-a4b", 25.2), ("mistral-small-24b", 23.57), ("mistral-nemo", 12.25),
    ("mistral-large", 122.6), ("ministral-8b", 8.02), ("ministral-3-3b", 3.43), ("ministral-3-8b", 8.49),
    ("ministral-3-14b", 13.5), ("mixtral-8x22b", 140.6), ("glm-4-32b", 32.57), ("deepseek-v2-lite", 15.71),
    ("kimi-k2", 1026), ("nemotron-3-nano-30b-a3b", 31.58), ("phi-4", 14.66), ("phi-3.5-mini", 3.82),
    ("yi-34b", 34.39), ("seed-oss-36b", 36.15), ("minimax-m2", 228.7), ("hunyuan-a13b", 80.4),
    ("tinyllama-1.1b", 1.1)])
def test_shapes_give_the_published_parameter_counts(name, billions):
    assert find_config(name).parameters / 1e9 == pytest.approx(billions, rel=0.005)


def test_the_articles_twenty_gigabytes_come_out_of_the_shape():
    config = find_config("qwen3.8-27b-nvfp4")
    kept = {m.name: m.bytes for m in config.modules if m.format == "bf16"}
    assert config.weights_bytes / 1e9 == pytest.approx(20.56, abs=0.02)
    assert kept["embedding"] == kept["head"] == 248320 * 5120 * 2
    unread = sum(kept[name] for name in ("embedding", "vision", "mtp"))
    assert config.read_bytes == pytest.approx(config.weights_bytes - unread)


def test_tensor_parallel_memory_and_speed_by_hand():
    found = plan("qwen3.8-27b-nvfp4", PAIR, "tp", kv_dtype="fp8")
    config, gpu = find_config("qwen3.8-27b-nvfp4"), found["gpus"][0]
    assert gpu["weights_bytes"] == (config.weights_bytes - sum(m.bytes for m in config.modules if m.name == "mtp")) / 2
    assert gpu["kv_bytes_per_token"] == 16 * 2 * 256 * 2
    assert gpu["budget_bytes"] == pytest.approx(0.92 * 15.48 * 2**30)
    assert gpu["kv_pool_bytes"] == pytest.approx(gpu["budget_bytes"] - gpu["weights_bytes"] - gpu["overhead_bytes"])
    terms = found["decode"]["terms"]
    assert terms["weight read"]["mid_ms"] == pytest.approx(config.read_bytes / 2 / (0.83 * 448e9) * 1e3)
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
    found = plan("nemotron-3-embed-8b", ["rtx-5080", "rtx-5060-ti-16gb"],
                 goal="prefill", link="nccl-shm-wsl2", reserve_gib="1.4,0")
    assert found["split"]["kind"] == "pp" and found["split"]["layers"][0] in (23, 24)
    by_kind = {(c["kind"], tuple(c["layers"])): c for c in found["compared"]}
    assert not by_kind[("one", (34,))]["fits"]
    tp, even = by_kind[("tp", (34,))], by_kind[("pp", (17, 17))]
    assert tp["prefill"]["mid"] < even["prefill"]["mid"] < found["prefill"]["mid"]
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
        f'{name} = {{ value = {value}, unit = "{unit}", kind = "measured", source = "mine", date = "2026-11-30" }}'
        for name, value, unit in (("vram_bytes", 48, "GiB"), ("memory_bytes_per_s", 900, "GB/s"),
                                  ("bf16_flop_per_s", 100, "TFLOP/s"))))
    found = plan("qwen3-32b", ["my-card", "my-card"], "tp", catalog=str(mine))
    assert found["fits"] and found["gpus"][0]["name"] == "my-card"


def test_json_has_the_promised_keys():
    done = run("plan", "--model", "qwen3.8-27b-nvfp4", *("--gpu", PAIR[0]) * 2,
               "--parallel", "tp", "--kv-dtype", "fp8", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    promised = {"gpus", "max_context_tokens", "decode", "prefill", "split", "verdict", "command", "assumptions"}
    assert promised <= set(found)
    assert set(found["gpus"][0]) == {"name", "weights_bytes", "kv_bytes_per_token", "state_bytes", "overhead_bytes",
                                     "overhead_range", "parts", "budget_bytes", "kv_pool_bytes"}
    assert {"low", "mid", "high", "unit", "limited_by", "terms"} <= set(found["decode"])
    assert found["command"].startswith("vllm serve")


def test_a_config_json_of_ones_own(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(shapes()["qwen3-8b"]))
    mine, named = (plan(model, ["rtx-4090"], "one") for model in (str(tmp_path), "qwen3-8b"))
    assert mine["max_context_tokens"] == named["max_context_tokens"]


@pytest.mark.thorough
@pytest.mark.parametrize("arguments, word", [
    (["--model", "nope", "--gpu", "h200"], "nope"), (["--model", "qwen3-8b", "--gpu", "nope"], "nope"),
    (["--model", "qwen3-8b"], "gpu"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--parallel", "tp"], "parallel"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--util", "2"], "util"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--util", "nan"], "util"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--link", "string"], "string"),
    (["--model", "qwen3-8b", *("--gpu", "h200") * 2, "--parallel", "pp", "--layers", "20,20"], "layers"),
    (["--model", "qwen3-8b", *("--gpu", "h200") * 2, "--parallel", "pp", "--layers", "36,0"], "layers"),
    (["--model", "qwen3-8b", *("--gpu", "h200") * 2, "--parallel", "pp", "--layers", "a,b"], "layers"),
    (["--model", "qwen3-8b", *("--gpu", "h200") * 3, "--parallel", "tp"], "ranks"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--mtp", "2"], "mtp"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--context", "0"], "context"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--context", "99999999"], "context"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--kv-dtype", "fp3"], "kv_dtype"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--engine", "x"], "version"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--engine=-1.5"], "version = '-1.5'"),
    *((["--model", "qwen3-8b", "--gpu", "h200", "--engine", text], "version")
      for text in ("0.\u0663", "0.5,nan", "0.33 or so", "0." + "9" * 400)),
    (["--model", "", "--gpu", "h200"], "model ''"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--kv-dtype", ""], "kv_dtype = ''"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--kv-dtype", "fp32"], "kv_dtype"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--catalog", ""], "catalog"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--reserve-gib", "200"], "h200 has 139.80"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--reserve-gib", "1_0"], "reserve-gib"),
    (["--model", "qwen3.8-27b", *("--gpu", "h200") * 6, "--parallel", "tp"], "4 key/value heads"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--acceptance", "1"], "acceptance"),
    (["--model", "qwen3-8b", "--gpu", "h200", "--catalog", "/nope"], "nope")])
def test_bad_input_is_one_line_and_exit_2(arguments, word):
    done = run("plan", *arguments)
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert word in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def reads(config, tokens, kind="one", count=1):
    return placement.reads(config, placement.place(config, (gpu("h200"),) * count, kind), tokens)[0]


def test_a_batch_reads_more_experts_but_each_dense_weight_once():
    dense, moe = find_config("qwen3-8b"), find_config("qwen3-30b-a3b")
    assert reads(dense, 64) == reads(dense, 1) == (pytest.approx(dense.read_bytes),)
    experts = sum(m.bytes for m in moe.modules if m.name == "experts")
    rest = sum(m.bytes for m in moe.modules if m.read == 1)
    for tokens, seen in ((1, 8 / 128), (2, 1 - (120 / 128) ** 2), (10**6, 1)):
        assert reads(moe, tokens) == (pytest.approx(rest + seen * experts),)


@pytest.mark.parametrize("name", list(shapes()))
@pytest.mark.parametrize("kind, count", [("one", 1), ("tp", 2), ("pp", 2), ("pp", 5)])
def test_what_the_gpus_hold_and_read_is_the_whole(name, kind, count):
    config = find_config(name)
    placed = placement.place(config, (gpu("h200"),) * count, kind)
    # the first and the last stage hold the table
    twice = placement.head_bytes(config) if kind == "pp" and placement._tied(config) else 0
    extra = assume.of_model(name, "loaded_extra_bytes")  # what loading takes beside the weights, on each GPU
    loaded = extra[1] * len(placed.weights_bytes) if extra else 0
    assert sum(placed.weights_bytes) == pytest.approx(config.weights_bytes + twice + loaded)
    assert sum(reads(config, 1, kind, count)) == pytest.approx(config.read_bytes)


def test_a_tied_table_is_kept_by_the_first_and_the_last_stage_and_read_by_the_last():
    tied = parse_config(shapes()["qwen3-8b"] | {"tie_word_embeddings": True})
    table, body = (sum(m.bytes for m in tied.modules if (m.name == "embedding") == wanted) for wanted in (True, False))
    placed = placement.place(tied, (gpu("h200"),) * 2, "pp")
    assert placed.weights_bytes == (pytest.approx(body / 2 + table), pytest.approx(body / 2 + table))
    assert reads(tied, 1, "pp", 2) == (pytest.approx(body / 2), pytest.approx(body / 2 + table))
    assert placement.head_bytes(tied) == table


def test_an_embedding_model_has_no_head_whether_tied_or_not():
    for tied in (False, True):
        config = parse_config(shapes()["nemotron-3-embed-8b"] | {"tie_word_embeddings": tied})
        first, last = placement.place(config, (gpu("h200"),) * 2, "pp", (20, 14)).weights_bytes
        # article 2 prints 9.25 and 5.81 GiB
        assert first - last == pytest.approx(6 * 0.4067 * GIB + 1.0 * GIB, rel=2e-3)
        assert config.parameters == pytest.approx(8.0e9, rel=0.02)
        assert config.read_bytes == pytest.approx(config.weights_bytes - 131072 * 4096 * 2)
    chat = parse_config(shapes()["nemotron-3-embed-8b"] | {"architectures": ["MistralForCausalLM"]})
    assert chat.parameters - config.parameters == 131072 * 4096


def test_a_draft_reads_the_head_and_of_the_experts_the_active_ones():
    dense, moe = find_config("qwen3.8-27b-nvfp4"), find_config("deepseek-v3")
    held = lambda config, *names: sum(m.bytes for m in config.modules if m.name in names)
    assert one_pass.draft_bytes(dense, 1) == pytest.approx(held(dense, "mtp", "head"))
    assert one_pass.draft_bytes(moe, 1) - held(moe, "head") == pytest.approx(0.06 * held(moe, "mtp"), rel=0.2)


def test_no_batch_is_faster_than_its_cache_fits():
    many = plan("qwen3-8b", ["rtx-5060-ti-16gb"] * 2, "tp", batch=64)
    assert many["context_tokens"] * 64 <= many["gpus"][0]["kv_pool_bytes"] / many["gpus"][0]["kv_bytes_per_token"]
    assert "for each of 64 sequences" in many["verdict"] and "--max-num-seqs 64" in many["command"]
    assert not plan("qwen3-8b", ["rtx-5060-ti-16gb"] * 2, "tp", batch=64, context=8192)["fits"]


def test_layers_with_a_mixer_or_an_ffn_alone_have_one_all_reduce():
    order = list("M*E-" * 4)
    config = parse_config(shapes()["qwen3-30b-a3b"] | {
        "model_type": "nemotron_h", "num_hidden_layers": 16, "hybrid_override_pattern": "".join(order),
        "mamba_num_heads": 64, "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4,
        "n_routed_experts": 128})
    terms = one_pass.terms(config, placement.place(config, (gpu("h200"),) * 2, "tp"), link("nvlink-h200"),
                           one_pass.decode(Setting(ranks=2), 1024))
    # the low-latency protocol sends twice the bytes
    assert terms["all-reduces"][1] == pytest.approx(16 * (0.61 * 15.6e-6 + 2 * config.hidden * 2 / 300e9))


def test_more_gpus_pay_further_hops():
    config = find_config("qwen3-8b")
    of = lambda n, end: one_pass.terms(config, placement.place(config, (gpu("h200"),) * n, "tp"), link("nvlink-h200"),
                                       one_pass.prompt(Setting(ranks=n), 1))["all-reduces"][end]
    hops_s = 72 * 2 * (8 - 2) * 0.6e-6  # 72 all-reduces, six more GPUs there and back
    assert of(8, 1) - of(2, 1) == pytest.approx(hops_s, rel=0.01) and of(8, 2) == pytest.approx(of(2, 2), rel=0.01)


def test_a_short_prompt_waits_for_the_weights():
    config = find_config("qwen3-8b")
    short = plan("qwen3-8b", ["h200"], "one", context=1)["prefill"]
    # 144 products start, which are part of what vLLM's kernels take: 75,000 cycles a layer
    kernels = max(144 * 7.27e-6, 36 * 75_000 / 1.98e9)
    waited = config.read_bytes / 0.898 / gpu("h200").memory_bytes_per_s + 0.8e-3 + kernels
    assert short["mid"] == pytest.approx(1 / waited, rel=1e-3)


def test_offload_makes_room_for_the_context_that_is_asked_for():
    for tokens in (1000, 30000):
        found = plan("llama-3.1-70b", ["rtx-3090"], "offload", context=tokens)
        assert found["fits"] and found["max_context_tokens"] >= tokens
    assert plan("llama-3.1-70b", ["rtx-3060-12gb"], "offload", context=131072)["fits"] is False


def test_auto_prefers_the_longer_context_to_a_few_tokens_at_full_speed():
    found = plan("qwen3-8b", ["rtx-3090", "rtx-3060-12gb"], util=0.7)  # half of it does not fit on the smaller
    one = next(c for c in found["compared"] if c["kind"] == "one")
    assert 0 < one["max_context_tokens"] < assume.PROMPT_TOKENS and one["decode"]["mid"] > found["decode"]["mid"]
    assert found["split"]["kind"] == "pp" and found["context_tokens"] == assume.PROMPT_TOKENS


@pytest.mark.parametrize("count", [3, 7, 64])
def test_auto_with_more_gpus_than_a_split_can_use(count):
    found = plan("gpt-oss-20b", ["h200"] * count, link="nvlink-h200")
    assert found["fits"] and (count < 24 or all(c["kind"] != "pp" for c in found["compared"]))


def test_a_reserve_lowers_the_one_fraction_of_all_gpus():
    found = plan("nemotron-3-embed-8b", ["rtx-5080", "rtx-5060-ti-16gb"], "pp", reserve_gib="3,0")
    size, context = gpu("rtx-5080").reported_bytes, starts.context(gpu("rtx-5080"), 2).base
    assert found["util"] <= 1 - (3 * GIB + context) / size < found["util"] + 0.001
    sizes = [gpu(name).reported_bytes for name in ("rtx-5080", "rtx-5060-ti-16gb")]
    assert [g["budget_bytes"] for g in found["gpus"]] == [found["util"] * one for one in sizes]
    assert f"--gpu-memory-utilization {found['util']:g} " in found["command"]
    assert any("in place of 0.92" in said for said in found["assumptions"])


def test_mtp_without_an_acceptance_is_a_stated_range():
    found, mid = (plan("qwen3.8-27b-nvfp4", PAIR, "tp", kv_dtype="fp8", mtp=3, acceptance=a)
                  for a in (None, assume.ACCEPTANCE[1]))
    assert found["decode"]["mid"] == mid["decode"]["mid"] and found["decode"]["low"] < mid["decode"]["low"]
    assert any("accepted with a chance" in said for said in found["assumptions"])


def test_the_command_can_be_pasted(tmp_path):
    folder = tmp_path / "my build's folder"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(shapes()["qwen3.6-27b-nvfp4"]))
    command = lambda *args, **more: shlex.split(plan(*args, **more)["command"])
    for path in (folder, folder / "config.json"):
        words = command(str(path), PAIR, "tp", mtp=2, context=8192)
        assert words[:3] == ["vllm", "serve", str(folder)] and "--kv-cache-dtype" not in words  # the build says fp8
        drafting = json.loads(words[words.index("--speculative-config") + 1])
        assert drafting == {"method": "mtp", "num_speculative_tokens": 2}
    assert "--kv-cache-dtype bfloat16" in " ".join(command(str(folder), PAIR, "tp", kv_dtype="bf16", context=8192))
    assert command("qwen3-32b", ["h200"], "one")[2] == "Qwen/Qwen3-32B"
    assert command("qwen3-32b", ["h200"], "one")[-2:] == ["--max-num-batched-tokens", "2048"]
    assert plan("llama-3.1-70b", PAIR, "tp")["command"] == ""


def test_at_the_crossover_tensor_parallel_and_the_pipeline_are_equally_fast(tmp_path):
    found = plan("qwen3.8-27b-nvfp4", PAIR, kv_dtype="fp8", context=8192, goal="prefill")
    meeting = found["crossover"]["link_bytes_per_s"]
    assert f"tp is ahead of pp in prefill above {meeting / 1e9:,.1f} GB/s" in found["verdict"]
    mine, shm = tmp_path / "links.toml", link("shm")
    for factor, faster in ((1.0, None), (0.5, "pp"), (2.0, "tp")):
        numbers = [("link_bytes_per_s", meeting * factor / 1e9, "GB/s"),
                   *((name, getattr(shm, name) * 1e6, "us") for name in ("allreduce_latency_s", "bulk_latency_s"))]
        mine.write_text('[mine]\nname = "Mine"\n' + "".join(
            f'{name} = {{ value = {value}, unit = "{unit}", kind = "measured", source = "s", date = "d" }}\n'
            for name, value, unit in numbers))
        plans = {kind: plan("qwen3.8-27b-nvfp4", PAIR, kind, kv_dtype="fp8", context=8192, link="mine",
                            catalog=str(mine)) for kind in ("tp", "pp")}
        rates = {kind: planned["prefill"]["mid"] for kind, planned in plans.items()}
        if faster is None:
            assert rates["tp"] == pytest.approx(rates["pp"], rel=1e-3)
        else:
            assert max(rates, key=rates.get) == faster


def test_the_batch_at_which_ways_meet_fits_in_both():
    def found(kind="auto", **more):
        return plan("qwen3-8b", ["rtx-4090"] * 2, kind, context=1024, host="2x epyc-zen2", **more)

    batch = found()["crossover"]["batch"]
    assert all(found(kind, batch=batch)["fits"] for kind in ("tp", "pp"))
    assert found(util=0.42)["crossover"]["batch"] is None and not found("tp", batch=batch, util=0.42)["fits"]


def test_a_latent_layer_multiplies_its_heads_not_its_latent():
    """DeepSeek-V3: 128 heads, keys of 128 + 64, values of 128; two products of 2 FLOP over half of 1,000 x 1,000 pairs,
    61 layers."""
    config = find_config("deepseek-v3")
    placed = placement.place(config, (gpu("h200"),) * 8, "tp")
    pass_ = one_pass.view(config, placed, link("nvlink-h200"), one_pass.prompt(Setting(ranks=8), 1000), 1)
    flop = 2 * 61 * 128 * (128 + 64 + 128) * 1000 * 1000 / 2
    assert pass_.attention_s == pytest.approx(flop / 8 / (0.6 * 989.4e12))


def test_a_large_batch_turns_decode_to_the_pipeline_on_a_slow_link():
    slow = {"context": 1024, "host": "2x epyc-zen2"}
    one = plan("qwen3-8b", ["rtx-4090", "rtx-4090"], **slow)
    batch = one["crossover"]["batch"]
    assert one["split"]["kind"] == "tp" and batch
    tp, pp = (plan("qwen3-8b", ["rtx-4090", "rtx-4090"], kind, batch=batch, **slow)["decode"]["mid"]
              for kind in ("tp", "pp"))
    assert pp >= tp


@pytest.mark.parametrize("gpu", ["RTX-3090", "rtx 3090", "NVIDIA GeForce RTX 3090", "geforce_rtx_3090"])
@pytest.mark.parametrize("model", ["qwen3-8b", "Qwen/Qwen3-8B", "QWEN3 8b", "qwen/qwen3_8b"])
def test_names_are_forgiven_their_case_spaces_and_vendor(model, gpu, capsys):
    lines = []
    for one, cards in ((model, ["--gpu", f"2x {gpu}"]), ("qwen3-8b", ["--gpu", "rtx-3090"] * 2)):
        assert cli.main(["plan", "--model", one, *cards, "--json"]) == 0
        lines.append(capsys.readouterr().out)
    assert lines[0] == lines[1]


def test_a_name_that_is_not_there_gets_the_nearest(capsys):
    assert cli.main(["plan", "--model", "qwen3-9b", "--gpu", "h200"]) == 2
    assert "'qwen3-9b' is neither a path to a config.json nor in the catalog: the nearest are qwen3.5-9b, qwen3-" in (
        capsys.readouterr().err)
    assert cli.main(["plan", "--model", "qwen3-8b", "--gpu", "rtx-309"]) == 2
    assert "'rtx-309' is not in gpus.toml: the nearest are rtx-3090, " in capsys.readouterr().err
