"""Formats as engines print them: bits of a weight, bytes of an element of the cache."""

import re

from .rows import table

LIKE_16 = ("", "auto", "default", "n/s", "bf16", "fp16", "f16", "16-bit", "bfloat16", "float16")
CACHES = {**dict.fromkeys(LIKE_16, 2.0), **dict.fromkeys(("int8", "fp8", "k16i8"), 1.0), "fp32": 4.0, "f32": 4.0}
SCALE_BITS = 16  # of each 32 elements: llama.cpp's own formats, of which those in `_1` hold two
GGUF = re.compile(r"\b(?:ud-)?((?:iq|q)[1-8](?:_[0-9a-z]+)*)\b")


def cache_bytes(text):
    """Bytes of one element; of two formats, for keys and for values, the mean.

    >>> cache_bytes("q8"), cache_bytes("fp16"), cache_bytes("q8_0/q4_0")
    (1.0625, 2.0, 0.8125)
    """
    parts = [part.strip() for part in text.lower().split("/")] if text.lower() not in LIKE_16 else [""]
    return sum(map(_cache_bytes, parts)) / len(parts)


def _cache_bytes(text):
    grouped = re.fullmatch(r"(?:iq|q)([2-8])(?:_([01]|nl))?", text)
    if grouped:
        return (int(grouped[1]) + SCALE_BITS * (1 + (grouped[2] == "1")) / 32) / 8
    known = next((name for name in CACHES if text == name or name and text.startswith(f"{name}_")), None)
    if known is None:
        raise ValueError(f"kv_dtype = {text[:40]!r} is not accepted: it must be one of q4_0, q4_1, q5_0, q5_1, q8_0, "
                         f"{', '.join(filter(None, CACHES))}")
    return CACHES[known]


def packed(text):
    """The format of a file of llama.cpp, in which all matrices are packed alike; None of other builds.

    >>> packed("UD-Q4_K_XL"), packed("q8"), packed("AWQ int4")
    ('q4_k_xl', 'q8', None)
    """
    found = GGUF.search(text.lower())
    return found and found[1]


def read_bytes(config, text):
    """What a step reads of a build in this format: files of llama.cpp whole, other builds keep the head in 16 bits.

    >>> from ..shapes.models import find_config
    >>> round(read_bytes(find_config("qwen3-8b"), "Q8_0") / 1e9, 2)
    8.04
    """
    bits, plain = {row["format"]: float(row["bits"]) for row in table("formats.csv")}, text.lower()
    file = packed(plain)
    known = file if file in bits else max((name for name in bits if name in plain), key=len, default=None)
    if known is None:
        raise ValueError(f"weight_read_gb is empty, and quant = {text[:40]!r} is not in formats.csv")
    kept = () if file else ("head", "embedding", "router", "norms", "bias")
    return sum(m.parameters * m.read * (bits["bf16"] if m.name in kept else bits[known]) / 8 for m in config.modules)
