"""What a plan can be asked of a build: its options on the line, contradictions in one line."""

import json

import pytest

from tpmodel.catalog.gpus import gpu
from tpmodel.formula.units import GIB
from tpmodel.planner.engine import architectures, starts
from tpmodel.planner.engine.versions import Refused, TooMany, version
from tpmodel.planner.plan.plan import make
from tpmodel.planner.plan.split import split
from tpmodel.planner.plan.values import Ask
from tpmodel.planner.shapes.configs import parse_config
from tpmodel.planner.shapes.models import find_config, quantised, quants, shapes, sized

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
    (dict(max_num_seqs=500), "max_num_seqs = 500 is not accepted: it must be at most"),
    (dict(parallel="tp", max_num_seqs=159), ", the blocks for states of qwen3.8-27b-nvfp4"),
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
    with pytest.raises(TooMany) as found:
        asked(parallel="tp", context=65536, max_num_seqs=256)
    fine = int(found.value.blocks)  # at that many, memory is left for more
    assert f"--max-num-seqs {fine}" in asked(parallel="tp", context=65536, max_num_seqs=fine).command
    assert "--max-num-seqs 500" in asked("qwen3-8b", max_num_seqs=500).command  # no states: any number queues


@pytest.mark.parametrize("quant, bits", [("awq", 4 + 20 / 128), ("gptq", 4 + 20 / 128), ("fp8", 8), ("nvfp4", 4.5),
                                         ("fp8-block", 8 + 32 / 128**2), ("mxfp4", 4.25)])
def test_a_format_is_for_all_but_table_head_and_norms(quant, bits):
    """Qwen3-8B by hand: 36 layers of 4,096 x (4,096 q + 2 x 1,024 kv + 4,096 o + 3 x 12,288) weights."""
    layers = 36 * 4096 * (4096 + 2 * 1024 + 4096 + 3 * 12288)
    config = quantised("qwen3-8b", quant)
    assert sum(m.parameters for m in config.quantised) == layers and {m.bits for m in config.quantised} == {bits}
    assert config.weights_bytes == pytest.approx(layers * bits / 8 + 2 * (config.parameters - layers))
    assert {m.name for m in config.modules if m not in config.quantised} == {"embedding", "head", "norms"}


@pytest.mark.parametrize("quant", list(quants()))
def test_vision_drafts_and_router_stay_in_16_bits(quant):
    kept = lambda model: {m.name for m in quantised(model, quant).modules if m.format == "bf16"}
    assert {"vision", "mtp", "embedding", "head"} <= kept("qwen3.5-27b")
    assert "router" in kept("qwen3-30b-a3b") and "experts" not in kept("qwen3-30b-a3b")


def test_a_build_of_a_known_size_weighs_that_and_keeps_what_is_not_quantised():
    config = quantised("qwen3.5-27b", "nvfp4")
    heavier = sized(config, 20 * GIB)
    assert heavier.weights_bytes == pytest.approx(20 * GIB)
    same = lambda one: [m for m in one.modules if m.format == "bf16"]
    assert same(heavier) == same(config) and heavier.parameters == config.parameters
    assert {m.group for m in heavier.quantised} == {16}  # the kernels are those of the format
    best = asked("qwen3.5-27b", parallel="tp", quant="nvfp4", weights_gib=20.0, context=8192).best
    assert sum(best.placement.weights_bytes) == pytest.approx(20 * GIB)


def test_the_line_of_a_format_that_vllm_makes_while_loading():
    line = lambda **more: asked("qwen3-8b", parallel="tp", **more).command
    assert line(quant="fp8").startswith("vllm serve Qwen/Qwen3-8B ") and line(quant="fp8").endswith("fp8_per_tensor")
    assert line(quant="fp8-block").endswith(" --quantization fp8_per_block")
    assert line(quant="awq").startswith("vllm serve Qwen3-8B-awq ") and "--quantization" not in line(quant="awq")
    ready = line(quant="fp8", repository="RedHatAI/Qwen3-8B-FP8-dynamic")  # a build is loaded as it is
    assert ready.startswith("vllm serve RedHatAI/") and "--quantization" not in ready
    assert "--quantization" not in line(quant="mxfp4", weights_gib=5.5)
    tower = asked("qwen3.5-27b", parallel="tp", quant="mxfp4", context=8192).command
    assert tower.endswith("""--quantization mxfp4 --quantization-config.ignore '["*visual*", "*vision*", "*mtp*"]'""")


