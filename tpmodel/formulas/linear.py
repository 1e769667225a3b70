"""A weight matrix cut by columns or by rows, and the three ways to pair two cuts into one FFN."""

from ..formula import formula
from .collectives import allreduce_payload_bytes, allreduce_wire_bytes, gather_wire_bytes

GATE_AND_UP = 2  # a gated FFN has two input projections of the intermediate size


@formula
def shard_bytes(in_elements, out_elements, element_bytes, ranks):
    r"""One GPU's share of a weight matrix: by columns (D x F/N) or by rows (D/N x F), the same.
    limits : no scales, no padding.
    source : Shoeybi et al. 2019, arXiv:1909.08053, section 3
    >>> shard_bytes(in_elements=5120, out_elements=17408, element_bytes=2, ranks=2) / 2**20
    85.0
    """
    return in_elements * out_elements * element_bytes / ranks


@formula
def megatron_wire_bytes(tokens, hidden, element_bytes, ranks):
    r"""Bytes each GPU sends for one FFN, column split then row split: one all-reduce of the hidden size.
    limits : ring collectives.
    source : Shoeybi et al. 2019, arXiv:1909.08053, figure 3
    >>> megatron_wire_bytes(tokens=1, hidden=5120, element_bytes=2, ranks=2)
    10240.0
    """
    return allreduce_wire_bytes(allreduce_payload_bytes(tokens, hidden, element_bytes), ranks)


@formula
def naive_a_wire_bytes(tokens, hidden, intermediate, element_bytes, ranks):
    r"""Bytes each GPU sends for one FFN, column split twice: a gather of the intermediate, a gather of the output.
    limits : the gate is multiplied in before the gather; the article counts the first gather only.
    source : counted by the simulated ranks of tpmodel.ranks
    >>> naive_a_wire_bytes(tokens=1, hidden=5120, intermediate=17408, element_bytes=2, ranks=2)
    22528.0
    """
    between = gather_wire_bytes(allreduce_payload_bytes(tokens, intermediate, element_bytes), ranks)
    return between + gather_wire_bytes(allreduce_payload_bytes(tokens, hidden, element_bytes), ranks)


@formula
def naive_b_wire_bytes(tokens, hidden, intermediate, element_bytes, ranks):
    r"""Bytes each GPU sends for one FFN, row split twice: gate and up are summed before the nonlinearity.
    limits : a reduce-scatter in place of the first all-reduce would halve it; the article takes its sum as hidden wide.
    source : counted by the simulated ranks of tpmodel.ranks
    >>> naive_b_wire_bytes(tokens=1, hidden=5120, intermediate=17408, element_bytes=2, ranks=2)
    79872.0
    """
    inner = allreduce_wire_bytes(GATE_AND_UP * allreduce_payload_bytes(tokens, intermediate, element_bytes), ranks)
    return inner + allreduce_wire_bytes(allreduce_payload_bytes(tokens, hidden, element_bytes), ranks)
