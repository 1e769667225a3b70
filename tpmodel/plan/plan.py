"""`plan`: one model on given GPUs, for one way to split it or for the best of all."""

import json
import math
import shlex
from decimal import ROUND_FLOOR, Context
from dataclasses import asdict, replace
from pathlib import Path

from .. import inputs
from ..catalog import sourced
from ..catalog.gpus import gpu
from ..catalog.links import link as find_link
from ..catalog.models import find_config, repository, shapes
from ..split import fastest, parse_reserves
from ..units import GB, GIB
from ..vllm.embed import known
from ..vllm.engine import Refused, version
from ..vllm.memory import KV_BYTES
from . import assume, crossover, placement, speed

KINDS = ("one", "offload", "tp", "pp")
DEFAULT_LINK = "shm"
NATIVE_TOKENS = 32768  # where a config.json prints no length
LATENT_ONLY, NEVER_LATENT = ("fp8_ds_mla",), ("nvfp4",)  # vLLM 0.33 has no kernels for the other kind of cache
CACHE_FLAGS = {"bf16": "bfloat16", "fp16": "float16"}  # vLLM's own words
LONG_CHUNKS_BYTES = 70 * GIB  # from here on vllm serve takes more tokens a pass by default than CHUNK_TOKENS


def plan(model, gpus, parallel="auto", layers=None, link=DEFAULT_LINK, kv_dtype=None, context=None, util=0.92, reserve_gib="0",
         mtp=0, acceptance=None, batch=1, engine="vllm-0.33", catalog=None, goal="decode"):
    """The plan as plain values; see the command line for what each argument is."""
    _check(gpus, parallel, layers, kv_dtype, context, util, mtp, acceptance, batch, goal)
    extra = {} if catalog is None else sourced.read_file(catalog)
    cards = tuple(_entry(extra, key, gpu) for key in gpus)
    wire = _entry(extra, link, find_link)
    for entry, names in [*((card, ("vram_bytes", "memory_bytes_per_s", "bf16_flop_per_s")) for card in cards),
                         (wire, ("link_bytes_per_s", "allreduce_latency_s"))]:
        missing = [name for name in names if name not in entry.numbers]
        if missing:
            raise ValueError(f"{entry.key} has no {', '.join(missing)} in the catalog: a plan needs it")
    config = find_config(model)
    if mtp and not config.draft_layers:
        raise ValueError(f"mtp = {mtp} is not accepted: {model} has no MTP layer")
    latent = any(layer.kind == "latent" for layer in config.order)
    if kv_dtype in LATENT_ONLY and not latent or kv_dtype in NEVER_LATENT and latent:
        raise inputs.refused("kv_dtype", kv_dtype, f"{model} has {'a' if latent else 'no'} latent cache: {', '.join(LATENT_ONLY)} "
                             f"is for models with one, {', '.join(NEVER_LATENT)} for models without")
    native = config.native_tokens or NATIVE_TOKENS
    if context is not None and context > native:
        raise ValueError(f"context = {context} is not accepted: it must be at most {native}, the native length of {model}")
    setting = placement.engine_setting(version(engine), config.kv_dtype if kv_dtype is None else kv_dtype, context or native, mtp)
    reserves = [number * GIB for number in parse_reserves(reserve_gib, len(cards))]
    wanted = [(parallel, layers)] if parallel != "auto" else _candidates(config, cards)
    tried, refusals = [], []
    for kind, stages in wanted:
        try:
            tried.append(_one(config, cards, wire, kind, stages, setting, reserves, util, context, batch, mtp, acceptance))
        except Refused as error:
            refusals.append(str(error))
            if parallel != "auto":
                raise
    if not tried:
        raise ValueError(f"no way to split is possible: {'; '.join(dict.fromkeys(refusals))}")
    part = "decode" if goal == "decode" else "prefill"
    best = max(tried, key=lambda found: (found["fits"], found["context_tokens"] if found["fits"] else 0, found[part]["mid"] if found[part] else 0.0,
                                         min(card["kv_pool_bytes"] for card in found["gpus"])))
    best["compared"] = [{"kind": f["split"]["kind"], "layers": f["split"]["layers"], "fits": f["fits"], "max_context_tokens":
                         f["max_context_tokens"], **{p: {e: f[p][e] for e in assume.ENDS} if f[p] else None for p in ("decode", "prefill")}}
                        for f in tried]
    best["crossover"] = _crossover(config, cards, wire, tried, setting, best, batch, mtp, part)
    path = Path(model)
    name = repository(model) or (known(model)[0] if model in shapes() else inputs.plain(path if path.is_dir() else path.parent))
    best["command"] = command(name, best, context, setting.kv_dtype, config.kv_dtype, cards, mtp, batch) if best["fits"] else ""
    best["link"] = wire.key
    best["verdict"] = _verdict(best, tried, part, batch) + _meeting(best["crossover"], part)
    best["assumptions"] = assume.words(wire, best["split"]["kind"], config, mtp, acceptance) + refusals
    if best["util"] < util:
        best["assumptions"].append(f"--gpu-memory-utilization is {share(best['util'])} in place of {util:g}: vLLM takes the same share of each GPU, and no more is free")
    if name == model in shapes():
        best["assumptions"].append(f"no repository of {model} is known: put the folder or the name of your build in its place")
    return best


