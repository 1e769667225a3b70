"""The config reader: published parameter counts, layer kinds, formats, and refusals of what it does not understand."""

import json
import math
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpmodel.planner.shapes.configs import parse_config, read_config
from tpmodel.formula.units import GB
from tpmodel.planner.engine.versions import Setting
from tpmodel.planner.engine.memory import plan_model

# shapes as the models' cards and config.json files print them, written down in short
SHORT = {"H": "hidden_size", "I": "intermediate_size", "L": "num_hidden_layers", "q": "num_attention_heads",
         "kv": "num_key_value_heads", "d": "head_dim", "V": "vocab_size", "E": "num_experts",
         "k": "num_experts_per_tok", "m": "moe_intermediate_size"}


def shape(model_type, **given):
    base = {"model_type": model_type, "max_position_embeddings": 32768, "hidden_act": "silu", "torch_dtype": "bfloat16"}
    return base | {SHORT.get(key, key): value for key, value in given.items()}


MLA = dict(kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128)
GDN = dict(linear_conv_kernel_dim=4, linear_key_head_dim=128, linear_num_key_heads=16, linear_value_head_dim=128)
QWEN_TOWER = dict(depth=27, hidden_size=1152, intermediate_size=4304, num_position_embeddings=2304, patch_size=16,
                  spatial_merge_size=2, temporal_patch_size=2, deepstack_visual_indexes=[])
