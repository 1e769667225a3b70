"""Parameters of each module, from the shapes: what is counted where, what one decode step reads."""

import re
from collections import defaultdict

from .fields import refuse
from .layers import Module, Tower
from .quant import FULL, PLAIN, Formats

UNGATED = ("relu2", "gelu_new", "gelu_fast", "gelu_pytorch", "relu")
UNGATED_GELU = ("starcoder2", "phi", "gpt_neox", "gpt_bigcode", "gpt2")
MLP_NAMES = {**dict.fromkeys(("mixtral", "minimax_m2", "granitemoehybrid"), "block_sparse_moe"), "gemma4_text": "moe",
             **dict.fromkeys(("llama4_text", "jamba"), "feed_forward"), "nemotron_h": "mixer"}
MIXERS = {"gdn": "linear_attn", "mamba1": "mamba", "mamba2": "mamba"}
QKV_BIAS = ("qwen2", "qwen2_moe", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text")
# architectures of what gives vectors or classes: no output head
TRUNK = re.compile(r"(?!.*(LMHead|Chat|GLM)).*Model$|.*For(Sequence|Token)Classification$")
NORMS = {"gemma2": 4, "gemma3_text": 4, "gemma4_text": 4, "nemotron_h": 1}  # of a layer, where they are not 2


def attention(f, layer):
    """{projection: parameters} of one attention layer."""
    hidden, heads = f("hidden"), f("heads")
    if layer.kind == "latent":
        nope, rope, value, query = f("qk_nope_head_dim"), layer.rope_elements, f("v_head_dim"), f("q_lora_rank", 0, 0)
        latent, wide = layer.latent_elements, heads * (nope + rope)
        found = {"q_a_proj": hidden * query, "q_b_proj": query * wide} if query else {"q_proj": hidden * wide}
        found |= {"kv_a_proj_with_mqa": hidden * (latent + rope), "kv_b_proj": latent * heads * (nope + value),
                  "o_proj": heads * value * hidden}
        if f.flag("mla_use_output_gate"):
            found["g_proj"] = hidden * heads * value
        if d := layer.index_elements:
            n = f("index_n_heads")
            found |= {"indexer.wq_b": query * n * d, "indexer.wk": hidden * d, "indexer.weights_proj": hidden * n}
        return found
    if layer.kind in ("window", "chunk"):
        heads = f.integer("swa_num_attention_heads", heads, 1)
    d, d_v, kv = layer.head_elements, layer.value_head_elements, layer.kv_heads
    gates = 2 if f.flag("attn_output_gate", f.family == "qwen3_next") else 1
    found = {"q_proj": hidden * heads * d * gates, "k_proj": hidden * kv * d, "v_proj": hidden * kv * d_v,
             "o_proj": heads * d_v * hidden}
    if f.flag("attention_k_eq_v") and layer.kind == "full":
        del found["v_proj"]
    bias = (heads + kv) * d + kv * d_v if f.flag("attention_bias", f.family in QKV_BIAS) else 0
    return found | {"bias": bias + (hidden if f.flag("attention_bias") else 0)}


def recurrent(f, state):
    """{projection: parameters} of one recurrent layer."""
    hidden, heads, d, taps = f("hidden"), state.value_heads, state.value_elements, state.convolution
    inner, keys = heads * d, state.key_heads * state.key_elements
    if state.family == "gdn":
        joined = {"in_proj_qkvz": hidden * (2 * keys + 2 * inner), "in_proj_ba": hidden * 2 * heads}
        apart = {"in_proj_qkv": hidden * (2 * keys + inner), "in_proj_z": hidden * inner,
                 "in_proj_a": hidden * heads, "in_proj_b": hidden * heads}
        found = joined if f.family == "qwen3_next" else apart
        return found | {"out_proj": inner * hidden, "conv1d": (2 * keys + inner) * taps, "bias": 2 * heads + d}
    if state.family == "kda":
        low, full = hidden * d + d * inner, f.get("linear_attn_config").get("use_full_rank_gate") is True
        return dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), hidden * inner) | {
            "b_proj": hidden * heads, "f_proj": low, "g_proj": hidden * inner if full else low,
            "conv1d": 3 * inner * taps, "bias": inner + heads + d}
    if state.family == "mamba2":
        return {"in_proj": hidden * (2 * inner + 2 * keys + heads), "out_proj": inner * hidden,
                "conv1d": (inner + 2 * keys) * (taps + 1), "bias": inner + 3 * heads}
    rank, size = f("mamba_dt_rank", -(-hidden // 16)), state.key_elements
    return {"in_proj": hidden * 2 * inner, "x_proj": inner * (rank + 2 * size), "dt_proj": rank * inner + inner,
            "out_proj": inner * hidden, "conv1d": inner * (taps + 1), "bias": inner * size + inner}


def moe_layers(f, ffn):
    """'moe', 'dense' or 'none' for each layer."""
    n = len(ffn)
    if ffn[0] is not None:
        return ffn
    if not f("experts", 0, 0) or not f.flag("enable_moe_block", True):
        return ("dense",) * n
    first, freq = f.integer("first_k_dense_replace", f.integer("moe_layer_start_index", 0)), f.get("moe_layer_freq")
    if types := f.listed("mlp_layer_types", n):
        return tuple("moe" if kind == "sparse" else "dense" for kind in types)
    if isinstance(freq, list):
        return tuple("moe" if on else "dense" for on in f.listed("moe_layer_freq", n))
    count = lambda key: f.integer(key, 1, 1)
    freq = count("moe_layer_freq")
    step = count("decoder_sparse_step") * count("interleave_moe_layer_step") * count("moe_layer_interval")
    dense, listed = f.numbers("mlp_only_layers") or (), f.numbers("moe_layers")
    last, period = f.integer("moe_layer_end_index", n), count("expert_layer_period")
    offset = f.integer("expert_layer_offset", 0)
    steps = lambda i: i % freq == 0 and (i + 1) % step == 0 and i % period == offset % period
    moe = lambda i: i in listed if listed else first <= i <= last and steps(i) and i not in dense
    return tuple("moe" if moe(i) else "dense" for i in range(n))


def feed_forward(f, kind, gated):
    """[(module, path, parameters, fraction read, quantisable)] of one layer's FFN."""
    if kind == "none":
        return []
    hidden, matrices, family, wide = f("hidden"), 3 if gated else 2, f.family, f("intermediate", 0, 0)
    name = MLP_NAMES.get(family, "mlp")
    if kind == "dense":
        wide = f.integer("intermediate_size_mlp", f.integer("dense_intermediate_size", wide, 1), 1)
        if family == "granitemoehybrid":
            wide = f("shared_intermediate", wide)
        if not wide:
            raise ValueError("config.json has no intermediate_size, which its dense layers need")
        parts = ("gate_proj", "up_proj", "down_proj")[-matrices:]
        return [("mlp", f"{name}.{part}", hidden * wide, 1.0, True) for part in parts]
    experts, width, latent = f("experts"), f("expert_intermediate", wide or None), f("expert_hidden", hidden)
    share = f("experts_read") / experts
    if share > 1:
        raise refuse("num_experts_per_tok", f("experts_read"), f"at most the number of experts, {experts}")
    found = [("experts", f"{name}.experts.0.down_proj", experts * matrices * latent * width, share, True),
             ("router", f"{name}.gate", hidden * experts, 1.0, False)]
    if latent != hidden:
        found.append(("experts", f"{name}.latent_proj", 2 * hidden * latent, 1.0, True))
    if family == "gpt_oss":
        found.append(("bias", "bias", experts * (2 * width + hidden) + experts, share, False))
    shared = f("shared_intermediate", 0, 0) or f("shared_experts", 0, 0) * width
    shared = wide if family == "llama4_text" else shared
    if shared:
        found.append(("shared_experts", f"{name}.shared_experts.down_proj", matrices * hidden * shared, 1.0, True))
    if family == "gemma4_text":  # a dense MLP beside the experts
        found.append(("mlp", "mlp.down_proj", matrices * hidden * wide, 1.0, True))
    return found


def tower(f, config):
    """The Tower of a config whose vision fields `vision` has accepted; None where it has none."""
    v = config.get("vision_config")
    if not isinstance(v, dict) or not vision(f, config):
        return None
    take = lambda *keys, other=0: next((v[k] for k in keys if type(v.get(k)) is int and 0 < v[k] < 10**7), other)
    hidden = take("embed_dim" if "mlp_ratio" in v else "hidden_size", "vt_hidden_size")
    wide = take("intermediate_size", "vt_intermediate_size") or int(hidden * v.get("mlp_ratio", 0))
    patch, frames = take("patch_size", other=14), take("temporal_patch_size", other=1)
    merge = take("spatial_merge_size")
    picture = (take("image_size", other=0) // patch) ** 2
    tokens = f.integer("mm_tokens_per_image", 0) or f.integer("image_seq_length", 0)
    patches = merge**2 or (picture / tokens if picture and tokens else 4)
    return Tower(hidden, (3 if _gated_tower(f, v) else 2) * wide, 3 * frames * patch * patch, patches, frames > 1,
                 str(v.get("model_type", f.family)).startswith(("qwen2_vl", "qwen2_5_vl")))


def _gated_tower(f, v):
    return any(s in str(v.get("model_type", f.family)) for s in ("gemma4", "pixtral", "qwen2_5_vl"))


def vision(f, config):
    """Parameters of the vision tower and its projector."""
    if config.get("audio_config"):
        raise refuse("audio_config", config["audio_config"], "absent: an audio tower is not counted")
    v, out = config.get("vision_config"), f("hidden")
    if not v:
        return 0
    if not isinstance(v, dict):
        raise refuse("vision_config", v, "an object")
    take = lambda *keys, other=None: next((v[k] for k in keys if type(v.get(k)) is int and 0 < v[k] < 10**7), other)
    h = take("embed_dim" if "mlp_ratio" in v else "hidden_size", "vt_hidden_size")
    depth = take("depth", "num_hidden_layers", "vt_num_hidden_layers")
    wide = take("intermediate_size", "vt_intermediate_size")
    if h and not wide and isinstance(ratio := v.get("mlp_ratio"), (int, float)) and 0 < ratio < 100:
        wide = int(h * ratio)
    if not (h and depth and wide):
        raise ValueError("config.json has no vision_config with hidden_size, depth or num_hidden_layers, "
                         "and intermediate_size")
    matrices = 3 if _gated_tower(f, v) else 2
    layers = depth * (4 * h * take("qkv_hidden_size", other=h) + matrices * h * wide + 9 * h + wide)
    patch, frames = take("patch_size", other=14), take("temporal_patch_size", other=1)
    table = take("num_position_embeddings", other=0) * h + 2 * take("position_embedding_size", other=0) * h
    merge, out = take("spatial_merge_size", other=1), take("out_hidden_size", "text_hidden_size", other=out)
    merger = (h * merge * merge) ** 2 + h * merge * merge * out if merge > 1 else h * out
    deep = len(v["deepstack_visual_indexes"]) if isinstance(v.get("deepstack_visual_indexes"), list) else 0
    return layers + 3 * frames * patch * patch * h + table + merger * (1 + deep)


def modules_of(f, order, ffn, mtp, config, quantisation):
    """(every weight, by module, format and fraction read; the build's KV dtype and method of quantisation)."""
    plain = FULL if (f.get("dtype") or f.get("torch_dtype")) == "float32" else PLAIN
    q = f.get("quantization_config")
    formats = Formats(q if quantisation is None else quantisation, plain)
    hidden, table = f("hidden"), f("vocabulary") * f("hidden")
    names = ("mlp_hidden_act", "hidden_act", "hidden_activation", "activation_function")
    act = str(next(filter(None, map(f.get, names)), "silu"))
    gated = act not in UNGATED and not (act.startswith("gelu") and f.family in UNGATED_GELU)
    kinds, total = moe_layers(f, ffn), defaultdict(int)

    def add(module, path, parameters, read=1.0, quantisable=True):
        format, bits, group = formats(path, quantisable)
        total[(module, format, bits, read, group)] += parameters

    names = f.names("architectures")
    bare = names and all(map(TRUNK.match, names))
    tied = f.flag("tie_word_embeddings") and not bare
    add("embedding", "embed_tokens", table, 1.0 if tied else 0.0, False)
    if not tied and not bare:
        add("head", "lm_head", table, quantisable=False)
    for i, (layer, kind) in enumerate(zip(order, kinds)):
        if layer.kind != "none":
            family = layer.state.family if layer.state else None
            name = "mixer" if f.family == "nemotron_h" else MIXERS.get(family, "self_attn")
            module, parts = ("state", recurrent(f, layer.state)) if family else ("attention", attention(f, layer))
            for part, number in parts.items():
                quantisable = part not in ("bias", "conv1d", "in_proj_ba")
                add(module, f"layers.{i}.{name}.{part}", number, quantisable=quantisable)
        for module, path, *counted in feed_forward(f, kind, gated):
            add(module, f"layers.{i}.{path}", *counted)
        add("norms", "norm", NORMS.get(f.family, 2) * hidden, quantisable=False)
    add("norms", "norm", hidden, quantisable=False)
    if mtp:
        cached = next((layer for layer in order if layer.kind in ("full", "latent")), None)
        parts = list(attention(f, cached).values()) if cached else []
        parts += [number for _, _, number, _, _ in feed_forward(f, "moe" if "moe" in kinds else "dense", gated)]
        deep = formats(f"layers.{len(order)}.mtp")[0] == formats.plain[0]
        add("mtp", "mtp.layers.0", mtp * (sum(parts) + 2 * hidden * hidden + 4 * hidden), 0.0, not deep)
    if tower := vision(f, config):
        add("vision", "visual", tower, 0.0, False)
    modules = tuple(Module(module, number, *rest) for (module, *rest), number in total.items() if number)
    return modules, formats.kv_dtype, formats.method
