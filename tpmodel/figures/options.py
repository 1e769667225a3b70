"""Choices that several figures share, and notes beside controls."""

from .. import ops
from ..units import DTYPE_BYTES

TP = {"1 GPU": {"ranks": 1}, "2 GPUs": {"ranks": 2}, "4 GPUs": {"ranks": 4}, "8 GPUs": {"ranks": 8}}
KV_DTYPES = {name: {"kv_element_bytes": DTYPE_BYTES[name.lower()]} for name in ("BF16", "FP8")}
NVFP4_BYTES = (4 + 8 / 16) / 8  # 4 bits, and one 8-bit scale for each 16 elements
WEIGHT_DTYPES = {name: {"weight_element_bytes": size} for name, size in
                 (("BF16", DTYPE_BYTES["bf16"]), ("FP8", DTYPE_BYTES["fp8"]), ("NVFP4", NVFP4_BYTES))}
ACTIVATION_DTYPES = {name: {"element_bytes": DTYPE_BYTES[name.lower()]} for name in ("BF16", "FP8")}


def note(holds, words):
    """A live text for a control's `silent`: shown while `holds` of the view is true."""
    return ((lambda v: ops.where(holds(v), 1, 0), ("", words)),)


NO_CACHE = note(lambda v: v.context_tokens <= 0, "no cache yet: the context is 0")
ONE_GPU = note(lambda v: v.ranks < 2, "one GPU makes no all-reduce")
