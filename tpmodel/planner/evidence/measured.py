"""Decode of one stream by the one pass, over any link of the catalog and with the wait of an engine.

Its inputs are stated ranges, fitted to nothing. `end` is SLOW, MIDDLE or FAST: where in its range everything is.
"""

from ...catalog.gpus import gpu
from ...catalog.links import link
from ..engine.versions import Setting
from ..plan import assume, one_pass, wire
from ..plan.assume import ENDS
from ..plan.placement import place
from ..shapes.models import find_config
from .articles import MODEL

SLOW, MIDDLE, FAST = range(len(ENDS))


def waits_s(engine, card="rtx-5060-ti-16gb"):
    """What a pass of Qwen3.8-27B waits with an engine on a card: slow, middle, fast."""
    return assume.wait(engine, *one_pass.waiting(find_config(MODEL.key)), gpu(card)).base_range[::-1]


def setting(card="rtx-5060-ti-16gb", transport="shm", end=MIDDLE, engine=assume.ENGINE, ranks=2, context_tokens=0,
            **more):
    """One decode step of Qwen3.8-27B as a view: one token, an empty FP8 cache; the link at `end`, the rest middle.

    `transport` is a link or its key; `more` replaces quantities.
    """
    config, way = find_config(MODEL.key), link(transport) if isinstance(transport, str) else transport
    placement = place(config, (gpu(card),) * ranks, "tp" if ranks > 1 else "one")
    job = one_pass.decode(Setting(ranks=ranks, kv_dtype="fp8"), context_tokens, engine=engine)
    return one_pass.view(config, placement, wire.at_end(way, end), job, MIDDLE).given(**more)


def rate(*place, **more):
    """Decode rate of one stream, tokens/s; arguments as in setting.

    >>> rate(ranks=1) < rate() < 2 * rate(ranks=1)
    True
    """
    return setting(*place, **more).decode_tokens_per_s


def speedup(card, transport, end=MIDDLE, **more):
    """The rate of two cards over that of one that could hold it all."""
    return rate(card, transport, end, **more) / rate(card, transport, end, **more, ranks=1)
