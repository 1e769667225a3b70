"""Public decode speeds beside the model: the rows of data/decode_cases.csv that count."""

from dataclasses import dataclass
from functools import lru_cache

from .checks import own_table
from .checks_decode import predict, step_of


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
    source: str
    engine: str
    group: str  # rows of one person on one machine
    step: object  # of the middle, without drafts
    line: object  # its cells

    inside = property(lambda self: self.low <= self.measured <= self.high, doc="Whether the range holds the rate.")


@lru_cache(maxsize=None)
def cases(gap=True):
    """Every row of data/decode_cases.csv that counts and drafts nothing, with or without the engine's wait.

    A short prompt in an empty cell counts as an empty cache.
    """
    found = []
    for row in own_table("decode")[0]:
        if row.text("use") == "gate" and row.text("spec_tokens") == "0" and not row.text("power_limit_w"):
            split = f"TP{row['tp']}" if row["tp"] != "1" else "layer split" if row["pp"] != "1" else "one card"
            words = f"{row['gpus']} × {row['gpu']}, {split}, {row['engine']}, {row['quant']}"
            found.append(Case(row["id"], words, row["link"], row.number("kv_depth_tokens", 0), *predict(row, gap)[0],
                              float(row["tokens_per_s"]), row["source"], row["engine"], row["group"], step_of(row),
                              row))
    return tuple(found)
