"""The line that starts vLLM as a plan says."""

import json
import math
import shlex

from ...formula.units import GIB
from ..engine.architectures import pools
from ..engine.starts import LARGE_BYTES, runtime
from ..shapes.models import text_part
from . import assume, build

CACHE_FLAGS = {"bf16": "bfloat16", "fp16": "float16"}  # vLLM's own words


def share(frac):
    """A fraction of the memory with six decimals, never more than it is.

    >>> share(0.92), share(0.9239999999)
    ('0.92', '0.923999')
    """
    return f"{float(str(frac)[:8]):g}"  # its digits as they are printed, cut


def copies(placed, config):
    """What to do where one line starts one of several copies: a sentence, or none."""
    said = (f"start the line {placed.replicas} times, each with a CUDA_VISIBLE_DEVICES and a --port of its own: vLLM's "
            "--data-parallel-size would share the experts out, not copy them")
    return [said] if shares_experts(placed, config) else []


def elsewhere(cards):
    """What holds where the cards are not reached by CUDA: a sentence, or none."""
    kind = runtime(cards[0])
    said = f"the line is for vLLM's build for {kind}; what stops a start and what memory it takes was read for cuda"
    return [said] if kind != "cuda" else []


def apart(cards):
    """What to do where each card is a machine of its own: a sentence, or none."""
    said = ("each is a machine of its own: start the line on all of them, as vLLM's guide to several machines says "
            "(--nnodes, --node-rank, --master-addr)")
    return [said] if len(cards) > 1 and all(card.said.get("joined") == "network" for card in cards) else []


def shares_experts(placed, config):
    """Whether vLLM would make no copies of the replicas: it spreads experts over all data-parallel ranks."""
    return placed.replicas > 1 and any(module.read < 1 for module in config.modules if module.name == "experts")


def command(name, way, ask, config, kv_dtype):
    """`vllm serve` and its flags; of the environment what a pipeline needs."""
    placed, layers = way.placement, ",".join(map(str, way.placement.layers))
    large = max(card.vram_bytes for card in placed.cards) >= LARGE_BYTES
    piped, offloaded = len(placed.layers) > 1, placed.offloaded_bytes
    copied_gib = math.ceil(max(placed.offloaded) / GIB * 10) / 10  # of each GPU
    loaded = [json.dumps(word) if isinstance(word, list) else word for word in build.flags(ask)]
    flags = (
        (True, "--max-model-len", ask.context or way.holds_tokens),
        (True, "--gpu-memory-utilization", share(way.util)),
        (kv_dtype != config.kv_dtype, "--kv-cache-dtype", CACHE_FLAGS.get(kv_dtype, kv_dtype)),
        (placed.ranks > 1, "--tensor-parallel-size", placed.ranks),
        (piped, "--pipeline-parallel-size", len(placed.layers)),
        (placed.replicas > 1 and not shares_experts(placed, config), "--data-parallel-size", placed.replicas),
        (offloaded, "--cpu-offload-gb", f"{copied_gib:.1f}", "--enforce-eager"),
        (way.at_once, "--max-num-seqs", way.at_once),
        (large or ask.batch_tokens != assume.CHUNK_TOKENS,  # by default large cards take more
         "--max-num-batched-tokens", ask.batch_tokens),
        (ask.text_only or text_part(ask.model), "--language-model-only"),
        (pools(config), "--runner", "pooling"),
        (loaded, *loaded),
        (ask.mtp, "--speculative-config", json.dumps({"method": "mtp", "num_speculative_tokens": ask.mtp})))
    words = ["vllm", "serve", name, *(word for wanted, *flag in flags if wanted for word in flag)]
    partition = f"CUDA_DEVICE_ORDER=PCI_BUS_ID VLLM_PP_LAYER_PARTITION={layers} " if piped else ""
    return partition + shlex.join(map(str, words))
