"""A shape of shapes.toml as the model folder that vLLM reads: a config.json, as vLLM's own readers want it."""

import json

from tpmodel.planner.shapes.models import shapes

CLASSES = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM",
           "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "mixtral": "MixtralForCausalLM",
           "gpt_oss": "GptOssForCausalLM", "deepseek_v3": "DeepseekV3ForCausalLM",
           "qwen3_5": "Qwen3_5ForConditionalGeneration", "gemma3_text": "Gemma3ForCausalLM",
           "gemma2": "Gemma2ForCausalLM", "glm4_moe": "Glm4MoeForCausalLM", "glm4": "Glm4ForCausalLM",
           "phi3": "Phi3ForCausalLM", "seed_oss": "SeedOssForCausalLM",
           "nemotron_h": "NemotronHForCausalLM", "qwen3_next": "Qwen3NextForCausalLM",
           "qwen3_5_text": "Qwen3_5ForCausalLM", "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
           "llama4_text": "Llama4ForCausalLM", "ministral3": "Ministral3ForCausalLM",
           "gemma4_text": "Gemma4ForCausalLM",
           "deepseek_v2": "DeepseekV2ForCausalLM", "hunyuan_v1_moe": "HunYuanMoEV1ForCausalLM",
           "glm4_moe_lite": "Glm4MoeLiteForCausalLM"}
TAKEN = {"Ministral3ForCausalLM": "MistralForCausalLM", "SeedOssForCausalLM": "TransformersForCausalLM",
         "HunYuanMoEV1ForCausalLM": "TransformersMoEForCausalLM"}  # what vLLM has for another's class
BESIDE = {"deepseek_v2": {"n_group": 1, "topk_group": 1}}  # what vLLM wants to read too
OUTER = ("architectures", "vision_config", "quantization_config", "tie_word_embeddings", "model_type")  # not the text's
ROUTER = {"n_group": 8, "topk_group": 4, "topk_method": "noaux_tc", "scoring_func": "sigmoid",
          "routed_scaling_factor": 2.5, "norm_topk_prob": True}  # DeepSeek-V3's; no number of a plan depends on it
ATTENTION, MLP = [f"self_attn.{part}_proj" for part in "qkvo"], [f"mlp.{part}_proj" for part in ("gate", "up", "down")]
TOWER = ("attn.qkv", "attn.proj", "mlp.linear_fc1", "mlp.linear_fc2")
STATE = ("linear_attn.in_proj_qkv", "linear_attn.in_proj_z", "linear_attn.out_proj")


def architecture(name):
    """The class that vLLM builds for a shape."""
    return CLASSES[shapes()[name]["model_type"]]


def built_as(name):
    """(runner, class) that vLLM takes for a shape; an embedding model's head is not one that writes."""
    own, named = shapes()[name].get("architectures"), architecture(name)
    return ("pooling", "MistralForEmbedding") if own == ["Ministral3Model"] else ("generate", TAKEN.get(named, named))


BUILDS = {  # the quantization_config of a ready build, in full
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm",
            "modules_to_not_convert": ["visual", "mtp"]},
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True},
    "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16,
              "ignore": ["lm_head", "*visual*", "mtp*"]},
    "fp8-block": {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"},
}


def write(name, folder, quant=None):
    """The folder, with the shape's config.json in it; of a ready build in a format, with that."""
    fields = dict(shapes()[name]) | ({"quantization_config": BUILDS[quant]} if quant else {})
    if "quantization_config" in fields and not quant:
        fields["quantization_config"] = quantization(fields)
    fields = {"architectures": [architecture(name)], "sliding_window": None} | fields  # or Mistral's class has a window
    if fields["model_type"] == "qwen3_5":  # a text model beside a vision tower
        text = {key: value for key, value in fields.items() if key not in OUTER}
        fields = {key: fields[key] for key in OUTER if key in fields}
        fields["text_config"] = text | {"model_type": "qwen3_5_text"}
    if fields["model_type"] == "deepseek_v3":
        fields |= ROUTER
    fields |= BESIDE.get(fields["model_type"], {})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


def quantization(fields):
    """The quantization_config in full: vLLM compares whole names where the shape has patterns."""
    said = dict(fields["quantization_config"])
    if said["quant_method"] == "fp8":
        depth = fields.get("vision_config", {}).get("depth", 0)
        kept = [f"visual.blocks.{i}.{part}" for i in range(depth) for part in TOWER]
        kept += ["visual.merger.linear_fc1", "visual.merger.linear_fc2", "lm_head", "mtp.fc"]
        kept += [f"mtp.layers.0.{part}" for part in ATTENTION + MLP]
        return said | {"activation_scheme": "dynamic"} | ({"ignored_layers": kept} if "ignored_layers" in said else {})
    if "config_groups" in said:  # layer by layer: FP8 for attention and state layers, NVFP4 weights for the rest
        fp8, fp4 = {"quant_algo": "FP8"}, {"quant_algo": "W4A16_NVFP4", "group_size": 16}
        layers = {"lm_head": fp4}
        for i in range(fields["num_hidden_layers"]):
            here = f"model.language_model.layers.{i}"
            full = (i + 1) % fields["full_attention_interval"] == 0
            layers |= {f"{here}.{part}": fp8 for part in (ATTENTION if full else STATE)}
            layers |= {f"{here}.{part}": fp4 for part in MLP}
        del said["config_groups"]
        return said | {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    return said
