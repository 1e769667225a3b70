"""Which format a build keeps each module in, from quantization_config or hf_quant_config.json: its name, bits with
scales, and the rows of a matrix that share a scale."""

import re

from .fields import refuse
from .patterns import Name, Pattern

PLAIN, FULL = ("bf16", 16.0, 1), ("fp32", 32.0, 1)
FP8, BLOCK_FP8, MXFP8 = ("fp8", 8.0, 1), ("fp8", 8 + 32 / (128 * 128), 128), ("mxfp8", 8.25, 32)
NVFP4, MXFP4, INT4, INT8 = ("nvfp4", 4.5, 16), ("mxfp4", 4.25, 32), ("int4", 4 + 16 / 128, 128), ("int8", 8.0, 1)
NVFP4_A16 = "nvfp4 (w4a16)", *NVFP4[1:]
ALGOS = {
    "NVFP4": NVFP4, "W4A16_NVFP4": NVFP4_A16, "W4A8_NVFP4_FP8": NVFP4, "NVFP4_AWQ": NVFP4, "FP8": FP8,
    "FP8_PB_WO": BLOCK_FP8, "FP8_PER_CHANNEL_PER_TOKEN": FP8, "MXFP8": MXFP8, "MXFP4": MXFP4, "W4A8_MXFP4_FP8": MXFP4,
    "W4A16_AWQ": INT4, "W4A8_AWQ": INT4, "INT8_SQ": INT8, "W8A16": INT8}
GROUPED = ("awq", "gptq", "auto-round", "autoround", "auto_round", "gptqmodel", "awq_marlin", "gptq_marlin")
IGNORED = ("exclude_modules", "ignore", "modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules")
PREFIX = re.compile(r"^(?:(?:model|language_model|backbone|transformer|text_model)\.)+")
CACHES = {"FP8": "fp8", "NVFP4": "nvfp4"}
MOST_STEPS = 1000  # of all patterns together


def _group_format(weights, activations=None):
    """Format of one group of compressed-tensors or modelopt; FP4 without activations in FP4 is weight-only."""
    bits, kind, group = weights.get("num_bits"), weights.get("type", "int"), weights.get("group_size") or 0
    if bits not in (4, 8) or type(group) is not int or not -1 <= group <= 65536:
        raise refuse("quantization_config weights", weights, "4 or 8 bits, in groups of a whole number of weights")
    if kind == "float" and bits == 4:
        return MXFP4 if group == 32 else NVFP4 if activations else NVFP4_A16
    if kind == "float":
        return BLOCK_FP8 if weights.get("block_structure") else MXFP8 if group == 32 else FP8
    zero = 0 if weights.get("symmetric", True) else bits
    return f"int{bits}", bits + ((16 + zero) / group if group > 0 else 0), max(1, group)


def _algo(algo):
    if not isinstance(algo, str) or algo not in ALGOS:
        raise refuse("quant_algo", algo, f"one of MIXED_PRECISION, {', '.join(ALGOS)}")
    return ALGOS[algo]


def _names(value):
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


