"""Which kernel multiplies a module: engine, stored format and card decide, by the rows of data/kernels.csv."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ... import inputs
from ...catalog.assumptions import assumptions
from .starts import capability

KERNELS = {key: entry.said["multiplied"] for key, entry in assumptions().items() if "multiplied" in entry.said}
"""The format that each kernel multiplies in, by its key in assumptions.toml."""
PLAIN = "bf16"
MOST = 10**4


@dataclass(frozen=True)
class Rule:
    """One row: in an engine, weights of a format on cards of a range of compute capabilities meet a kernel."""

    engine: str  # what its name holds; empty for any
    weights: str
    least: float
    below: float
    kernel: str
    source: str

    def holds(self, engine, format, card):
        """Whether it decides: the card must have the rate, and a capability in the range where it has one at all."""
        met = self.least <= (capability(card) or self.least) < self.below
        return self.engine in engine.lower() and self.weights in ("", format) and met and has(card, self.kernel)


def rate_of(kernel):
    """The name of a card's rate in the format that a kernel multiplies in."""
    return f"{KERNELS[kernel]}_flop_per_s"


def has(card, kernel):
    """Whether a card has the rate that a kernel needs."""
    return rate_of(kernel) in card.numbers


def table(file):
    """The rows of a table of this room."""
    text = (resources.files(__package__) / "data" / file).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@cache
def rules():
    """The rows of the table, in order."""
    bounds = lambda row: {"least": float(row["least"] or 0), "below": float(row["below"] or MOST)}
    return tuple(Rule(**row | bounds(row)) for row in table("kernels.csv"))


def decide(engine, format, card):
    """The Rule for weights stored in a format, in an engine on a card; what no row names is multiplied in 16 bits.

    >>> from ...catalog.gpus import gpu
    >>> [decide("vllm", "nvfp4", gpu(key)).kernel for key in ("rtx-5060-ti-16gb", "rtx-3090")]
    ['fp4', 'marlin']
    """
    return next(rule for rule in rules() if rule.holds(engine, format, card))


def needed(kernel, cards):
    """Refuse a kernel that was asked for and is none, or whose rate a card lacks."""
    if kernel not in KERNELS:
        raise inputs.refused("kernel", kernel, f"it must be one of {', '.join(KERNELS)}")
    for card in (card for card in cards if not has(card, kernel)):
        known = ", ".join(name for name in KERNELS if has(card, name))
        raise inputs.refused("kernel", kernel, f"{card.key} does not multiply in {KERNELS[kernel]}; it has {known}")


def build(name):
    """(stored format, bits of a weight) of a build's printed name: those of the first row whose word it holds.

    >>> build("UD-Q4_K_XL")[0], build("NVFP4 W4A4")
    ('gguf', ('nvfp4', 4.5))
    """
    rows = {row["named"]: (row["format"], float(row["bits"])) for row in table("builds.csv")}
    found = next((stored for named, stored in rows.items() if named in name.lower()), None)
    if found is None:
        raise inputs.refused("quant", name, f"it must name one of {', '.join(rows)}")
    return found


def spread(engine, format, card):
    """(slow, middle, fast): the kernels at each end, several where a mean counts. One, unless the name leaves it open:
    NVFP4 builds have 4-bit activations or 16-bit ones, and many mix both."""
    ends = tuple(decide(engine, one, card).kernel for one in reversed(format.split(" or ")))
    return ends[:1], ends, ends[-1:]