def test_what_a_format_takes_for_granted_is_said():
    said = " ".join(asked("qwen3-8b", quant="awq", weights_gib=5.7).assumptions)
    assert "stay in 16 bits (as in https://huggingface.co/Qwen/Qwen3-32B-AWQ)" in said and "weighs 5.7 GiB" in said
    assert "no repository of Qwen3-8B-awq is known" in said
    assert "while it loads them: --quantization fp8_per_tensor" in " ".join(asked("qwen3-8b", quant="fp8").assumptions)


def test_a_model_that_does_not_fit_says_which_format_would():
    """70.6 billion weights in 16 bits are 131 GiB, in eight 68, in four 37: two cards hold 48."""
    told = asked("llama-3.1-70b", ("rtx-3090",) * 2).verdict
    assert "--quant awq would fit with 37.0 GiB of weights" in told
    assert "--quant fp8 would fit" in asked("qwen3-32b", ("rtx-3090",) * 2, parallel="tp").verdict
    assert "--quant" not in asked("qwen3-8b").verdict + asked("llama-3.1-405b", ("rtx-3090",)).verdict
    assert "--quant" not in asked("deepseek-v3", ("rtx-3090",) * 2, parallel="tp").verdict  # it is in FP8


def test_a_file_of_ones_own_is_given_a_format(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(shapes()["qwen3-8b"]))
    mine, named = (asked(model, parallel="tp", quant="gptq").best for model in (str(tmp_path), "qwen3-8b"))
    assert mine.placement.weights_bytes == named.placement.weights_bytes


@pytest.mark.parametrize("more, words", [
    (dict(quant="int3"), "quant = 'int3' is not accepted: it must be one of fp8, fp8-block, awq, gptq, nvfp4, mxfp4"),
    (dict(quant="awq", model=HYBRID), f"{HYBRID} is quantised already"),
    (dict(weights_gib=5.0), "qwen3-8b is not quantised: say --quant too"),
    (dict(quant="awq", weights_gib=16.0), "it must be from 3.1 to 15.3 GiB"),
    (dict(quant="awq", weights_gib=-1.0), "it must be from 3.1 to 15.3 GiB"),
    (dict(quant="awq", model="qwen3-32b", parallel="tp", gpus=("h200",) * 16), "25600 / 16 = 1600, must be")])
def test_a_format_that_cannot_be_is_one_line(more, words):
    with pytest.raises(ValueError, match="^[^\n]*$") as error:
        asked(**{"model": "qwen3-8b"} | more)
    assert words in str(error.value)


@pytest.mark.parametrize("key, quant, release, fine", [
    ("t4", "awq", "0.33", True), ("t4", "mxfp4", "0.33", True), ("v100-sxm2-32gb", "awq", "0.19", False),
    ("v100-sxm2-32gb", None, "0.19", True), ("v100-sxm2-32gb", None, "0.33", False), ("mi300x", "awq", "0.33", True)])
def test_an_old_card_takes_no_build_that_its_kernels_do_not_know(key, quant, release, fine):
    config = quantised("qwen3-8b", quant) if quant else find_config("qwen3-8b")
    check = lambda: starts.check_build(config, [gpu("rtx-3090"), gpu(key)], version(release))
    if fine:
        return check()
    with pytest.raises(Refused, match=f"gpu = '{key}' is not accepted: .* 7.5.*, and this is 7"):
        check()


def test_eight_bits_of_modelopt_and_experts_in_mxfp4_need_ampere():
    with pytest.raises(Refused, match="'mxfp4' needs compute capability 8 in vLLM, and this is 7.5"):
        starts.check_build(find_config("gpt-oss-20b"), [gpu("t4")], version("0.33"))
    starts.check_build(find_config("gpt-oss-20b"), [gpu("a40")], version("0.33"))