SIGLIP = dict(hidden_size=1152, intermediate_size=4304, num_hidden_layers=27, patch_size=14)
GRANITE = dict(layer_types=["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)], mamba_d_conv=4,
               mamba_d_head=64, mamba_d_state=128, mamba_expand=2, mamba_n_groups=1, tie_word_embeddings=True,
               L=40, V=100352)
QWEN_27B = {"model_type": "qwen3_5", "tie_word_embeddings": False,
            "vision_config": QWEN_TOWER | {"out_hidden_size": 5120},
            "text_config": shape("qwen3_5_text", H=5120, I=17408, L=64, q=24, kv=4, d=256, V=248320,
                                 full_attention_interval=4, attn_output_gate=True, mtp_num_hidden_layers=1,
                                 linear_num_value_heads=48, mamba_ssm_dtype="float32", **GDN)}
MODELS = {  # name: (config, billions in all, billions of text, layer kinds)
    "Qwen3.5-27B": (QWEN_27B, 27.78, 26.895, {"state": 48, "full": 16}),
    "Qwen3-32B": (shape("qwen3", H=5120, I=25600, L=64, q=64, kv=8, d=128, V=151936), 32.76, 32.76, {"full": 64}),
    "Qwen3-30B-A3B": (
        shape("qwen3_moe", H=2048, I=6144, L=48, q=32, kv=4, d=128, V=151936, E=128, k=8, m=768),
        30.53, 30.53, {"full": 48}),
    "Qwen3-Next-80B-A3B": (
        shape("qwen3_next", H=2048, I=5120, L=48, q=16, kv=2, d=256, V=151936, E=512, k=10, m=512,
              linear_num_value_heads=32, shared_expert_intermediate_size=512, **GDN),
        79.67, 79.67, {"state": 36, "full": 12}),
    "Qwen2.5-7B": (
        shape("qwen2", H=3584, I=18944, L=28, q=28, kv=4, V=152064, sliding_window=131072, use_sliding_window=False),
        7.616, 7.616, {"full": 28}),
    "Llama-2-7B": (shape("llama", H=4096, I=11008, L=32, q=32, V=32000), 6.738, 6.738, {"full": 32}),
    "Llama-3.1-70B": (shape("llama", H=8192, I=28672, L=80, q=64, kv=8, V=128256), 70.55, 70.55, {"full": 80}),
    "Mistral-7B-v0.1": (
        shape("mistral", H=4096, I=14336, L=32, q=32, kv=8, V=32000, sliding_window=4096),
        7.242, 7.242, {"window": 32}),
    "Mixtral-8x7B": (
        shape("mixtral", H=4096, I=14336, L=32, q=32, kv=8, V=32000, num_local_experts=8, k=2),
        46.7, 46.7, {"full": 32}),
    "Gemma-2-9B": (
        shape("gemma2", H=3584, I=14336, L=42, q=16, kv=8, d=256, V=256000, sliding_window=4096),
        9.242, 9.242, {"window": 21, "full": 21}),
    "Gemma-3-4B, as sparse as its file": (
        {"model_type": "gemma3", "vision_config": SIGLIP, "text_config": {
            "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
            "sliding_window": 1024}},
        4.30, 3.88, {"window": 29, "full": 5}),
    "gpt-oss-20b": (
        shape("gpt_oss", H=2880, I=2880, L=24, q=64, kv=8, d=64, V=201088, attention_bias=True, num_local_experts=32,
              k=4, sliding_window=128, layer_types=["sliding_attention", "full_attention"] * 12),
        20.9, 20.9, {"window": 12, "full": 12}),
    "DeepSeek-V3": (
        shape("deepseek_v3", H=7168, I=18432, L=61, q=128, kv=128, V=129280, n_routed_experts=256, k=8, m=2048,
              n_shared_experts=1, first_k_dense_replace=3, q_lora_rank=1536, num_nextn_predict_layers=1, **MLA),
        682.6, 671.0, {"latent": 61}),
    "DeepSeek-V2-Lite": (
        shape("deepseek_v2", H=2048, I=10944, L=27, q=16, kv=16, V=102400, n_routed_experts=64, k=6, m=1408,
              n_shared_experts=2, first_k_dense_replace=1, q_lora_rank=None, **MLA),
        15.706, 15.706, {"latent": 27}),
    "Kimi-Linear-48B-A3B": (
        shape("kimi_linear", H=2304, I=9216, L=27, q=32, kv=32, d=72, V=163840, E=256, num_experts_per_token=8, m=1024,
              num_shared_experts=1, first_k_dense_replace=1, **MLA, linear_attn_config=dict(
                  full_attn_layers=[4, 8, 12, 16, 20, 24, 27], head_dim=128, num_heads=32, short_conv_kernel_size=4)),
        49.12, 49.12, {"state": 20, "latent": 7}),
    "Nemotron-H-8B": (
        shape("nemotron_h", H=4096, I=21504, q=32, kv=8, attention_head_dim=128, V=131072, mamba_head_dim=64,
              mamba_num_heads=128, n_groups=8, ssm_state_size=128, conv_kernel=4, mlp_hidden_act="relu2",
              hybrid_override_pattern="M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"),
        8.10, 8.10, {"state": 24, "none": 24, "full": 4}),
    "Granite-4.0-H-Small": (
        shape("granitemoehybrid", H=4096, I=768, q=32, kv=8, mamba_n_heads=128, num_local_experts=72, k=10,
              shared_intermediate_size=1536, **GRANITE),
        32.2, 32.2, {"state": 36, "full": 4}),
    "Granite-4.0-H-Micro": (
        shape("granitemoehybrid", H=2048, I=8192, q=32, kv=8, mamba_n_heads=64, num_local_experts=0,
              shared_intermediate_size=8192, **GRANITE),
        3.19, 3.19, {"state": 36, "full": 4}),
    "Jamba-1.5-Mini": (
        shape("jamba", H=4096, I=14336, L=32, q=32, kv=8, V=65536, E=16, k=2, mamba_d_conv=4, mamba_d_state=16,
              mamba_dt_rank=256, mamba_expand=2),
        51.6, 51.6, {"state": 28, "full": 4}),
    "GLM-4.5-Air": (
        shape("glm4_moe", H=4096, I=10944, L=46, q=96, kv=8, d=128, V=151552, n_routed_experts=128, k=8, m=1408,
              n_shared_experts=1, first_k_dense_replace=1, attention_bias=True),
        106.85, 106.85, {"full": 46}),
    "Phi-4": (
        shape("phi3", H=5120, I=17920, L=40, q=40, kv=10, V=100352, sliding_window=None), 14.66, 14.66, {"full": 40}),
    "OLMo-3-7B": (
        shape("olmo3", H=4096, I=11008, L=32, q=32, kv=32, V=100278, sliding_window=4096,
              layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 8),
        7.298, 7.298, {"window": 24, "full": 8}),
    "Command-R7B": (
        shape("cohere2", H=4096, I=14336, L=32, q=32, kv=8, d=128, V=256000, sliding_window=4096),
        8.03, 8.03, {"window": 24, "full": 8}),
    "MiniMax-M2": (
        shape("minimax_m2", H=3072, I=1536, L=62, q=48, kv=8, d=128, V=200064, num_local_experts=256, k=8,
              num_mtp_modules=3, use_mtp=True),
        228.7, 228.7, {"full": 62}),
    "Llama-4-Scout (text)": (
        shape("llama4_text", H=5120, I=8192, intermediate_size_mlp=16384, L=48, q=40, kv=8, d=128, V=202048,
              num_local_experts=16, k=1, interleave_moe_layer_step=1),
        107.77, 107.77, {"chunk": 36, "full": 12}),
    "MiMo-V2-Flash": (
        shape("mimo_v2_flash", H=4096, I=16384, L=48, q=64, kv=4, d=192, v_head_dim=128, V=152576, sliding_window=128,
              n_routed_experts=256, k=8, m=2048, swa_num_attention_heads=64, swa_num_key_value_heads=8,
              swa_head_dim=192, swa_v_head_dim=128, hybrid_layer_pattern=[0] + [1] * 39 + [0] * 8,
              moe_layer_freq=[0] + [1] * 47),
        309, 309, {"window": 39, "full": 9}),
}
SMALL = shape("qwen3", H=64, I=128, L=4, q=8, kv=2, d=16, V=1000)


@pytest.mark.parametrize("name", MODELS)
def test_published_parameters_within_half_a_percent(name):
    config, billions, text, kinds = MODELS[name]
    found = parse_config(config)
    assert found.parameters / 1e9 == pytest.approx(billions, rel=0.005)
    assert found.text_parameters / 1e9 == pytest.approx(text, rel=0.005)
    assert found.kinds == kinds and list(parse_config(config).order) == list(found.order)


def test_a_small_model_by_hand():
    found = parse_config(SMALL)
    layer = 64 * 8 * 16 * 2 + 2 * 64 * 2 * 16 + 3 * 64 * 128 + 2 * 64
    assert found.parameters == 4 * layer + 2 * 1000 * 64 + 64
    assert found.weights_bytes == 2 * found.parameters and found.read_bytes == 2 * (found.parameters - 1000 * 64)
    tied = parse_config(SMALL | {"tie_word_embeddings": True})
    assert tied.read_bytes == tied.weights_bytes, "a tied table is read as the head"
    assert tied.weights_bytes == found.weights_bytes - 2 * 1000 * 64
    moe = parse_config(SMALL | {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32})
    experts = next(m for m in moe.modules if m.name == "experts")
    assert (experts.parameters, experts.read) == (4 * 8 * 3 * 64 * 32, 0.25)


def test_the_shapes_of_window_layers_differ():
    order = parse_config(MODELS["MiMo-V2-Flash"][0]).order
    assert (order[0].kv_heads, order[0].head_elements, order[0].value_head_elements) == (4, 192, 128)
    assert (order[1].kind, order[1].kv_heads, order[1].window_tokens) == ("window", 8, 128)
    gemma = shape("gemma4_text", H=256, I=512, L=6, q=8, kv=4, d=32, V=1000, global_head_dim=64,
                  num_global_key_value_heads=2, attention_k_eq_v=True, sliding_window=128,
                  layer_types=["sliding_attention"] * 5 + ["full_attention"])
    found = parse_config(gemma)
    assert (found.order[-1].kv_heads, found.order[-1].head_elements) == (2, 64)
    by_hand = 5 * 256 * 32 * (8 + 4 + 4 + 8) + 256 * 64 * (8 + 2 + 8)
    assert sum(m.parameters for m in found.modules if m.name == "attention") == by_hand


# --- formats ------------------------------------------------------------------------------------------

def modelopt_mixed():
    """The public NVFP4 build of the 27B hybrid: W4A16 in MLP and head, FP8 in both attentions, the rest in 16 bits."""
    layers = {"lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16}}
    for i in range(64):
        at = f"model.language_model.layers.{i}"
        layers |= {f"{at}.mlp.{p}_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16}
                   for p in ("gate", "up", "down")}
        names = [f"linear_attn.{p}" for p in ("in_proj_qkv", "in_proj_z", "out_proj")]
        if i % 4 == 3:
            names = [f"self_attn.{p}_proj" for p in "qkvo"]
        layers |= {f"{at}.{name}": {"quant_algo": "FP8"} for name in names}
    return {"quantization": {"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8", "quantized_layers": layers,
                             "exclude_modules": ["mtp*"]}}


def test_the_public_nvfp4_build_of_the_27b_hybrid():
    found = parse_config(QWEN_27B, modelopt_mixed())
    assert found.kv_dtype == "fp8"
    assert found.weights_bytes / 2**30 == pytest.approx(2 * 10.22, rel=0.005), "10.22 GiB a GPU at two GPUs"
    by = {(m.name, m.format): m.bytes / GB for m in found.modules}
    mlp, table = 64 * 3 * 5120 * 17408, 248320 * 5120
    assert by[("mlp", "nvfp4 (w4a16)")] == mlp * 4.5 / 8 / GB and by[("head", "nvfp4 (w4a16)")] == table * 4.5 / 8 / GB
    assert by[("embedding", "bf16")] == table * 2 / GB and ("attention", "fp8") in by
    assert ("mtp", "bf16") in by and ("vision", "bf16") in by
    unread = table * 2 + 2 * (found.parameters - found.text_parameters)
    assert found.read_bytes == pytest.approx(found.weights_bytes - unread, rel=1e-12)
    assert found.read_bytes / GB == pytest.approx(17.6, abs=0.1)


@pytest.mark.parametrize("q, module, bits", [
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "mlp", 8 + 32 / 16384),
    ({"quant_method": "fp8", "modules_to_not_convert": ["mlp"]}, "mlp", 16),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "model.layers.*.self_attn*"]},
     "mlp", 4.5),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "model.layers.*.self_attn*"]},
     "attention", 16),
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, "attention", 4 + 20 / 128),
    ({"quant_method": "compressed-tensors", "ignore": ["re:.*self_attn.*"], "config_groups": {"g": {
        "targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 32, "symmetric": True}}}},
     "mlp", 4.5),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "mlp", 4.5),
    ({"quant_method": "mxfp4"}, "mlp", 16),
])
def test_formats(q, module, bits):
    found = parse_config(SMALL | {"quantization_config": q})
    assert {m.bits for m in found.modules if m.name == module} == {bits}
    assert {m.bits for m in found.modules if m.name in ("embedding", "head", "norms")} == {16}


