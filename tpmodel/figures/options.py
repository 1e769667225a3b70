"""Choices that several figures share."""

from ..units import DTYPE_BYTES

TP = {"1 GPU": {"ranks": 1}, "2 GPUs": {"ranks": 2}, "4 GPUs": {"ranks": 4}, "8 GPUs": {"ranks": 8}}
KV_DTYPES = {name: {"kv_element_bytes": DTYPE_BYTES[name.lower()]} for name in ("BF16", "FP8")}
NVFP4_BYTES = (4 + 8 / 16) / 8  # 4 bits, and one 8-bit scale for each 16 elements
WEIGHT_DTYPES = {name: {"weight_element_bytes": size} for name, size in
                 (("BF16", DTYPE_BYTES["bf16"]), ("FP8", DTYPE_BYTES["fp8"]), ("NVFP4", NVFP4_BYTES))}
ACTIVATION_DTYPES = {name: {"element_bytes": DTYPE_BYTES[name.lower()]} for name in ("BF16", "FP8")}
