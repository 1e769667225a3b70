"""The line that starts vLLM as a plan says."""

import json
import math
import shlex
from decimal import ROUND_FLOOR, Context

from ...formula.units import GIB
from . import assume

CACHE_FLAGS = {"bf16": "bfloat16", "fp16": "float16"}  # vLLM's own words
LONG_CHUNKS_BYTES = 70 * GIB  # from here on vllm serve takes more tokens a pass by default than CHUNK_TOKENS


def share(frac):
    """A fraction of the memory with six digits, never more than it is.

    >>> share(0.92), share(0.9239999999)
    ('0.92', '0.923999')
    """
    return f"{Context(prec=6, rounding=ROUND_FLOOR).create_decimal(repr(frac)).normalize():f}"


def command(name, way, ask, kv_dtype, default_kv_dtype, cards):
    """`vllm serve` and its flags; of the environment what a pipeline needs."""
    placed = way.placement
    words = ["vllm", "serve", name, "--max-model-len", ask.context or way.holds_tokens, "--gpu-memory-utilization", share(way.util)]
    if kv_dtype != default_kv_dtype:  # without the flag vLLM takes what the build says
        words += ["--kv-cache-dtype", CACHE_FLAGS.get(kv_dtype, kv_dtype)]
    if placed.ranks > 1:
        words += ["--tensor-parallel-size", placed.ranks]
    if placed.kind == "pp":
        words += ["--pipeline-parallel-size", len(placed.layers)]
    if placed.kind == "offload":
        words += ["--cpu-offload-gb", f"{math.ceil(placed.offloaded_bytes / placed.ranks / GIB * 10) / 10:.1f}", "--enforce-eager"]
    if ask.batch > 1:
        words += ["--max-num-seqs", ask.batch]
    if max(card.vram_bytes for card in cards) >= LONG_CHUNKS_BYTES:
        words += ["--max-num-batched-tokens", assume.CHUNK_TOKENS]
    if ask.mtp:
        words += ["--speculative-config", json.dumps({"method": "mtp", "num_speculative_tokens": ask.mtp})]
    partition = ["CUDA_DEVICE_ORDER=PCI_BUS_ID", f"VLLM_PP_LAYER_PARTITION={','.join(map(str, placed.layers))}"] if placed.kind == "pp" else []
    return " ".join(partition + [shlex.quote(str(word)) for word in words])
