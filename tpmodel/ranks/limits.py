"""Where an exact split stops being exact: two mistakes, counts that do not divide, and BF16."""

import numpy as np

from .group import Group, agreed, columns, rows
from .linear import row_parallel, silu


def bias_on_every_rank(pieces, weight, group, bias):
    """`row_parallel` gone wrong: every rank adds the bias, so the sum holds it `ranks` times."""
    partial = [piece @ part + bias for piece, part in zip(pieces, rows(weight, group.ranks), strict=True)]
    return agreed(group.all_reduce(partial, "row parallel"))


def swiglu_of_partial_sums(x, weights, group):
    """`swiglu_naive_b` gone wrong: silu runs on the partial sums, before they are added."""
    shards = zip(columns(x, group.ranks), rows(weights.gate, group.ranks), rows(weights.up, group.ranks))
    partial = [silu(piece @ gate) * (piece @ up) for piece, gate, up in shards]
    inner = agreed(group.all_reduce(partial, "intermediate"))
    return row_parallel(columns(inner, group.ranks), weights.down, group, label="down")


def refusal(layer, x, weights, ranks):
    """What `layer` answers to a split that cannot be; empty if it runs."""
    try:
        layer(x, weights, Group(ranks))
    except ValueError as error:
        return str(error)
    return ""


def bf16(x):
    """Rounded to the nearest BF16, ties to even: the upper half of the bits of an FP32.
    >>> float(bf16(257.0)), float(bf16(258.0))
    (256.0, 258.0)
    """
    bits = np.asarray(x, np.float32).view(np.uint32)
    even = (bits >> 16) & 1
    return ((bits + 0x7FFF + even) & 0xFFFF0000).view(np.float32)


class Bf16Group(Group):
    """Ranks that send BF16: partial sums are rounded before they travel, added in FP32, and the total rounded."""

    def all_reduce(self, parts, label=""):
        return [bf16(total) for total in super().all_reduce([bf16(part) for part in parts], label)]
