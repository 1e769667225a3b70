"""Choices that several figures share."""

from ..units import DTYPE_BYTES

TP = {"1 GPU": {"ranks": 1}, "2 GPUs": {"ranks": 2}, "4 GPUs": {"ranks": 4}, "8 GPUs": {"ranks": 8}}
KV_DTYPES = {name: {"kv_element_bytes": DTYPE_BYTES[name.lower()]} for name in ("BF16", "FP8")}
