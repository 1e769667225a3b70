"""Public decode speeds beside the additive model. Its inputs are stated ranges; none is fitted to a row.

The rows of data/decode_cases.csv have one stream and no speculation. Read are the inputs only, never the measured rate.
"""

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from ..catalog.articles import MODEL
from ..catalog.gpus import gpu
from ..catalog.links import link
from ..formula import View
from ..formulas import collectives, decode, memory
from ..units import GB
from .article1 import read_bytes

ACHIEVED = (0.70, 0.80, 0.90)  # low: matrix-vector products on our H200; high: the best public single-card rows
GPUS = {"RTX 5060 Ti": "rtx-5060-ti-16gb", "RTX 5070 Ti": "rtx-5070-ti", "RTX 5090": "rtx-5090", "RTX 3090": "rtx-3090"}
LINKS = {"shm": "shm", "mailbox": "mailbox", "p2p": "p2p-pcie4-x16", "pcie-unknown": "pcie-unknown", "none": "pcie-unknown"}
KV_BYTES = {"q4_0": 18 / 32, "q8_0": 34 / 32, "int8": 1, "fp8": 1, "bf16": 2, "auto": 2, "n/s": 2}  # llama.cpp adds a scale per 32


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


def setting(card="rtx-5060-ti-16gb", transport="shm", end=1, **more):
    """A decode step of Qwen3.8-27B as a view; `end` 0, 1, 2: the transport's fastest, middle and slowest numbers."""
    links = link(transport).numbers
    base = {**MODEL.values(), **gpu(card).values(), "ranks": 2, "tokens": 1, "context_tokens": 0, "kv_element_bytes": 1,
            "achieved_frac": ACHIEVED[1], "read_bytes": read_bytes(),
            "link_bytes_per_s": links["link_bytes_per_s"].base_range[2 - end],
            "allreduce_latency_s": links["allreduce_latency_s"].base_range[end]}
    return View(base | more).derived({"allreduces": lambda v: v(collectives.allreduces),
                                      "message_bytes": lambda v: v(collectives.allreduce_payload_bytes),
                                      "kv_bytes_per_token": lambda v: v(memory.kv_bytes_per_token)})


def rate(*place, **more):
    """Decode rate of one stream by decode_s; arguments as in setting."""
    return decode.decode_tokens_per_s(decode_s=setting(*place, **more)(decode.decode_s))


def speedup(card, transport, end=1, **more):
    """The rate of two cards over that of one that could hold it all."""
    return rate(card, transport, end, **more) / rate(card, transport, end, **more, ranks=1)


@lru_cache(maxsize=None)
def cases():
    """Every row of the file with its prediction. A short prompt in an empty cell counts as an empty cache."""
    text = (resources.files(__package__) / "data" / "decode_cases.csv").read_text(encoding="utf-8")
    found = []
    for row in csv.DictReader(text.splitlines()):
        tokens = int(row["kv_depth_tokens"] or 0)
        low, mid, high = (
            rate(GPUS[row["gpu"]], LINKS[row["link"]], end, achieved_frac=achieved, ranks=int(row["tp"]), context_tokens=tokens,
                 read_bytes=float(row["weight_read_gb"]) * GB, kv_element_bytes=KV_BYTES[row["kv_dtype"]])
            for achieved, end in zip(ACHIEVED, (2, 1, 0))
        )
        split = f"TP{row['tp']}" if row["tp"] != "1" else "layer split" if row["pp"] != "1" else "one card"
        words = f"{row['gpus']} × {row['gpu']}, {split}, {row['engine']}, {row['quant']}"
        found.append(Case(row["id"], words, row["link"], tokens, low, mid, high, float(row["tokens_per_s"]), row["note"], row["source"]))
    return tuple(found)
