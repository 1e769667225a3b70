"""Decode speeds as people measured them, one stream, beside the additive model.

Read are the columns that describe the setting, never the speed: bytes read, card, split, link, engine, drafts, cache.
"""

from collections import Counter

from ..catalog.gpus import by_name
from ..catalog.models import by_name as model_by_name
from ..formulas import decode, memory, speculation
from ..plan import assume, speed, wire
from ..units import GB
from . import transports
from .checks import Unusable, judged, need_columns
from .measured import MIDDLE, setting

QUANTITY = "tokens_per_s"
KV_BYTES = {"q4_0": 18 / 32, "q8_0": 34 / 32, "int8": 1, "fp8": 1, "bf16": 2, "f16": 2, "auto": 2, "n/s": 2}  # llama.cpp adds a scale per 32
SHORT_TOKENS = 1024  # a cache that one card reads in no time beside its weights
MOST_TOKENS, MOST_GB, MOST_DRAFTS = 10**8, 10**5, speculation.MAX_DRAFTS


def rows(columns, lines):
    """The Rows of a table with the columns of decode_cases.csv."""
    need_columns(columns, ("id", "model", "weight_read_gb", "gpu", "tp", "pp", "link", "engine", "spec_tokens", "kv_dtype"))
    return judged(lines, QUANTITY, predict)


def predict(line, gap=True):
    """((low, middle, high) in tokens/s, what was assumed) of one row; without `gap` the engine never lets the GPU wait."""
    rates, drafts = [], line.number("spec_tokens", most=MOST_DRAFTS)
    for end in range(len(assume.ENDS)):
        v, config, call_s, handover_s = _step(line, drafts, end, gap)
        step = v(decode.engine_step_s) + handover_s
        rates.append(speculation.round_tokens(drafts, assume.ACCEPTANCE[end]) / (step + drafts * _draft_s(config, v, drafts, call_s(1))))
    note = f"a draft is accepted with a chance of {assume.ACCEPTANCE[0]} to {assume.ACCEPTANCE[-1]}" if drafts else ""
    return tuple(rates), note


def parts_s(line):
    """(reads at the full bandwidth of the data sheet, all-reduces and hand-overs, wait of the engine) of one step in the middle, without drafts."""
    v, _, _, handover_s = _step(line, 0, MIDDLE, True)
    reads = (v(decode.weight_read_s) + v.kv_read_s) * v.achieved_frac
    return reads, v.allreduces * v.protocol_allreduce_s + handover_s, v.gap_s


def _step(line, drafts, end, gap):
    """(one step as a view, the model's shape, time of an all-reduce of so many tokens, time of all hand-overs) of a row."""
    if line.text("cuda_graphs", "yes") != "yes":
        raise Unusable("cuda_graphs is not yes: then the host's launches set the pace, which no column tells")
    ranks, stages = transports.split_of(line)
    try:
        card = by_name(line.text("gpu"))
    except ValueError as error:
        raise Unusable(str(error)) from None
    link, config = transports.of(line), _config(line, ranks * stages)
    more = {"ranks": ranks, "read_bytes": line.number("weight_read_gb", whole=False, least=1e-3, most=MOST_GB) * GB}
    if config:
        more |= {"layers": len(config.order), "hidden": config.hidden}
    v = setting(card, link, end, **more, tokens=1 + drafts, achieved_frac=assume.ACHIEVED[end], gap_s=gap * assume.gap_range_s(line.text("engine"))[end])
    call_s = lambda tokens: wire.allreduce_s(link, v.message_bytes / v.tokens * tokens, ranks, end)
    v = v.extended(kv_read_s=_cache_s(line, config, v), protocol_allreduce_s=call_s(v.tokens))
    return v, config, call_s, (stages - 1) * speed.handover_s(link, v.message_bytes, end)


def _config(line, cards):
    """The shape of the row's model; None where it is not needed: one card, a short cache, no drafts."""
    try:
        return model_by_name(line.text("model"))
    except ValueError as error:
        if cards == 1 and line.number("kv_depth_tokens", 0) <= SHORT_TOKENS and not line.number("spec_tokens"):
            return None
        raise Unusable(str(error)) from None


def _cache_s(line, config, v):
    """Time to read the cache: layers with a window hold no more than that."""
    depth, kind = line.number("kv_depth_tokens", 0, most=MOST_TOKENS), line.text("kv_dtype", "n/s")
    if kind not in KV_BYTES:
        raise Unusable(f"kv_dtype = {kind[:40]!r} is not accepted: it must be one of {', '.join(KV_BYTES)}")
    if not depth or config is None:
        return 0.0
    if any(layer.kind == "latent" for layer in config.order):
        raise Unusable("a latent cache is not predicted here")
    same = Counter((layer.kv_heads, layer.head_elements, min(depth, layer.window_tokens or depth)) for layer in config.order if layer.kv_heads)
    return sum(v(decode.kv_read_s, context_tokens=tokens, kv_bytes_per_token=memory.kv_bytes_per_token(
        count, heads, size, KV_BYTES[kind], v.ranks)) for (heads, size, tokens), count in same.items())


def _draft_s(config, v, drafts, call_s):
    """Time of one draft step, whose all-reduces of one token take call_s; the draft layer and the head as in the catalog's own build, which keeps both in 16 bits."""
    if not drafts:
        return 0.0
    if not config.draft_layers:
        raise Unusable(f"spec_tokens = {drafts} is not predicted: {config.name} has no MTP layer")
    calls = assume.DRAFT_ALLREDUCES if v.ranks > 1 else 0
    return v(decode.weight_read_s, read_bytes=speed.draft_bytes(config, 1)) + calls * call_s