def _check(gpus, parallel, layers, kv_dtype, context, util, mtp, acceptance, batch, goal):
    n = len(gpus)
    for name, value, fine, wanted in (
        ("gpu", n, n >= 1, "named at least once"),
        ("parallel", parallel, parallel in KINDS + ("auto",), f"one of {', '.join(KINDS)}, auto"),
        ("parallel", parallel, n > 1 or parallel in ("auto", "one", "offload"), "one, offload or auto for a single GPU"),
        ("layers", layers, layers is None or parallel == "pp", "given with --parallel pp only"),
        ("kv_dtype", kv_dtype, kv_dtype is None or kv_dtype in KV_BYTES and kv_dtype != "fp32",
         f"one of {', '.join(name for name in KV_BYTES if name != 'fp32')}"),
        ("context", context, context is None or context >= 1, "a whole number >= 1"),
        ("util", util, 0 < util <= 1, "a number above 0, at most 1"),
        ("mtp", mtp, 0 <= mtp <= 16, "a whole number from 0 to 16"),
        ("acceptance", acceptance, acceptance is None or 0 <= acceptance < 1, "a number from 0 up to but not 1"),
        ("batch", batch, 1 <= batch <= 4096, "a whole number from 1 to 4096"),
        ("goal", goal, goal in ("decode", "prefill"), "decode or prefill"),
    ):
        if not fine:
            raise ValueError(f"{name} = {value!r} is not accepted: it must be {wanted}")


def _entry(extra, key, find):
    """An entry of the user's own catalog, or of ours."""
    try:
        return extra[key] if key in extra else find(key)
    except ValueError as error:
        raise ValueError(f"{error}{', or of your catalog: ' if extra else ''}{', '.join(extra)}") from None


def _candidates(config, cards):
    """Every way that `auto` compares: (kind, layers)."""
    n, count = len(cards), len(config.order)
    found = [("one", None), ("offload", None)]
    if n > 1:
        found.append(("tp", None))
    if 1 < n <= count:
        found.append(("pp", None))
        for rates in ([card.bf16_flop_per_s for card in cards], [card.vram_bytes for card in cards]):  # as fast as each is, as large as each is
            uneven = "pp", tuple(fastest(count, rates, [count] * n))
            if len(set(rates)) > 1 and uneven not in found:
                found.append(uneven)
    return found


def _one(config, cards, wire, kind, layers, setting, reserves, util, context, batch, mtp, acceptance):
    """The plan for one way: memory of each GPU, largest context, speeds."""
    placed = placement.place(config, cards, "one" if kind == "offload" else kind, layers)
    used, budget = placement.budgets(placed.cards, util, reserves)
    setting = replace(setting, ranks=placed.ranks)
    if kind == "offload":
        tokens = context or min(assume.PROMPT_TOKENS, setting.context_tokens)
        placed = placement.with_offload(config, placed, replace(setting, context_tokens=tokens), budget[0], batch)
        if not placed.offloaded_bytes:
            raise Refused("offload is not needed: the weights fit on the first GPU")
    ends = {}
    for end, name in enumerate(assume.ENDS):
        found = placement.memories(config, placed, setting, budget, end)
        ends[name] = placement.longest(config, placed, setting, found, batch)
        if name == "mid":
            gpus = found
    fits = ends["mid"] >= (context or 1)
    at = context or min(assume.PROMPT_TOKENS, ends["mid"])
    speeds = fits and at >= 1
    return {
        "gpus": [asdict(found) for found in gpus],
        "max_context_tokens": ends["mid"], "max_context_range": ends, "fits": fits, "context_tokens": at,
        "decode": speed.decode_speed(config, placed, setting, wire, at, batch, mtp, acceptance) if speeds else None,
        "prefill": speed.prefill_speed(config, placed, wire, min(assume.PROMPT_TOKENS, at)) if speeds else None,
        "util": used, "split": {"kind": kind, "layers": list(placed.layers), "ranks": placed.ranks, "offloaded_bytes": placed.offloaded_bytes},
    }