class Formats:
    """(format, bits, group) of a module's path.

    Ignored ones stay in 16 bits; so do head, routers and vision unless named.
    """

    def __init__(self, quantisation, plain=PLAIN):
        self.default, self.plain, self.named, self.experts_only, self.kv_dtype = plain, plain, {}, False, "bf16"
        self.method = ""
        self.exact, self.prefixes, self.plain_patterns, self.patterns = set(), set(), {}, []
        if quantisation is None:
            return
        q = quantisation.get("quantization", quantisation) if isinstance(quantisation, dict) else quantisation
        if not isinstance(q, dict):
            raise refuse("quantization_config", q, "an object")
        for names in map(q.get, IGNORED):
            if names is not None and not _names(names):
                raise refuse("modules that are not quantised", names, "a list of names")
            for name in names or ():
                self._ignore(name)
        self._defaults(q)
        scheme = scheme if isinstance(scheme := q.get("kv_cache_scheme"), dict) else {}
        modelopt = self.method.startswith("modelopt")  # of its schemes vLLM takes only what says that it is static
        taken = scheme.get("num_bits") == 8 and (not modelopt or scheme.get("dynamic") is False)
        self.kv_dtype = "fp8" if taken else CACHES.get(str(q.get("kv_cache_quant_algo")), "bf16")
        steps = sum(pattern.steps for pattern in (*self.plain_patterns.values(), *(one for one, _ in self.patterns)))
        if steps > MOST_STEPS:
            raise refuse("parts of the patterns of the quantised modules", steps, f"at most {MOST_STEPS} in all")

    def _ignore(self, name):
        bare = PREFIX.sub("", name)
        if bare.endswith("*") and "*" not in bare[:-1] and not name.startswith("re:"):
            self.prefixes.add(bare[:-1])
        elif "*" in name or name.startswith("re:"):
            self.plain_patterns[name] = self.plain_patterns.get(name) or Pattern(name)
        else:
            self.exact.add(bare)

    def _defaults(self, q):
        self.method = method = str(q.get("quant_method", "modelopt")).lower()
        algo = q.get("quant_algo")
        layers = q.get("quantized_layers")
        if isinstance(layers, dict) and algo == "MIXED_PRECISION":
            for name, entry in layers.items():
                entry = entry.get("quant_algo") if isinstance(entry, dict) else entry
                self.named[PREFIX.sub("", name)] = _algo(entry)
        elif algo is not None:
            self.default = _algo(algo)
        elif method == "mxfp4":
            self.default, self.experts_only = MXFP4, True
        elif method in ("fp8", "fbgemm_fp8"):
            self.default = BLOCK_FP8 if q.get("weight_block_size") else FP8
        elif method == "compressed-tensors" or isinstance(q.get("config_groups"), dict):
            self._groups(q.get("config_groups"))
        elif method in GROUPED:
            bits, group = q.get("bits", q.get("w_bit", 4)), q.get("group_size", q.get("q_group_size", 128))
            self.default = _group_format({"num_bits": bits, "group_size": group, "symmetric": False})
        elif method in ("bitsandbytes", "bnb"):
            nf4 = "nf4", 4.127 if q.get("bnb_4bit_use_double_quant") else 4.5, 1
            self.default = ("bnb-int8", 8.0, 1) if q.get("load_in_8bit") else nf4
        else:
            methods = "fp8, mxfp4, modelopt, compressed-tensors, awq, gptq, auto-round or bitsandbytes"
            raise refuse("quant_method", q.get("quant_method"), methods)

    def _groups(self, groups):
        if not isinstance(groups, dict) or not groups:
            raise refuse("quantization_config config_groups", groups, "an object with groups")
        for group in groups.values():
            weights, targets = map(group.get, ("weights", "targets")) if isinstance(group, dict) else (None, None)
            if not isinstance(weights, dict) or not _names(targets):
                raise refuse("quantization_config config_groups", group, "objects with weights and targets")
            found = _group_format(weights, group.get("input_activations"))
            for target in targets:
                if target == "Linear":
                    self.default = found
                elif target.startswith("re:"):
                    self.patterns.append((Pattern(target), found))
                else:
                    self.named[PREFIX.sub("", target)] = found

    def __call__(self, path, quantisable=True):
        """(format, bits, group) of the weights at `path`, without the model's prefix."""
        parts = path.split(".")
        for end in range(len(parts), 0, -1):
            if (found := self.named.get(".".join(parts[:end]))) is not None:
                return found
        whole, bare = (Name("model." + path), Name(path)) if self.patterns or self.plain_patterns else (None, None)
        for pattern, found in self.patterns:
            if pattern(whole):
                return found
        if not quantisable or self.default is self.plain or self.experts_only and ".experts." not in path:
            return self.plain
        runs = (".".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1))
        ignored = (any(run in self.exact for run in runs) or path.startswith(tuple(self.prefixes))
                   or any(pattern(whole) or pattern(bare) for pattern in self.plain_patterns.values()))
        return self.plain if ignored else self.default