def named_by(*names, **more):
    return parse_config(shapes()["qwen3-8b"] | {"architectures": list(names)} | more)


@pytest.mark.parametrize("name, pooling", [
    ("Qwen3ForCausalLM", False), ("Qwen3Model", True), ("GPT2LMHeadModel", False), ("InternVLChatModel", False),
    ("Qwen3ForSequenceClassification", True), ("JinaForRanking", True), ("ChatGLMModel", False),
    ("LlavaForConditionalGeneration", False), ("Qwen2ForRewardModel", True)])
def test_a_name_says_whether_a_model_writes(name, pooling):
    assert architectures.pools(named_by(name)) == pooling


@pytest.mark.parametrize("name, words", [
    ("BaichuanForCausalLM", "it was known until 0.23.0: say that --engine"), ("MineForCausalLM", "its registry and")])
def test_an_architecture_that_vllm_does_not_know_is_refused(tmp_path, name, words):
    config = shapes()["qwen3-8b"] | {"architectures": [name]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=f"architectures = '{name}' is not accepted: .*{words}"):
        asked(str(tmp_path))
    assert asked(str(tmp_path), engine="0.23").best.fits


@pytest.mark.parametrize("name", [
    "Qwen3ForCausalLM", "Ministral3Model", "Qwen3ForSequenceClassification", "ZayaForCausalLM"])
def test_a_known_name_may_end_otherwise_or_be_taken_by_transformers(name):
    architectures.check_architecture(named_by(name), version("0.33"), 2)


def test_what_cannot_be_cut_is_no_pipeline():
    config = named_by("Mamba2ForCausalLM")
    architectures.check_architecture(config, version("0.33"), 1)
    with pytest.raises(Refused, match="stages = 2 is not accepted: vLLM 0.33 cannot cut Mamba2ForCausalLM into"):
        architectures.check_architecture(config, version("0.33"), 2)


def test_a_classifier_has_no_head_of_the_vocabulary():
    whole, classes = named_by("Qwen3ForCausalLM"), named_by("Qwen3ForSequenceClassification")
    assert whole.parameters - classes.parameters == 151936 * 4096


EMBED = dict(model="nemotron-3-embed-8b", gpus=("rtx-5080", TI), link="nccl-shm-wsl2", reserve_gib="1.3,0", prompt=510,
             max_num_batched_tokens=8448)


def test_an_embedding_model_decodes_nothing_and_takes_documents_as_split_does():
    made = asked(**EMBED, parallel="pp", layers=(20, 14))
    other = split("nemotron-3-embed-8b", EMBED["gpus"], layers="20,14", reserve_gib="1.3,0")
    assert made.best.prefill.rates == pytest.approx(tuple(other["tokens_per_s"].values()))
    found = made.document()
    assert found["decode"] is None and found["runner"] == "pooling" and found["compared"][0]["decode"] is None
    assert found["command"].endswith(" --runner pooling") and found["users"] is None
    assert any(said.startswith("an embedding model: it decodes nothing") for said in made.assumptions)
    assert asked("qwen3-8b").document()["runner"] == "generate"


@pytest.mark.parametrize("cards, more", [
    (("rtx-5080", TI), dict(context=9000)), (("rtx-3060-12gb",) * 2, {}), (("rtx-4060-ti-16gb",) * 2, dict(util=0.7))])
def test_an_embedding_model_keeps_its_sequences_where_fewer_gain_nothing(cards, more):
    """Its overhead was measured: one sequence leaves no more cache than 256, and would take the documents singly."""
    made = asked("nemotron-3-embed-8b", cards, parallel="pp", **more)
    assert made.best.fits and made.best.at_once is None and "--max-num-seqs" not in made.command


