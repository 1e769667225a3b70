"""Parameters of each module, from the shapes: what is counted where, what one decode step reads."""

import re
from collections import defaultdict

from .fields import refuse
from .layers import Module
from .quant import FULL, PLAIN, Formats

UNGATED = ("relu2", "gelu_new", "gelu_fast", "gelu_pytorch", "relu")
MLP_NAMES = {"mixtral": "block_sparse_moe", "minimax_m2": "block_sparse_moe", "granitemoehybrid": "block_sparse_moe", "llama4_text": "feed_forward",
             "nemotron_h": "mixer", "jamba": "feed_forward", "gemma4_text": "moe"}
QKV_BIAS = ("qwen2", "qwen2_moe", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text")
TRUNK = re.compile(r"(?!.*(LMHead|Chat|GLM)).*Model$")  # an embedding model's architecture: no output head
PER_LAYER_NORMS = {"gemma2": 4, "gemma3_text": 4, "gemma4_text": 4}


def attention(f, layer):
    """{projection: parameters} of one attention layer."""
    hidden, heads = f("hidden"), f("heads")
    if layer.kind == "latent":
        nope, rope, value, q_latent = f("nope"), layer.rope_elements, f("value_head_elements"), f("q_latent", 0, 0)
        found = {"q_a_proj": hidden * q_latent, "q_b_proj": q_latent * heads * (nope + rope)} if q_latent else {"q_proj": hidden * heads * (nope + rope)}
        found |= {"kv_a_proj_with_mqa": hidden * (layer.latent_elements + rope), "kv_b_proj": layer.latent_elements * heads * (nope + value),
                  "o_proj": heads * value * hidden}
        if f.flag("mla_use_output_gate"):
            found["g_proj"] = hidden * heads * value
        if layer.index_elements:
            n, d = f("index_heads"), layer.index_elements
            found |= {"indexer.wq_b": q_latent * n * d, "indexer.wk": hidden * d, "indexer.weights_proj": hidden * n}
        return found
    if layer.kind in ("window", "chunk"):
        heads = f.integer("swa_num_attention_heads", heads, 1)
    d, d_v, kv = layer.head_elements, layer.value_head_elements, layer.kv_heads
    found = {"q_proj": hidden * heads * d * (2 if f.flag("attn_output_gate", f.family == "qwen3_next") else 1), "k_proj": hidden * kv * d,
             "v_proj": hidden * kv * d_v, "o_proj": heads * d_v * hidden}
    if f.flag("attention_k_eq_v") and layer.kind == "full":
        del found["v_proj"]
    bias = (heads + kv) * d + kv * d_v if f.flag("attention_bias", f.family in QKV_BIAS) else 0
    return found | {"bias": bias + (hidden if f.flag("attention_bias") else 0)}


def recurrent(f, state):
    """{projection: parameters} of one recurrent layer."""
    hidden, inner, keys = f("hidden"), state.value_heads * state.value_elements, state.key_heads * state.key_elements
    heads = state.value_heads
    if state.family == "gdn":
        found = {"in_proj_qkvz": hidden * (2 * keys + 2 * inner), "in_proj_ba": hidden * 2 * heads} if f.family == "qwen3_next" else {
            "in_proj_qkv": hidden * (2 * keys + inner), "in_proj_z": hidden * inner, "in_proj_a": hidden * heads, "in_proj_b": hidden * heads}
        return found | {"out_proj": inner * hidden, "conv1d": (2 * keys + inner) * state.convolution, "bias": 2 * heads + state.value_elements}
    if state.family == "kda":
        low = state.value_elements
        gate = hidden * inner if f.get("linear_attn_config").get("use_full_rank_gate") is True else hidden * low + low * inner
        return {"q_proj": hidden * inner, "k_proj": hidden * inner, "v_proj": hidden * inner, "o_proj": inner * hidden, "b_proj": hidden * heads,
                "f_proj": hidden * low + low * inner, "g_proj": gate, "conv1d": 3 * inner * state.convolution, "bias": inner + heads + low}
    if state.family == "mamba2":
        return {"in_proj": hidden * (2 * inner + 2 * keys + heads), "out_proj": inner * hidden,
                "conv1d": (inner + 2 * keys) * (state.convolution + 1), "bias": inner + 3 * heads}
    rank, size = f("dt_rank", -(-hidden // 16)), state.key_elements
    return {"in_proj": hidden * 2 * inner, "x_proj": inner * (rank + 2 * size), "dt_proj": rank * inner + inner, "out_proj": inner * hidden,
            "conv1d": inner * (state.convolution + 1), "bias": inner * size + inner}


def moe_layers(f, ffn):
    """'moe', 'dense' or 'none' for each layer."""
    n = len(ffn)
    if ffn[0] is not None:
        return ffn
    if not f("experts", 0, 0) or not f.flag("enable_moe_block", True):
        return ("dense",) * n
    first, freq = f.integer("first_k_dense_replace", f.integer("moe_layer_start_index", 0)), f.get("moe_layer_freq", 1)
    types = f.listed("mlp_layer_types", n)
    if types:
        return tuple("moe" if kind == "sparse" else "dense" for kind in types)
    if isinstance(freq, list):
        return tuple("moe" if on else "dense" for on in f.listed("moe_layer_freq", n))
    freq = f.integer("moe_layer_freq", 1, 1)
    step = f.integer("decoder_sparse_step", 1, 1) * f.integer("interleave_moe_layer_step", 1, 1) * f.integer("moe_layer_interval", 1, 1)
    dense, listed, last = f.numbers("mlp_only_layers") or (), f.numbers("moe_layers"), f.integer("moe_layer_end_index", n)
    period, offset = f.integer("expert_layer_period", 1, 1), f.integer("expert_layer_offset", 0)
    steps = lambda i: i % freq == 0 and (i + 1) % step == 0 and i % period == offset % period
    moe = lambda i: i in listed if listed else first <= i <= last and steps(i) and i not in dense
    return tuple("moe" if moe(i) else "dense" for i in range(n))


def feed_forward(f, kind, gated):
    """[(module, path, parameters, fraction read, quantisable)] of one layer's FFN."""
    if kind == "none":
        return []
    hidden, matrices, family = f("hidden"), 3 if gated else 2, f.family
    name = MLP_NAMES.get(family, "mlp")
    wide = f("intermediate", 0, 0)
    if kind == "dense":
        wide = f.integer("intermediate_size_mlp", f.integer("dense_intermediate_size", wide, 1), 1)
        if f.family == "granitemoehybrid":
            wide = f("shared_intermediate", wide)
        if not wide:
            raise ValueError("config.json has no intermediate_size, which its dense layers need")
        return [("mlp", f"{name}.{p}", hidden * wide, 1.0, True) for p in ("gate_proj", "up_proj", "down_proj")[3 - matrices:]]
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
    if family == "llama4_text":
        shared = wide
    if shared:
        found.append(("shared_experts", f"{name}.shared_experts.down_proj", matrices * hidden * shared, 1.0, True))
    if f.family == "gemma4_text":  # a dense MLP beside the experts
        found.append(("mlp", "mlp.down_proj", matrices * hidden * wide, 1.0, True))
    return found


def vision(f, config):
    """Parameters of the vision tower and its projector."""
    if config.get("audio_config"):
        raise refuse("audio_config", config["audio_config"], "absent: an audio tower is not counted")
    v, out = config.get("vision_config"), f("hidden")
    if not v:
        return 0
    if not isinstance(v, dict):
        raise refuse("vision_config", v, "an object")
    take = lambda *keys: next((v[k] for k in keys if type(v.get(k)) is int and 0 < v[k] < 10**7), None)
    h, depth = take("embed_dim" if "mlp_ratio" in v else "hidden_size", "vt_hidden_size"), take("depth", "num_hidden_layers", "vt_num_hidden_layers")
    wide = take("intermediate_size", "vt_intermediate_size")
    if h and not wide and isinstance(ratio := v.get("mlp_ratio"), (int, float)) and 0 < ratio < 100:
        wide = int(h * ratio)
    if not (h and depth and wide):
        raise ValueError("config.json has no vision_config with hidden_size, depth or num_hidden_layers, and intermediate_size")
    gated = any(s in str(v.get("model_type", f.family)) for s in ("gemma4", "pixtral", "qwen2_5_vl"))
    qkv = take("qkv_hidden_size") or h
    patch, merge, out = take("patch_size") or 14, take("spatial_merge_size") or 1, take("out_hidden_size", "text_hidden_size") or out
    layers = depth * (4 * h * qkv + (3 if gated else 2) * h * wide + 9 * h + wide)
    table = (take("num_position_embeddings") or 0) * h + 2 * (take("position_embedding_size") or 0) * h
    merger = (h * merge * merge) ** 2 + h * merge * merge * out if merge > 1 else h * out
    deep = len(v["deepstack_visual_indexes"]) if isinstance(v.get("deepstack_visual_indexes"), list) else 0
    return layers + 3 * (take("temporal_patch_size") or 1) * patch * patch * h + table + merger * (1 + deep)


def modules_of(f, order, ffn, mtp, config, quantisation):
    """(modules, KV dtype of the build): every weight, by module, format and fraction read."""
    dtype = f.get("dtype") or f.get("torch_dtype")
    q = f.get("quantization_config")
    formats = Formats(quantisation if quantisation is not None else q, FULL if dtype == "float32" else PLAIN)
    hidden, table = f("hidden"), f("vocabulary") * f("hidden")
    act = str(f.get("mlp_hidden_act") or f.get("hidden_act") or f.get("hidden_activation") or f.get("activation_function") or "silu")
    gated = act not in UNGATED and not (act.startswith("gelu") and f.family in ("starcoder2", "phi", "gpt_neox", "gpt_bigcode", "gpt2"))
    kinds, nemotron = moe_layers(f, ffn), f.family == "nemotron_h"
    total = defaultdict(int)

    def add(module, path, parameters, read=1.0, quantisable=True):
        total[(module, *formats(path, quantisable), read)] += parameters

    names = f.get("architectures")
    bare = isinstance(names, list) and bool(names) and all(isinstance(name, str) and TRUNK.match(name) for name in names)
    tied = f.flag("tie_word_embeddings") and not bare
    add("embedding", "embed_tokens", table, 1.0 if tied else 0.0, False)
    if not tied and not bare:
        add("head", "lm_head", table, quantisable=False)
    norms = PER_LAYER_NORMS.get(f.family, 1 if nemotron else 2) * hidden
    for i, (layer, kind) in enumerate(zip(order, kinds)):
        if layer.kind != "none":
            states = recurrent(f, layer.state) if layer.state else None
            name = "mixer" if nemotron else "linear_attn" if states and layer.state.family == "gdn" else "mamba" if states and "mamba" in layer.state.family else "self_attn"
            for part, number in (states or attention(f, layer)).items():
                add("state" if states else "attention", f"layers.{i}.{name}.{part}", number, quantisable=part not in ("bias", "conv1d", "in_proj_ba"))
        for module, path, number, read, quantisable in feed_forward(f, kind, gated):
            add(module, f"layers.{i}.{path}", number, read, quantisable)
        add("norms", "norm", norms, quantisable=False)
    add("norms", "norm", hidden, quantisable=False)
    if mtp:
        cached = next((layer for layer in order if layer.kind in ("full", "latent")), None)
        parts = list(attention(f, cached).values()) if cached else []
        parts += [number for _, _, number, _, _ in feed_forward(f, "moe" if "moe" in kinds else "dense", gated)]
        deep = formats(f"layers.{len(order)}.mtp")[0] == formats.plain[0]
        add("mtp", "mtp.layers.0", mtp * (sum(parts) + 2 * hidden * hidden + 4 * hidden), 0.0, not deep)
    if tower := vision(f, config):
        add("vision", "visual", tower, 0.0, False)
    return tuple(Module(module, number, name, bits, read) for (module, name, bits, read), number in total.items() if number), formats.kv_dtype