def _crossover(config, cards, wire, tried, setting, best, batch, mtp, part):
    """Where tensor parallel meets the fastest pipeline; None unless both were compared and fit."""
    fitting = [found for found in tried if found["fits"] and found[part]]
    pipelines = [found for found in fitting if found["split"]["kind"] == "pp"]
    if not pipelines or not any(found["split"]["kind"] == "tp" for found in fitting):
        return None
    pipeline = max(pipelines, key=lambda found: found[part]["mid"])
    pools = {found["split"]["kind"]: min(gpu["kv_pool_bytes"] for gpu in found["gpus"]) for found in (*fitting, pipeline) if found["split"]["kind"] in ("tp", "pp")}
    return crossover.crossovers(config, cards, wire, pipeline["split"]["layers"], pools, setting, best["context_tokens"], best["prefill"]["prompt_tokens"], batch, mtp,
                                part)


def _meeting(met, part):
    """The crossover in words."""
    if met is None:
        return ""
    link, batch = met["link_bytes_per_s"], met["batch"]
    said = f"; tp and pp meet at a link of {link / GB:,.1f} GB/s" if link else "; no link lets tp and pp meet"
    return said + (f", and on this link at a batch of {batch}" if batch else "")


def _label(found):
    """One way to split in words: tp, or pp with its layers."""
    kind, layers = found["split"]["kind"], found["split"]["layers"]
    return f"pp {','.join(map(str, layers))}" if kind == "pp" else kind


def _verdict(best, tried, part, batch):
    """One sentence: whether it fits, by how much, and which way wins by how much."""
    each = f" for each of {batch} sequences" if batch > 1 else ""
    if not best["fits"]:
        short = min(gpu["kv_pool_bytes"] for gpu in best["gpus"])
        least = f"the weights and buffers exceed the budget of a GPU by {-short / GIB:.2f} GiB" if short < 0 else \
            f"only {best['max_context_tokens']:,} tokens{each} fit"
        return f"does not fit: {least}"
    ends = best["max_context_range"]
    aside = best["split"]["offloaded_bytes"]
    said = f"fits{f' with {aside / GIB:,.1f} GiB of the weights in main memory' if aside else ''}: up to {best['max_context_tokens']:,} tokens{each} ({ends['low']:,} to {ends['high']:,} by the overhead)"
    others = sorted((f[part]["mid"], _label(f)) for f in tried if f is not best and f["fits"] and f[part])
    if others:
        rate, other = others[-1]
        said += f"; {_label(best)} is {best[part]['mid'] / rate:.2f} times as fast in {part} as {other}, the next best"
    return said + f"; {part} is limited by the {best[part]['limited_by']}"


def share(frac):
    """A fraction of the memory with six digits, never more than it is.

    >>> share(0.92), share(0.9239999999)
    ('0.92', '0.923999')
    """
    return f"{Context(prec=6, rounding=ROUND_FLOOR).create_decimal(repr(frac)).normalize():f}"


def command(name, found, context, kv_dtype, default_kv_dtype, cards, mtp, batch):
    """The line that starts vLLM this way."""
    kind, layers = found["split"]["kind"], found["split"]["layers"]
    words = ["vllm", "serve", name, "--max-model-len", context or found["max_context_tokens"], "--gpu-memory-utilization", share(found["util"])]
    if kv_dtype != default_kv_dtype:  # without the flag vLLM takes what the build says
        words += ["--kv-cache-dtype", CACHE_FLAGS.get(kv_dtype, kv_dtype)]
    if kind == "tp":
        words += ["--tensor-parallel-size", found["split"]["ranks"]]
    if kind == "pp":
        words += ["--pipeline-parallel-size", len(layers)]
    if kind == "offload":
        words += ["--cpu-offload-gb", f"{math.ceil(found['split']['offloaded_bytes'] / GIB * 10) / 10:.1f}", "--enforce-eager"]
    if batch > 1:
        words += ["--max-num-seqs", batch]
    if max(card.vram_bytes for card in cards) >= LONG_CHUNKS_BYTES:
        words += ["--max-num-batched-tokens", assume.CHUNK_TOKENS]
    if mtp:
        words += ["--speculative-config", json.dumps({"method": "mtp", "num_speculative_tokens": mtp})]
    start = ["CUDA_DEVICE_ORDER=PCI_BUS_ID", f"VLLM_PP_LAYER_PARTITION={','.join(map(str, layers))}"] if kind == "pp" else []
    return " ".join(start + [shlex.quote(str(word)) for word in words])
