"""Whole against split: is the output the same, and do the bytes counted on the way match the formulas?"""

from dataclasses import dataclass

import numpy as np

from ..formulas.collectives import allreduce_wire_bytes
from .group import Group
from .mixers import kv_cache, kv_heads_of_rank

TOLERANCE = 1e-10  # largest difference between whole and split that counts as equal, over the largest output
SHARE_OF_ALLREDUCE = {"all-reduce": 1, "all-gather": 1 / 2, "reduce-scatter": 1 / 2}  # in a ring it is one of each


@dataclass(frozen=True)
class Comparison:
    """One layer run whole, then split."""

    layer: str
    error: float  # largest difference of the two outputs, over the largest output [1]
    group: Group  # the ranks of the split run, with their ledger

    @property
    def equal(self):
        """yes, or by how much not."""
        return "yes" if self.error <= TOLERANCE else f"off by {self.error:.0%}"

    @property
    def payload_bytes(self):
        """The logical tensors of all its collectives [byte]."""
        return self.group.payload_bytes()

    @property
    def sent_bytes(self):
        """Counted: what the rank that sent most put on the wire [byte]."""
        return max(self.group.wire_bytes())

    @property
    def formula_bytes(self):
        """By formula: what each rank sends [byte]."""
        return sum(formula_bytes(call, self.group.ranks) for call in self.group.calls)

    @property
    def steps(self):
        """Ring steps that wait for each other, each one message latency [1]."""
        return sum(call.steps for call in self.group.calls)


def compare(layer, x, weights, ranks, element_bytes=2):
    """Run `layer` on one rank and on `ranks` ranks, with the same input.
    layer : f(x, weights, group); x : (tokens, hidden); weights : whole
    element_bytes : bytes to account for an element [byte]
    >>> from .linear import swiglu
    >>> from .weights import normal, random_swiglu
    >>> run = compare(swiglu, normal(1, 8, seed=1), random_swiglu(hidden=8, intermediate=16, seed=2), ranks=4)
    >>> run.equal, run.payload_bytes, run.sent_bytes, run.formula_bytes
    ('yes', 16, 24, 24.0)
    """
    group = Group(ranks, element_bytes)
    split = layer(x, weights, group)
    return Comparison(layer.__name__, distance(split, layer(x, weights, Group(1))), group)


def sweep(layer, x, weights, ranks=(1, 2, 4, 8)):
    """The comparison at each of several numbers of ranks."""
    return tuple(compare(layer, x, weights, n) for n in ranks)


def distance(got, want):
    """Largest difference, over the largest of `want` [1]."""
    return float(np.abs(got - want).max() / np.abs(want).max())


def formula_bytes(call, ranks):
    """What the formulas say that each rank sends in one recorded ring collective [byte]."""
    return SHARE_OF_ALLREDUCE[call.kind] * allreduce_wire_bytes(call.payload_bytes, ranks)


def kv_kept_bytes(x, weights, ranks, element_bytes=2):
    """Keys and values that each rank of an attention layer keeps, one number per rank [byte]."""
    cache = kv_cache(x, weights, Group(ranks))
    return tuple((key.size + value.size) * element_bytes for key, value in cache)


def table(*comparisons):
    """One line per run."""
    return text_table(("layer", "ranks", "collectives", "each rank sends", "by formula", "equal"), [
        (run.layer, run.group.ranks, len(run.group.calls), run.sent_bytes, run.formula_bytes, run.equal)
        for run in comparisons
    ])


def ledger(*comparisons):
    """One line per collective."""
    return text_table(("layer", "collective", "of", "payload", "each rank sends", "by formula", "ring steps"), [
        (run.layer, call.kind, call.label, call.payload_bytes, max(call.wire_bytes),
         formula_bytes(call, run.group.ranks), call.steps)
        for run in comparisons for call in run.group.calls
    ])


def kv_table(x, weights, ranks=(1, 2, 4, 8)):
    """Which KV heads each rank keeps, and how many bytes."""
    rows = []
    for n in ranks:
        heads = (" ".join(map(str, kv_heads_of_rank(weights.kv_heads, n, rank))) for rank in range(n))
        kept = kv_kept_bytes(x, weights, n)
        rows.append((n, " | ".join(heads), max(kept), sum(kept)))
    return text_table(("ranks", "KV heads of rank 0 | 1 | ...", "each rank keeps", "all ranks keep"), rows)


def text_table(head, rows):
    """Columns of plain text: texts to the left, numbers to the right, in whole numbers.
    >>> print(text_table(("of", "bytes"), [("down", 10240.0), ("gate and up", 69632)]))
    of            bytes
    down         10,240
    gate and up  69,632
    """
    shown = [head, *(tuple(cell if isinstance(cell, str) else f"{cell:,.0f}" for cell in row) for row in rows)]
    columns = []
    for sample, column in zip(rows[0] if rows else head, zip(*shown)):
        align = str.ljust if isinstance(sample, str) else str.rjust
        columns.append([align(cell, max(map(len, column))) for cell in column])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns))
