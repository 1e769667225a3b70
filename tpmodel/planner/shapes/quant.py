"""Which format a build keeps each module in, from quantization_config or hf_quant_config.json; bits a weight with its scales."""

import re

from .fields import refuse
from .patterns import ACCEPTED, Name, Pattern, Unread

PLAIN = ("bf16", 16.0)
FULL = ("fp32", 32.0)
BLOCK_FP8 = ("fp8", 8 + 32 / (128 * 128))
ALGOS = {
    "NVFP4": ("nvfp4", 4.5), "W4A16_NVFP4": ("nvfp4 (w4a16)", 4.5), "W4A8_NVFP4_FP8": ("nvfp4", 4.5), "NVFP4_AWQ": ("nvfp4", 4.5),
    "FP8": ("fp8", 8.0), "FP8_PB_WO": BLOCK_FP8, "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", 8.0), "MXFP8": ("mxfp8", 8.25),
    "MXFP4": ("mxfp4", 4.25), "W4A8_MXFP4_FP8": ("mxfp4", 4.25), "W4A16_AWQ": ("int4", 4 + 16 / 128), "W4A8_AWQ": ("int4", 4 + 16 / 128),
    "INT8_SQ": ("int8", 8.0), "W8A16": ("int8", 8.0),
}
PREFIX = re.compile(r"^(?:(?:model|language_model|backbone|transformer|text_model)\.)+")
MOST_STEPS = 1000  # of all patterns together


def _group_format(weights):
    """Format of one group of compressed-tensors or modelopt."""
    bits, kind, group = weights.get("num_bits"), weights.get("type", "int"), weights.get("group_size") or 0
    if bits not in (4, 8) or type(group) is not int or not -1 <= group <= 65536:
        raise refuse("quantization_config weights", weights, "4 or 8 bits, in groups of a whole number of weights")
    if kind == "float" and bits == 4:
        return ("mxfp4", 4.25) if group == 32 else ("nvfp4", 4.5)
    if kind == "float":
        return BLOCK_FP8 if weights.get("block_structure") else ("mxfp8", 8.25) if group == 32 else ("fp8", 8.0)
    zero = 0 if weights.get("symmetric", True) else bits
    return f"int{bits}", bits + ((16 + zero) / group if group > 0 else 0)


