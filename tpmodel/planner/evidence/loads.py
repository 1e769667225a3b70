"""Weights as vLLM printed them when they were loaded, beside what our shapes weigh."""

from dataclasses import dataclass
from statistics import median

from ...catalog.gpus import gpu
from ...formula.units import GIB
from ..engine import kernels, takes
from ..plan import placement
from ..plan.build import build
from ..plan.values import Ask

GATE = "gate"


@dataclass(frozen=True)
class Load:
    """A build on so many ranks: printed and ours in GiB of one GPU; whether it is known which modules it quantises."""

    model: str
    printed_gib: float
    ours_gib: float
    counts: bool
    note: str
    source: str

    error = property(lambda self: self.ours_gib / self.printed_gib - 1, doc="Ours / printed - 1.")


def loads():
    """Every row of engine/data/loads.csv; what was printed is read only to compare.

    >>> [load.model for load in loads()][:2]
    ['llama-3.1-8b', 'qwen3-8b']
    """
    return tuple(map(_load, kernels.table("loads.csv")))


def _load(line):
    ranks, drafts = int(line["ranks"]), int(line["drafts"])
    ask = Ask(line["model"], ("b200",) * ranks, quant=line["quant"] or None)
    config, cards = build(ask), (gpu("b200"),) * ranks
    held = placement.place(config, cards, "tp" if ranks > 1 else "one").weights_bytes[0]
    left = 0 if drafts else sum(module.bytes for module in config.modules if module.name == "mtp") / ranks
    ours = held - left + takes.padding(config, ranks)
    name = " ".join(filter(None, (line["model"], line["quant"])))
    return Load(name, float(line["loaded_gib"]), ours / GIB, line["use"] == GATE, line["note"], line["source"])


def summary():
    """(builds that count, the median size of their errors, the largest)."""
    errors = [abs(load.error) for load in loads() if load.counts]
    return len(errors), median(errors), max(errors)
