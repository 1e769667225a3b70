"""Any Hugging Face config.json -> kinds of layers; shapes, parameters and formats of modules. No network is needed."""

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from .fields import FIELDS, HARMLESS, HINT, MOST, Fields, load_json, refuse
from .layers import Layers, State
from .weights import modules_of, tower

TEXT = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config")
KINDS = {"full": "full_attention attention * global global_attention deepseek_sparse_attention",
         "window": "sliding_attention sliding_window local local_attention", "chunk": "chunked_attention",
         "state": "linear_attention mamba mamba2 M", "none": "moe mlp E -"}
NAMES = {name: kind for kind, names in KINDS.items() for name in names.split()}
FFN_ONLY = {"moe": "moe", "E": "moe", "mlp": "dense", "-": "dense"}
LISTS = ("layer_types", "layers_block_type", "hybrid_override_pattern")
# rules that a list of layers makes idle
RULES = ("sliding_window_pattern", "_sliding_window_pattern", "full_attention_interval", "no_rope_layers",
         "no_rope_layer_interval", "attn_layer_indices", "max_window_layers", "use_sliding_window")
LINEAR = "which a model with linear attention needs"
WHOLE = ("bf16", "fp32")  # formats of weights that are not quantised
STATE_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "auto": 2.0}


def kinds_of(f, n):
    """(cache kind, FFN kind or None) of each layer; None leaves the FFN to the MoE rules."""
    if blocks := f.get("block_configs"):
        raise refuse("block_configs", blocks, "absent: layers of many different shapes are not modelled")
    for key in LISTS:
        if names := f.listed(key, n):
            f.seen.update(LISTS, RULES)
            for name in names:
                if name not in NAMES:
                    raise refuse(key, name, "full, sliding, chunked or linear attention, mamba, moe or mlp")
            alone = any(name in FFN_ONLY for name in names)
            return [(NAMES[name], FFN_ONLY.get(name, "none") if alone else None) for name in names]
    return [(kind, None) for kind in _by_rule(f, n)]


def _by_rule(f, n):
    linear = f.get("linear_attn_config")
    if isinstance(linear, dict):
        full = Fields(linear, {}, f.family).numbers("full_attn_layers")
        if full is None:
            raise ValueError(f"config.json has no linear_attn_config.full_attn_layers, {LINEAR}")
        return ["full" if i + 1 in full else "state" for i in range(n)]
    if pattern := f.listed("hybrid_layer_pattern", n):
        return ["window" if local == 1 else "full" for local in pattern]
    if types := f.listed("attn_type_list", n):
        if 0 in types:
            raise refuse("attn_type_list", 0, "1 for every layer: lightning attention is not modelled")
        return ["full"] * n
    if f.get("linear_num_value_heads"):
        step = f.integer("full_attention_interval")
        if not step:
            raise ValueError(f"config.json has neither layer_types nor full_attention_interval, {LINEAR}")
        return ["full" if (i + 1) % step == 0 else "state" for i in range(n)]
    if step := f.integer("attn_layer_period"):
        offset = f.integer("attn_layer_offset", 0)
        return ["full" if i % step == offset else "state" for i in range(n)]
    if any(f.get(key) for key in FIELDS["mamba_heads"] + FIELDS["mamba_state"]):
        raise ValueError("config.json has no layer_types or layers_block_type to say which layers are recurrent")
    return _by_window(f, n)


def _by_window(f, n):
    chunk, window, qwen = f("chunk_tokens", 0, 0), f("window_tokens", 0, 0), f.family.startswith("qwen")
    if f.family == "llama4_text" and chunk:
        rope = f.listed("no_rope_layers", n) or [(i + 1) % f.integer("no_rope_layer_interval", 4, 1) for i in range(n)]
        return ["chunk" if local else "full" for local in rope]
    if not window or not f.flag("use_sliding_window", not qwen):
        f.seen.add("sliding_window_pattern")
        return ["full"] * n
    if step := f.integer("sliding_window_pattern") or f.integer("_sliding_window_pattern"):
        return ["full" if (i + 1) % step == 0 else "window" for i in range(n)]
    first = f.integer("max_window_layers", 0) if qwen else 0
    return ["window" if i >= first else "full" for i in range(n)]