class Formats:
    """(format, bits) of a module's path. Ignored modules stay in 16 bits; so do head, routers and vision unless they are named."""

    def __init__(self, quantisation, plain=PLAIN):
        self.default, self.plain, self.named, self.experts_only, self.kv_dtype = plain, plain, {}, False, "bf16"
        self.exact, self.prefixes, self.plain_patterns, self.patterns = set(), set(), {}, []
        if quantisation is None:
            return
        q = quantisation.get("quantization", quantisation) if isinstance(quantisation, dict) else quantisation
        if not isinstance(q, dict):
            raise refuse("quantization_config", q, "an object")
        ignored = [q.get(key) for key in ("exclude_modules", "ignore", "modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules")]
        for names in ignored:
            if names is not None and not (isinstance(names, list) and all(isinstance(n, str) for n in names)):
                raise refuse("modules that are not quantised", names, "a list of names")
            for name in names or ():
                self._ignore(name)
        scheme = q.get("kv_cache_scheme")
        if q.get("kv_cache_quant_algo") == "FP8" or isinstance(scheme, dict) and scheme.get("num_bits") == 8:
            self.kv_dtype = "fp8"
        self._defaults(q)
        every = [*self.plain_patterns.values(), *(pattern for pattern, _ in self.patterns)]
        steps = sum(pattern.steps for pattern in every)
        if steps > MOST_STEPS:
            raise refuse("parts of the patterns of the quantised modules", steps, f"at most {MOST_STEPS} in all")

    def _defaults(self, q):
        method, algo = str(q.get("quant_method", "modelopt")).lower(), q.get("quant_algo")
        layers = q.get("quantized_layers")
        if isinstance(layers, dict) and algo == "MIXED_PRECISION":
            for name, entry in layers.items():
                self.named[PREFIX.sub("", name)] = self._algo(entry.get("quant_algo") if isinstance(entry, dict) else entry)
        elif algo is not None:
            self.default = self._algo(algo)
        elif method == "mxfp4":
            self.default, self.experts_only = ("mxfp4", 4.25), True
        elif method in ("fp8", "fbgemm_fp8"):
            self.default = BLOCK_FP8 if q.get("weight_block_size") else ("fp8", 8.0)
        elif method == "compressed-tensors" or isinstance(q.get("config_groups"), dict):
            self._groups(q.get("config_groups"))
        elif method in ("awq", "gptq", "auto-round", "autoround", "auto_round", "gptqmodel", "awq_marlin", "gptq_marlin"):
            bits = q.get("bits", q.get("w_bit", 4))
            self.default = _group_format({"num_bits": bits, "group_size": q.get("group_size", q.get("q_group_size", 128)), "symmetric": False})
        elif method in ("bitsandbytes", "bnb"):
            self.default = ("int8", 8.0) if q.get("load_in_8bit") else ("nf4", 4.127 if q.get("bnb_4bit_use_double_quant") else 4.5)
        else:
            raise refuse("quant_method", q.get("quant_method"), "fp8, mxfp4, modelopt, compressed-tensors, awq, gptq, auto-round or bitsandbytes")

    def _groups(self, groups):
        if not isinstance(groups, dict) or not groups:
            raise refuse("quantization_config config_groups", groups, "an object with groups")
        for group in groups.values():
            weights, targets = (group.get(key) for key in ("weights", "targets")) if isinstance(group, dict) else (None, None)
            if not isinstance(weights, dict) or not isinstance(targets, list) or not all(isinstance(t, str) for t in targets):
                raise refuse("quantization_config config_groups", group, "objects with weights and targets")
            for target in targets:
                if target == "Linear":
                    self.default = _group_format(weights)
                elif target.startswith("re:"):
                    self.patterns.append((_pattern(target), _group_format(weights)))
                else:
                    self.named[PREFIX.sub("", target)] = _group_format(weights)

    @staticmethod
    def _algo(algo):
        if not isinstance(algo, str) or algo not in ALGOS:
            raise refuse("quant_algo", algo, f"one of MIXED_PRECISION, {', '.join(ALGOS)}")
        return ALGOS[algo]

    def _ignore(self, name):
        bare = PREFIX.sub("", name)
        if bare.endswith("*") and "*" not in bare[:-1] and not name.startswith("re:"):
            self.prefixes.add(bare[:-1])
        elif "*" in name or name.startswith("re:"):
            self.plain_patterns[name] = self.plain_patterns.get(name) or _pattern(name)
        else:
            self.exact.add(bare)

    def __call__(self, path, quantisable=True):
        """(format, bits) of the weights at `path`, without the model's prefix."""
        parts = path.split(".")
        for end in range(len(parts), 0, -1):
            if (found := self.named.get(".".join(parts[:end]))) is not None:
                return found
        whole, bare = (Name(text) if self.patterns or self.plain_patterns else None for text in ("model." + path, path))
        for pattern, found in self.patterns:
            if pattern(whole):
                return found
        if not quantisable or self.default is self.plain or self.experts_only and ".experts." not in path:
            return self.plain
        runs = (".".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1))
        ignored = any(run in self.exact for run in runs) or any(path[:n] in self.prefixes for n in range(1, len(path) + 1))
        ignored = ignored or any(pattern(whole) or pattern(bare) for pattern in self.plain_patterns.values())
        return self.plain if ignored else self.default


def _pattern(text):
    try:
        return Pattern(text)
    except Unread:
        raise refuse("a pattern of the quantised modules", text, ACCEPTED) from None
