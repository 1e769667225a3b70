"""Starts of vLLM whose card, weights and pool were printed: the pool by the parts, and with its own source left out."""

from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median

from ...formula.units import GIB
from ..engine.takes import Stage, taken
from ..engine.versions import Setting, version
from ..shapes.models import find_config
from .articles import OVERHEAD
from .rows import table


@dataclass(frozen=True)
class Start:
    """A start: its pool as printed, and as predicted by article 1's 1.2 GiB, by the parts, and without its source."""

    id: str
    model: str
    source: str
    measured_gib: float
    before_gib: float
    parts_gib: float
    range_gib: tuple
    left_out_gib: float
    note: str

    def errors(self):
        """Predicted / measured - 1 of the three."""
        return tuple(found / self.measured_gib - 1 for found in (self.before_gib, self.parts_gib, self.left_out_gib))


def _taken(line):
    """The Taken of a row: the printed load counts what kernels pad already."""
    config, ranks = find_config(line["model"]), int(line["tp"])
    if line["text_only"] == "1":
        config = replace(config, modules=tuple(m for m in config.modules if m.name != "vision"))
    setting = Setting(version(line["engine_version"]), ranks=ranks, sequences=int(line["max_num_seqs"]),
                      batch_tokens=int(line["max_num_batched_tokens"]), drafts=int(line["spec_tokens"]))
    return taken(config, setting, Stage(config.order, True, True, ranks))


def _fitted(lines):
    """What these rows alone say of the two numbers that only logs tell; nothing where none prints it."""
    views = [(line, _taken(line).view) for line in lines]
    buffers = [float(line["beside_gib"]) * GIB - v.counts_bytes for line, v in views if line["beside_gib"]]
    pieces = [float(line["graphs_gib"]) * GIB / v.graph_sizes / (v.stage_layers + 1) for line, v in views
              if line["graphs_gib"]]
    found = {"buffers_bytes": buffers, "graph_piece_bytes": pieces}
    return {name: median(values) for name, values in found.items() if values}


@lru_cache(maxsize=None)
def starts():
    """Every start of pool_cases.csv, in its order. What was measured is read only to compare.

    >>> [start.id for start in starts()][:2]
    ['PO1', 'PO2']
    """
    lines, found = table("pool_cases.csv"), []
    for line in lines:
        one, others = _taken(line), [other for other in lines if other["source"] != line["source"]]
        room = float(line["total_gib"]) * float(line["util"]) - float(line["load_gib"])
        gib = lambda size, padded=one.view.padding_bytes: room - (size - padded) / GIB
        left_out = one.view.extended(**_fitted(others)).parts_bytes
        low, mid, high = one.ends
        found.append(Start(line["id"], line["model"], line["source"], float(line["pool_gib"]),
                           room - OVERHEAD.base / GIB, gib(mid), (gib(high), gib(low)), gib(left_out), line["note"]))
    return tuple(found)


def medians():
    """Median size of the error: by 1.2 GiB, by the parts, by the parts with the row's own source left out."""
    return tuple(median(map(abs, errors)) for errors in zip(*(start.errors() for start in starts())))