def state_of(f):
    """The recurrent layers' shapes."""
    dtype = f.get("mamba_ssm_dtype") or f.get("mamba_ssm_cache_dtype", "auto")
    if not isinstance(dtype, str) or dtype not in STATE_BYTES:
        raise refuse("mamba_ssm_dtype", dtype, "float32, bfloat16, float16 or auto")
    if isinstance(linear := f.get("linear_attn_config"), dict):
        g = Fields(linear, {}, f.family)
        heads, d = (g.integer(key, least=1) for key in ("num_heads", "head_dim"))
        if not heads or not d:
            raise ValueError("config.json has no linear_attn_config.num_heads or head_dim, which this model needs")
        return State("kda", heads, d, heads, d, g.integer("short_conv_kernel_size", 4, 1), 4.0)
    if f.get("linear_num_value_heads"):
        shape = ("linear_num_value_heads", "linear_value_head_dim", "linear_num_key_heads", "linear_key_head_dim",
                 "convolution")
        return State("gdn", *map(f, shape), STATE_BYTES[dtype])
    inner = f("mamba_expand", 2) * f("hidden")
    if any(f.get(key) for key in FIELDS["mamba_heads"]):
        heads = f("mamba_heads")
        d = inner // heads if f.get("mamba_d_head") == "auto" else f("mamba_head_elements")
        return State("mamba2", heads, d, *map(f, ("mamba_groups", "mamba_state", "convolution")), STATE_BYTES[dtype])
    return State("mamba1", inner, 1, 0, f("mamba_state"), f("convolution"), STATE_BYTES[dtype])


def layers_of(f, kinds):
    """The Layers of each layer, in order."""
    heads, latent = f("heads"), f("kv_lora_rank", 0, 0)
    kv = f("kv_heads", heads)
    d = f("head_elements", 1 if latent else 0)
    if not d:
        d, rest = divmod(f("hidden"), heads)
        if rest:
            wanted = f"a multiple of num_attention_heads = {heads} where head_dim is not given"
            raise refuse("hidden_size", f("hidden"), wanted)
    made = {"none": Layers("none")}
    if latent:  # the heads' own sizes count in a prompt, the latent in the cache
        index, rope, nope = f("index_head_dim", 0, 0), f("qk_rope_head_dim"), f("qk_nope_head_dim")
        made["full"] = Layers("latent", head_elements=nope + rope, value_head_elements=f("v_head_dim", nope),
                              latent_elements=latent, rope_elements=rope, index_elements=index)
    else:
        full_d, full_kv = f.integer("global_head_dim", d, 1), f.integer("num_global_key_value_heads", kv, 1)
        made["full"] = Layers("full", full_kv, full_d, f("v_head_dim", full_d))
    if "window" in kinds or "chunk" in kinds:
        d = f.integer("swa_head_dim", d, 1)
        kv = f.integer("swa_num_key_value_heads", kv, 1)
        value = f.integer("swa_v_head_dim", f("v_head_dim", d), 1)
        made |= {kind: Layers(kind, kv, d, value, f(f"{kind}_tokens")) for kind in ("window", "chunk") if kind in kinds}
    if "state" in kinds:
        made["state"] = Layers("state", state=state_of(f))
    full_kv = made["full"].kv_heads
    if full_kv and heads % full_kv:
        raise refuse(FIELDS["kv_heads"][0], full_kv, f"a divisor of the {heads} attention heads")
    indexers = latent and f.listed("indexer_types", len(kinds)) or ["full"] * len(kinds)
    for name in indexers:
        if name not in ("full", "shared"):
            raise refuse("indexer_types", name, "full or shared")
    shared = replace(made["full"], index_elements=0)
    return tuple(shared if (kind, indexer) == ("full", "shared") else made[kind]
                 for kind, indexer in zip(kinds, indexers))


