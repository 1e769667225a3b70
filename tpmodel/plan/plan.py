"""`plan`: one model on given GPUs, for one way to split it or for the best of all."""

from dataclasses import asdict, replace
from pathlib import Path

from ..catalog import sourced
from ..catalog.gpus import FILE as GPUS, gpu
from ..catalog.links import FILE as LINKS, link as find_link
from ..catalog.models import find_config
from ..split import fastest, parse_reserves
from ..units import GIB
from ..vllm.engine import Refused, version
from . import assume, placement, speed

KINDS = ("one", "offload", "tp", "pp")
DEFAULT_LINK = "shm"
NATIVE_TOKENS = 32768  # where a config.json prints no length


def plan(model, gpus, parallel="auto", layers=None, link=DEFAULT_LINK, kv_dtype=None, context=None, util=0.92, reserve_gib="0",
         mtp=0, acceptance=0.0, batch=1, engine="vllm-0.33", catalog=None, goal="decode"):
    """The plan as plain values; see the command line for what each argument is."""
    _check(gpus, parallel, layers, context, util, mtp, acceptance, batch, goal)
    extra = _own(catalog)
    cards = tuple(extra.get(key) or gpu(key) for key in gpus)
    wire = extra.get(link) or find_link(link)
    for entry, names in [*((card, ("vram_bytes", "memory_bytes_per_s", "bf16_flop_per_s")) for card in cards), (wire, ("link_bytes_per_s",))]:
        missing = [name for name in names if name not in entry.numbers]
        if missing:
            raise ValueError(f"{entry.key} has no {', '.join(missing)} in the catalog: a plan needs it")
    config = find_config(model)
    if mtp and not config.draft_layers:
        raise ValueError(f"mtp = {mtp} is not accepted: {model} has no MTP layer")
    native = config.native_tokens or NATIVE_TOKENS
    if context is not None and context > native:
        raise ValueError(f"context = {context} is not accepted: it must be at most {native}, the native length of {model}")
    setting = placement.engine_setting(version(engine), kv_dtype or config.kv_dtype, context or native, mtp)
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
    part = "decode" if goal == "decode" else "prefill"
    best = max(tried, key=lambda found: (found["fits"], found[part]["mid"] if found[part] else 0.0))
    best["compared"] = [{"kind": f["split"]["kind"], "layers": f["split"]["layers"], "fits": f["fits"], "max_context_tokens":
                         f["max_context_tokens"], **{p: {e: f[p][e] for e in assume.ENDS} if f[p] else None for p in ("decode", "prefill")}}
                        for f in tried]
    best["command"] = command(model, best, setting, util, context, mtp)
    best["verdict"] = _verdict(best, tried, part)
    best["assumptions"] = assume.words(wire, best["split"]["kind"]) + refusals
    return best


def _check(gpus, parallel, layers, context, util, mtp, acceptance, batch, goal):
    n = len(gpus)
    for name, value, fine, wanted in (
        ("gpu", n, n >= 1, "named at least once"),
        ("parallel", parallel, parallel in KINDS + ("auto",), f"one of {', '.join(KINDS)}, auto"),
        ("parallel", parallel, n > 1 or parallel in ("auto", "one", "offload"), "one, offload or auto for a single GPU"),
        ("layers", layers, layers is None or parallel == "pp", "given with --parallel pp only"),
        ("context", context, context is None or context >= 1, "a whole number >= 1"),
        ("util", util, 0 < util <= 1, "a number above 0, at most 1"),
        ("mtp", mtp, 0 <= mtp <= 16, "a whole number from 0 to 16"),
        ("acceptance", acceptance, 0 <= acceptance < 1, "a number from 0 up to but not 1"),
        ("batch", batch, 1 <= batch <= 4096, "a whole number from 1 to 4096"),
        ("goal", goal, goal in ("decode", "prefill"), "decode or prefill"),
    ):
        if not fine:
            raise ValueError(f"{name} = {value} is not accepted: it must be {wanted}")


def _own(path):
    """Entries of the user's own catalog file: GPUs and links by key."""
    return {} if path is None else sourced.read(Path(path).read_text(encoding="utf-8"), str(path))


def _candidates(config, cards):
    """Every way that `auto` compares: (kind, layers)."""
    n, count = len(cards), len(config.order)
    found = [("one", None), ("offload", None)]
    if n > 1:
        found += [("tp", None), ("pp", None)]
        rates = [card.bf16_flop_per_s for card in cards]
        if count >= n and len(set(rates)) > 1:
            found.append(("pp", tuple(fastest(count, rates, [count] * n))))
    return found


def _one(config, cards, wire, kind, layers, setting, reserves, util, context, batch, mtp, acceptance):
    """The plan for one way: memory of each GPU, largest context, speeds."""
    placed = placement.place(config, cards, "one" if kind == "offload" else kind, layers)
    budget = placement.budgets(placed.cards, util, reserves)
    if kind == "offload":
        placed = placement.with_offload(placed, budget[0])
        if not placed.offloaded_bytes:
            raise Refused("offload is not needed: the weights fit on the first GPU")
    setting = replace(setting, ranks=placed.ranks)
    ends = {}
    for name, overhead in zip(assume.ENDS, assume.OVERHEAD_BYTES):
        found = placement.memories(config, placed, setting, budget, overhead)
        ends[name] = placement.longest(config, placed, setting, found)
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
        "split": {"kind": kind, "layers": list(placed.layers), "ranks": placed.ranks, "offloaded_bytes": placed.offloaded_bytes},
    }


def _verdict(best, tried, part):
    """One sentence: whether it fits, by how much, and which way wins by how much."""
    if not best["fits"]:
        short = min(gpu["kv_pool_bytes"] for gpu in best["gpus"])
        least = f"the weights and buffers exceed the budget of a GPU by {-short / GIB:.2f} GiB" if short < 0 else \
            f"only {best['max_context_tokens']:,} tokens fit"
        return f"does not fit: {least}"
    ends = best["max_context_range"]
    said = f"fits: up to {best['max_context_tokens']:,} tokens ({ends['low']:,} to {ends['high']:,} by the overhead)"
    others = sorted((f[part]["mid"], f["split"]["kind"]) for f in tried if f is not best and f["fits"] and f[part])
    if others:
        rate, kind = others[-1]
        said += f"; {best['split']['kind']} is {best[part]['mid'] / rate:.2f} times as fast in {part} as {kind}, the next best"
    return said + f"; {part} is limited by the {best[part]['limited_by']}"


def command(model, found, setting, util, context, mtp):
    """The line that starts vLLM this way."""
    kind, layers = found["split"]["kind"], found["split"]["layers"]
    words = ["vllm", "serve", model, "--max-model-len", str(context or max(found["max_context_tokens"], 1)), "--gpu-memory-utilization", f"{util:g}"]
    if setting.kv_dtype != "bf16":
        words += ["--kv-cache-dtype", setting.kv_dtype]
    if kind == "tp":
        words += ["--tensor-parallel-size", str(found["split"]["ranks"])]
    if kind == "pp":
        words = ["CUDA_DEVICE_ORDER=PCI_BUS_ID", f"VLLM_PP_LAYER_PARTITION={','.join(map(str, layers))}", *words,
                 "--pipeline-parallel-size", str(len(layers))]
    if kind == "offload":
        words += ["--cpu-offload-gb", f"{found['split']['offloaded_bytes'] / GIB:.1f}", "--enforce-eager"]
    if mtp:
        words += ["--speculative-config", f'\'{{"method": "mtp", "num_speculative_tokens": {mtp}}}\'']
    return " ".join(words)
