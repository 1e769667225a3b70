"""Decode of one stream by the additive model, over any link of the catalog and with the wait of an engine; beside public rows.

Its inputs are stated ranges; none is fitted to a row. `end` is SLOW, MIDDLE or FAST: where in its range a link is.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from ..catalog.articles import MODEL
from ..catalog.gpus import gpu
from ..catalog.links import link
from ..formula import View
from ..formulas import collectives, decode, memory
from ..plan import wire
from ..plan.assume import ACHIEVED, ENDS, gap_range_s
from .article1 import read_bytes
from .checks import parse_table

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


@dataclass(frozen=True)
class Case:
    """One public row and what the model says of it, in tokens/s."""

    id: str
    setting: str
    link: str
    tokens: int
    low: float
    mid: float
    high: float
    measured: float
    note: str
    source: str

    @property
    def inside(self):
        """Whether the measured rate lies between low and high."""
        return self.low <= self.measured <= self.high


@lru_cache(maxsize=None)
def cases(gap=True):
    """Every row of data/decode_cases.csv that counts, with its prediction, if wanted without the engine's wait between steps.

    A short prompt in an empty cell counts as an empty cache.
    """
    from .checks_decode import predict

    text = (resources.files(__package__) / "data" / "decode_cases.csv").read_text(encoding="utf-8")
    found = []
    for row in parse_table(text, "decode_cases.csv")[1]:
        if row.text("use") == "gate":
            (low, mid, high), _ = predict(row, gap)
            split = f"TP{row['tp']}" if row["tp"] != "1" else "layer split" if row["pp"] != "1" else "one card"
            words = f"{row['gpus']} × {row['gpu']}, {split}, {row['engine']}, {row['quant']}"
            found.append(Case(row["id"], words, row["link"], row.number("kv_depth_tokens", 0), low, mid, high, float(row["tokens_per_s"]),
                              row["note"], row["source"]))
    return tuple(found)