@dataclass(frozen=True)
class ModelConfig:
    """A model as its config.json describes it. `order` holds one Layers a layer; modules hold all weights."""

    name: str
    family: str
    hidden: int
    heads: int
    vocabulary: int
    native_tokens: int
    order: tuple
    draft_layers: int
    kv_dtype: str
    modules: tuple
    intermediate: int = 0
    expert_intermediate: int = 0
    experts_read: int = 0
    tower: object = None  # the Tower, where it has one
    quant_method: str = ""
    architectures: tuple = ()

    @property
    def numbers(self):
        """The shape as numbers by vocabulary name; 0 where the model has none of it."""
        full = next((layer for layer in self.order if layer.kind == "full"), Layers("none"))
        state = next((layer.state for layer in self.order if layer.state), State("none", 0, 0, 0, 0, 0, 0))
        return {
            "layers": len(self.order), "full_layers": self.kinds.get("full", 0),
            "state_layers": self.kinds.get("state", 0), "hidden": self.hidden, "intermediate": self.intermediate,
            "heads": self.heads, "vocabulary": self.vocabulary, "kv_heads": full.kv_heads,
            "head_elements": full.head_elements, "element_bytes": 2, "value_heads": state.value_heads,
            "key_elements": state.key_elements, "value_elements": state.value_elements,
            "state_element_bytes": state.element_bytes, "native_tokens": self.native_tokens,
            "parameters": self.parameters, "idle_parameters": self.parameters - self.text_parameters}

    def total(self, *, without=(), read=False, size=False):
        """Parameters (or bytes, with `size`) of all modules but `without`; with `read`, what one decode step reads."""
        return math.fsum((m.bytes if size else m.parameters) * (m.read if read else 1)
                         for m in self.modules if m.name not in without)

    kinds = property(lambda self: dict(Counter(layer.kind for layer in self.order)), doc="Layers of each kind.")

    @cached_property
    def alike(self):
        """How many layers are alike: {Layers: how many}."""
        return Counter(self.order)
    parameters = property(lambda self: self.total(), doc="All parameters, vision tower and MTP layers among them.")
    text_parameters = property(lambda self: self.total(without=("vision", "mtp")), doc="Of the language model alone.")
    weights_bytes = property(lambda self: self.total(size=True), doc="The build, all modules.")
    quantised = property(lambda self: tuple(m for m in self.modules if m.format not in WHOLE), doc="Of its modules.")
    read_bytes = property(lambda self: self.total(read=True, size=True), doc="What one decode step reads of it.")


def read_fields(path):
    """(fields of a config.json or of that in a folder, those of hf_quant_config.json beside it, the folder's name)."""
    path = Path(path)
    path = path / "config.json" if path.is_dir() else path
    beside = path.parent / "hf_quant_config.json"
    return load_json(path), load_json(beside) if beside.exists() else None, path.parent.name


def read_config(path):
    """The ModelConfig of a config.json or its folder. What is not understood is refused in one sentence."""
    return parse_config(*read_fields(path))


def parse_config(config, quantisation=None, name=""):
    """The same from dicts."""
    text = next((config[key] for key in TEXT if isinstance(config.get(key), dict)), config)
    text = text["text_config"] if isinstance(text.get("text_config"), dict) else text
    family = text.get("model_type") or config.get("model_type")
    known = isinstance(family, str) and re.fullmatch(r"[\w.-]{1,60}", family)
    f = Fields(text, config, family if known else "")
    pattern = f.get("layers_block_type") or f.get("hybrid_override_pattern")
    n = f("layers", min(len(pattern), MOST["layers"]) if isinstance(pattern, (list, str)) and pattern else None)
    kinds, ffn = zip(*kinds_of(f, n))
    order = layers_of(f, kinds)
    mtp = f("mtp", 0, 0) if f.flag("use_mtp", True) else 0
    modules, kv_dtype, method = modules_of(f, order, ffn, mtp, config, quantisation)
    for key, value in {**config, **text}.items():
        unread = value not in (None, False, 0, [], {}, "") and key not in f.seen
        if unread and HINT.search(key) and not HARMLESS.search(key):
            memory = f"the memory of {f.family or 'this model'}"
            raise refuse(key, f.raw.get(key), f"absent: what it does to {memory} is not modelled")
    return ModelConfig(name, f.family, f("hidden"), f("heads"), f("vocabulary"), f("native_tokens", 0), order, mtp,
                       kv_dtype, modules, f("intermediate", 0, 0), f("expert_intermediate", f("intermediate", 0, 0), 0),
                       f("experts_read", 0, 0), tower(f, config), method, f.names("architectures"))