def test_gpt_oss_keeps_only_its_experts_in_mxfp4():
    quantised = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    found = parse_config(MODELS["gpt-oss-20b"][0] | {"quantization_config": quantised})
    assert {m.name for m in found.modules if m.bits == 4.25} == {"experts"}
    assert found.weights_bytes / GB == pytest.approx(13.76, rel=0.005), "the size of the public files"


# --- refusals -----------------------------------------------------------------------------------------

BAD = {
    "unknown kind": (SMALL | {"layer_types": ["full_attention"] * 3 + ["conv"]}, "layer_types = 'conv'"),
    "wrong number of layers": (SMALL | {"layer_types": ["full_attention"] * 3}, "one entry for each layer, 4 in all"),
    "no layers": ({k: v for k, v in SMALL.items() if k != "num_hidden_layers"}, "no num_hidden_layers"),
    "no vocabulary": ({k: v for k, v in SMALL.items() if k != "vocab_size"}, "no vocab_size"),
    "zero heads": (SMALL | {"num_attention_heads": 0}, "num_attention_heads = 0"),
    "heads do not divide": (SMALL | {"num_key_value_heads": 3}, "a divisor of the 8 attention heads"),
    "text": (SMALL | {"hidden_size": "64"}, "hidden_size = '64'"),
    "list": (SMALL | {"intermediate_size": [1, 2]}, "intermediate_size = "),
    "fraction": (SMALL | {"head_dim": 16.5}, "head_dim = 16.5"),
    "NaN": (SMALL | {"hidden_size": math.nan}, "hidden_size = nan"),
    "huge": (SMALL | {"hidden_size": 10**30}, "hidden_size = 1000"),
    "bool": (SMALL | {"hidden_size": True}, "hidden_size = True"),
    "too many layers": (SMALL | {"num_hidden_layers": 10**6}, "from 1 to 1000"),
    "not a flag": (SMALL | {"tie_word_embeddings": "no"}, "tie_word_embeddings = 'no'"),
    "shared caches": (SMALL | {"num_kv_shared_layers": 2}, "num_kv_shared_layers = 2"),
    "compressed cache": (SMALL | {"compress_ratios": [4, 128]}, "compress_ratios"),
    "recurrent without a pattern": (SMALL | {"mamba_n_heads": 4, "mamba_d_state": 16}, "which layers are recurrent"),
    "lightning": (SMALL | {"attn_type_list": [0, 0, 0, 1]}, "lightning"),
    "encoder": (SMALL | {"type_vocab_size": 2}, "type_vocab_size"),
    "cross attention": (SMALL | {"cross_attention_layers": [1]}, "cross_attention_layers"),
    "audio": (SMALL | {"audio_config": {"hidden_size": 3}}, "audio_config"),
    "tower without sizes": (SMALL | {"vision_config": {"depth": 3}}, "vision_config"),
    "many shapes": (SMALL | {"block_configs": [{}]}, "block_configs"),
    "more experts read than there are": (
        SMALL | {"num_experts": 2, "num_experts_per_tok": 4, "moe_intermediate_size": 8}, "num_experts_per_tok = 4"),
    "unknown format": (SMALL | {"quantization_config": {"quant_method": "magic"}}, "quant_method = 'magic'"),
    "unknown algorithm": (SMALL | {"quantization_config": {"quant_algo": "FP3"}}, "quant_algo = 'FP3'"),
    "format is no object": (SMALL | {"quantization_config": [1]}, "quantization_config"),
    "runaway pattern": (SMALL | {"quantization_config": {"quant_method": "fp8", "ignore": ["re:(a+)+$"]}},
                        "'re:(a+)+$' is not accepted: it must be a name with * and ?"),
    "broken pattern": (SMALL | {"quantization_config": {"quant_method": "fp8", "ignore": ["re:(("]}},
                       "a regular expression"),
    "state type": (QWEN_27B | {"text_config": QWEN_27B["text_config"] | {"mamba_ssm_dtype": "int3"}},
                   "mamba_ssm_dtype = 'int3'"),
    "linear without pattern": (SMALL | {"linear_num_value_heads": 4}, "full_attention_interval"),
    "empty": ({}, "no num_hidden_layers"),
    "lines in a name": ({"model_type": "a\nb"}, "this model (no model_type)"),
    "lines in a key": (SMALL | {"mamba\nx": 3}, "mamba x = 3"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_understood_is_refused_in_one_sentence(name):
    config, words = BAD[name]
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        parse_config(config)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_ranks_must_divide_the_heads():
    with pytest.raises(ValueError, match="ranks = 3 .*must divide the 8 attention heads"):
        plan_model(parse_config(SMALL), Setting(ranks=3), 1e9)
    assert plan_model(parse_config(SMALL), Setting(ranks=4), 1e9).fits


FILES = {"truncated": b'{"hidden_size": 5', "empty": b"", "list": b"[1]", "number": b"1", "binary": bytes(range(256)),
         "deep": b"[" * 100000, "deep objects": b'{"a":' * 100000,
         "digits": b'{"hidden_size": ' + b"9" * 5000 + b"}", "NaN": b'{"hidden_size": NaN}'}


@pytest.mark.parametrize("name", FILES)
def test_bad_files(name, tmp_path):
    (tmp_path / "config.json").write_bytes(FILES[name])
    with pytest.raises(ValueError) as error:
        read_config(tmp_path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_a_hundred_megabytes_of_nonsense_is_refused_at_once(tmp_path):
    with open(tmp_path / "config.json", "wb") as file:
        file.truncate(100_000_000)
    start = time.perf_counter()
    with pytest.raises(ValueError, match="larger than"):
        read_config(tmp_path)
    assert time.perf_counter() - start < 0.1
    with pytest.raises(ValueError, match="No such file"):
        read_config(tmp_path / "none.json")


def test_file_folder_and_the_quantisation_beside_it(tmp_path):
    config = QWEN_27B | {"time_step_limit": [0.0, math.inf]}
    (tmp_path / "config.json").write_text("\ufeff" + json.dumps(config), encoding="utf-8")
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(modelopt_mixed()))
    found = read_config(tmp_path)
    assert found == read_config(tmp_path / "config.json") and found.kv_dtype == "fp8" and found.weights_bytes < 22e9


@pytest.mark.parametrize("name", ["Qwen3.5-27B", "DeepSeek-V3"])
def test_reading_is_fast(name):
    start = time.perf_counter()
    parse_config(MODELS[name][0])
    assert time.perf_counter() - start < 0.2


JUNK = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
                    lambda inner: st.lists(inner, max_size=4)
                    | st.dictionaries(st.text(max_size=6), inner, max_size=3), max_leaves=6)
KEYS = sorted({key for config, *_ in MODELS.values() for key in {**config, **config.get("text_config", {})}}
              | {"quantization_config", "ignore", "text_config"})


@given(st.sampled_from(sorted(MODELS)), st.dictionaries(st.sampled_from(KEYS), JUNK, max_size=4),
       st.sets(st.sampled_from(KEYS), max_size=2), JUNK)
@settings(max_examples=400, deadline=None)
def test_no_config_breaks_the_reader(name, change, without, quantisation):
    config = dict(MODELS[name][0])
    target = dict(config.get("text_config", config))
    target = {k: v for k, v in (target | change).items() if k not in without}
    config = config | {"text_config": target} if "text_config" in config else target
    try:
        found = parse_config(config, quantisation if isinstance(quantisation, dict) else None)
    except ValueError as error:
        assert str(error) and "\n" not in str(error) and len(str(error)) < 400
    else:
        assert found.parameters > 0 and 0 <= found.read_bytes <= found.weights_bytes


def test_a_bare_star_leaves_all_in_16_bits():
    quant = {"quant_method": "modelopt", "quant_algo": "FP8"}
    whole, plain = (parse_config(SMALL | {"quantization_config": quant | more}, None, "m")
                    for more in ({}, {"exclude_modules": ["*"]}))
    assert whole.weights_bytes < plain.weights_bytes == 2 * plain.parameters


def test_llama_4_says_every_fourth_layer_without_saying_so():
    four = {"model_type": "llama4_text", "attention_chunk_size": 8192}
    kinds = lambda **more: parse_config(SMALL | four | more, None, "m").kinds
    assert kinds() == kinds(no_rope_layer_interval=4)
    with pytest.raises(ValueError, match="no_rope_layer_interval = 0"):
        kinds(no_rope_layer_interval=0)
