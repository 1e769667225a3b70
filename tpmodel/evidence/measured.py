"""Decode of one stream by the additive model, over any link of the catalog and with the wait of an engine.

Its inputs are stated ranges, fitted to nothing. `end` is SLOW, MIDDLE or FAST: where in its range a link is.
"""

from ..catalog.articles import MODEL
from ..catalog.gpus import gpu
from ..catalog.links import link
from ..formula import View
from ..formulas import collectives, decode, memory
from ..plan import wire
from ..plan.assume import ACHIEVED, ENDS, gap_range_s
from .article1 import read_bytes

SLOW, MIDDLE, FAST = range(len(ENDS))
RECIPES = {
    "allreduces": lambda v: v(collectives.allreduces) if v.ranks > 1 else 0,
    "message_bytes": lambda v: v(collectives.allreduce_payload_bytes),
    "kv_bytes_per_token": lambda v: v(memory.kv_bytes_per_token),
    "weight_read_s": lambda v: v(decode.weight_read_s),
    "kv_read_s": lambda v: v(decode.kv_read_s),
    "protocol_allreduce_s": lambda v: v(collectives.protocol_allreduce_s),
}
SHAPE = {name: getattr(MODEL, name) for name in ("layers", "full_layers", "kv_heads", "head_elements", "hidden", "element_bytes")}


def setting(card="rtx-5060-ti-16gb", transport="shm", end=MIDDLE, engine="vllm", **more):
    """One decode step as a view: by default of Qwen3.8-27B on two RTX 5060 Ti, one token, an empty FP8 cache.

    `transport` is a link or its key.
    """
    base = {**SHAPE, **gpu(card).values(), "ranks": 2, "tokens": 1, "context_tokens": 0, "kv_element_bytes": 1, "read_bytes": read_bytes(),
            "achieved_frac": ACHIEVED[MIDDLE], "gap_s": gap_range_s(engine)[MIDDLE]} | more
    way = link(transport) if isinstance(transport, str) else transport
    return View(wire.numbers(way, base["ranks"], end) | base).derived(RECIPES)


def rate(*place, **more):
    """Decode rate of one stream, tokens/s; arguments as in setting.

    >>> rate(ranks=1) < rate() < 2 * rate(ranks=1)
    True
    """
    return decode.decode_tokens_per_s(decode_s=setting(*place, **more)(decode.engine_step_s))


def speedup(card, transport, end=MIDDLE, **more):
    """The rate of two cards over that of one that could hold it all."""
    return rate(card, transport, end, **more) / rate(card, transport, end, **more, ranks=1)
