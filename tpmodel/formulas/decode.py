"""Decode: the rate of one stream, its bound, and what a measured rate leaves unexplained."""

from ..formula import formula, ops
from .collectives import allreduces
from .passes import weight_read_s


@formula
def decode_tokens_per_s(pass_s):
    r"""Decode rate of one stream.
    limits : one token a pass.
    source : a reciprocal
    >>> decode_tokens_per_s(pass_s=0.025)
    40.0
    """
    return 1 / pass_s


@formula
def decode_bound_tokens_per_s(read_bytes, ranks, memory_bytes_per_s):
    r"""Decode rate if only the weight read took time, at the data-sheet bandwidth.
    returns : r_w, a bound on steps that nothing beats
    limits : one token a step; speculative decoding confirms more tokens a read.
    source : weight_read_s with eta = 1
    >>> round(decode_bound_tokens_per_s(20e9, 2, 448e9), 1)
    44.8
    """
    return 1 / weight_read_s(read_bytes, ranks, memory_bytes_per_s, 1)


@formula
def bound_frac(decode_tokens_per_s, decode_bound_tokens_per_s):
    r"""Decode rate as a fraction of the weight-read bound.
    returns : phi, 0 to 1
    limits : as its two rates
    source : a quotient
    >>> bound_frac(decode_tokens_per_s=40, decode_bound_tokens_per_s=50)
    0.8
    """
    return decode_tokens_per_s / decode_bound_tokens_per_s


@formula
def unexplained_s(round_tokens, measured_tokens_per_s, round_s):
    r"""Time of a measured step that the model leaves unexplained.
    returns : negative where the measured step is the faster one
    limits : one stream; without drafts the round is the pass.
    source : a difference
    >>> round(unexplained_s(round_tokens=1, measured_tokens_per_s=40, round_s=0.0223) * 1e3, 1)
    2.7
    """
    return round_tokens / measured_tokens_per_s - round_s


@formula
def gap_allreduce_s(communication_s, unexplained_s, layers):
    r"""Time of one all-reduce that would explain a measured rate.
    returns : 0 when the rate beats all but the all-reduces
    limits : all of the gap is put on the link, also what belongs to the engine, to launches or heat.
    source : round_s = e / r_m solved for t_ar
    >>> round(gap_allreduce_s(communication_s=0.00256, unexplained_s=0.00128, layers=64) * 1e6, 1)
    30.0
    """
    return ops.maximum(0, communication_s + unexplained_s) / allreduces(layers)