def test_a_pooler_has_no_logits_and_a_pass_no_more_documents_than_run_at_once(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(shapes()["qwen3-8b"] | {"architectures": ["Qwen3Model"]}))
    base = dict(model=str(tmp_path), gpus=("rtx-4090",))
    parts = {row["quantity"] for row in asked(**base).best.memories[0]["parts"]}
    assert "graph_bytes" in parts and not {"sampler_bytes", "counts_bytes"} & parts
    one, many = (asked(**base, prompt=100, max_num_seqs=n) for n in (1, 21))
    per_pass = lambda made: made.best.prefill.rates[1] * sum(t[1] for t in made.best.prefill.terms.values())
    assert per_pass(many) == pytest.approx(2048 / 100 * per_pass(one))  # tokens of as many passes
    assert "--max-num-seqs 1 " in one.command


def test_auto_compares_an_embedding_model_by_its_documents():
    """The faster card gets more layers; asked for a decode, there is none to compare."""
    best = asked(**EMBED, goal="decode").best
    assert best.placement.kind == "pp" and best.placement.layers[0] > 20 and best.decode is None


def test_a_token_of_a_longer_document_meets_more():
    """Attention to all of a document: twice the length, twice the time of a token."""
    long, short = (asked(**{**EMBED, "prompt": tokens}, parallel="tp").best.prefill for tokens in (4096, 2048))
    assert long.terms["attention"][1] == pytest.approx(2 * short.terms["attention"][1], rel=1e-3)
    assert "engine's wait" not in long.terms
    with pytest.raises(ValueError, match="batch = 2 is not accepted: nemotron-3-embed-8b decodes nothing"):
        asked(**EMBED, batch=2)


def test_more_sequences_than_fit_wait_and_the_plan_says_how_many_do_not():
    made = asked("qwen3-8b", ("rtx-3090",) * 2, batch=64, context=32768, parallel="tp")
    users = made.best.users
    assert not made.best.fits and f"tp takes {users.largest_batch} of the 64 at once" in made.verdict
    assert f"{users.largest_together:,.1f} tokens/s together, and the others wait" in made.verdict
    fits = asked("qwen3-8b", ("rtx-3090",) * 2, batch=users.largest_batch, context=32768, parallel="tp")
    assert fits.best.fits and fits.best.decode.rates[1] == pytest.approx(users.largest_together)
    assert "wait" not in fits.verdict


def test_experts_of_awq_and_of_what_is_quantised_while_loading_may_have_any_rows():
    """768 / 4 = 192 rows: groups of 128 straddle ranks. vLLM has kernels, but not for an FP8 build on Ampere."""
    best = lambda key, **more: asked("qwen3-30b-a3b", (key,) * 4, parallel="tp", **more).best
    assert best("rtx-3090", quant="awq").fits and best("rtx-3090", quant="fp8-block").fits
    assert best("rtx-4090", quant="fp8-block", repository="me/mine").fits
    with pytest.raises(ValueError, match="768 / 4 = 192, must be a multiple of 128"):
        best("rtx-3090", quant="fp8-block", repository="me/mine")


def test_more_drafts_than_layers_that_draft_are_a_multiple_of_them(tmp_path):
    config = dict(shapes()["qwen3.5-27b"]) | {"mtp_num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    drafting = lambda mtp: asked(str(tmp_path), ("h200",), mtp=mtp, context=8192)
    assert drafting(1).best.fits and drafting(4).best.fits
    with pytest.raises(ValueError, match="mtp = 3 is not accepted: it must be at most the 2 MTP layers of"):
        drafting(3)


def test_the_text_part_of_a_model_that_sees_is_served_without_its_tower():
    plain, told = asked("qwen3-vl-8b"), asked("qwen3-vl-8b", text_only=True)
    assert "--language-model-only" in plain.command and plain.command == told.command
    assert any("with the path of its config.json the tower is counted" in said for said in plain.assumptions)
    assert "--language-model-only" not in asked("qwen3-8b").command


def test_no_more_sequences_than_a_pass_has_tokens():
    best = asked("qwen3-8b", max_num_batched_tokens=16).best
    assert best.at_once == 16 and asked("qwen3-8b").best.at_once is None
