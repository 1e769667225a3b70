"""One decode step: read the weights, read the KV cache, sum the partial results."""

from .. import ops
from ..formula import formula
from .collectives import allreduces, communication_s


@formula
def weight_read_s(read_bytes, ranks, memory_bytes_per_s, achieved_frac):
    r"""Time to read the weights once, each GPU its share, $t_w = \frac{W}{N \eta B_{mem}}$.

    read_bytes : W, what one step reads: not the embedding table, nor a vision tower [byte]
    ranks : N, the split is even [1]
    memory_bytes_per_s : B_mem, data sheet [byte/s]
    achieved_frac : eta, 1 for the bound that nothing beats [1]
    returns : t_w [s]
    limits : batch so small that arithmetic hides behind the read.
    source : Williams et al. 2009, doi:10.1145/1498765.1498785 (the roofline's slope)

    >>> round(weight_read_s(20e9, 2, 448e9, 1) * 1e3, 1)
    22.3
    """
    return read_bytes / (ranks * achieved_frac * memory_bytes_per_s)


@formula
def kv_read_s(kv_bytes_per_token, context_tokens, memory_bytes_per_s, achieved_frac):
    r"""Time to read the KV cache once, $t_{kv} = \frac{k c}{\eta B_{mem}}$.

    kv_bytes_per_token : k, on one GPU [byte/token]
    context_tokens : c [token]
    memory_bytes_per_s, achieved_frac : as in weight_read_s
    returns : t_kv [s]
    limits : the cache is read once a step and as fast as weights; real kernels reach 65-98 % of that.
    source : every new token attends to every cached one

    >>> round(kv_read_s(16384, 131072, 448e9, 1) * 1e3, 2)
    4.79
    """
    return kv_bytes_per_token * context_tokens / (achieved_frac * memory_bytes_per_s)


@formula
def decode_s(read_bytes, ranks, memory_bytes_per_s, achieved_frac, kv_bytes_per_token, context_tokens,
             allreduces, message_bytes, link_bytes_per_s, allreduce_latency_s):
    r"""Time of one decode step, nothing overlapped, $t = t_w + t_{kv} + t_{comm}$.

    Parameters as in weight_read_s, kv_read_s and communication_s.
    returns : t, the upper end; decode_overlapped_s is the lower [s]
    limits : one stream, one token a step; no launch cost, so CUDA graphs are on; no sampling.
    source : the sum of the three

    >>> round(decode_s(20e9, 2, 448e9, 1, 32768, 0, 128, 0, 1, 20e-6) * 1e3, 1)
    24.9
    """
    return (
        weight_read_s(read_bytes, ranks, memory_bytes_per_s, achieved_frac)
        + kv_read_s(kv_bytes_per_token, context_tokens, memory_bytes_per_s, achieved_frac)
        + communication_s(allreduces, message_bytes, ranks, link_bytes_per_s, allreduce_latency_s)
    )


@formula
def decode_overlapped_s(read_bytes, ranks, memory_bytes_per_s, achieved_frac, kv_bytes_per_token, context_tokens,
                        allreduces, message_bytes, link_bytes_per_s, allreduce_latency_s):
    r"""Time of one decode step if all-reduces hid behind the reads, $t_{min} = \max(t_w + t_{kv}, t_{comm})$.

    Parameters as in decode_s.
    returns : the lower end; at most a factor 2 below decode_s [s]
    limits : no engine hides all of it at batch 1: the next read needs the sum.
    source : the larger of the two

    >>> round(decode_overlapped_s(20e9, 2, 448e9, 1, 32768, 0, 128, 0, 1, 20e-6) * 1e3, 1)
    22.3
    """
    return ops.maximum(
        weight_read_s(read_bytes, ranks, memory_bytes_per_s, achieved_frac)
        + kv_read_s(kv_bytes_per_token, context_tokens, memory_bytes_per_s, achieved_frac),
        communication_s(allreduces, message_bytes, ranks, link_bytes_per_s, allreduce_latency_s),
    )


@formula
def engine_step_s(weight_read_s, kv_read_s, allreduces, protocol_allreduce_s, gap_s):
    r"""Time of one decode step of a real engine, $t_e = t_w + t_{kv} + n_{ar} t_{ar}' + t_g$.

    weight_read_s, kv_read_s : t_w, t_kv [s]
    allreduces, protocol_allreduce_s : n_ar, t_ar'; no all-reduces for one GPU
    gap_s : t_g, what passes between two steps while the GPU waits: scheduling, sampling, the token's way to the host [s]
    returns : t_e; equal to decode_s without a gap over a link of one straight line [s]
    limits : one stream, one token a step; CUDA graphs are on.
    source : the sum; for the gap https://github.com/vllm-project/vllm/issues/6854

    >>> round(engine_step_s(0.020, 0, 128, 20e-6, 3e-3) * 1e3, 2)
    25.56
    """
    return weight_read_s + kv_read_s + allreduces * protocol_allreduce_s + gap_s


@formula
def decode_tokens_per_s(decode_s):
    r"""Decode rate of one stream, $r = 1/t$.

    decode_s : t [s]
    returns : r [token/s]
    limits : one token a step.
    source : a reciprocal

    >>> decode_tokens_per_s(decode_s=0.025)
    40.0
    """
    return 1 / decode_s


@formula
def decode_bound_tokens_per_s(read_bytes, ranks, memory_bytes_per_s):
    r"""Decode rate if only the weight read took time, at the data-sheet bandwidth, $r_w = N B_{mem} / W$.

    read_bytes, ranks, memory_bytes_per_s : as in weight_read_s
    returns : r_w, a bound on steps that nothing beats [token/s]
    limits : one token a step; speculative decoding confirms more tokens a read.
    source : weight_read_s with eta = 1

    >>> round(decode_bound_tokens_per_s(20e9, 2, 448e9), 1)
    44.8
    """
    return 1 / weight_read_s(read_bytes, ranks, memory_bytes_per_s, 1)


@formula
def bound_frac(decode_tokens_per_s, decode_bound_tokens_per_s):
    r"""Decode rate as a fraction of the weight-read bound, $\varphi = r / r_w$.

    decode_tokens_per_s : r [token/s]
    decode_bound_tokens_per_s : r_w [token/s]
    returns : phi, 0 to 1 [1]
    limits : as its two rates
    source : a quotient

    >>> bound_frac(decode_tokens_per_s=40, decode_bound_tokens_per_s=50)
    0.8
    """
    return decode_tokens_per_s / decode_bound_tokens_per_s


@formula
def gap_allreduce_s(round_tokens, decode_tokens_per_s, weight_read_s, kv_read_s, layers):
    r"""Time of one all-reduce that would explain a measured rate, $t_{ar}^{*} = \max(0, e / r - t_w - t_{kv}) / n_{ar}$.

    round_tokens : e, tokens that a step confirms: 1 without speculative decoding [token]
    decode_tokens_per_s : r, as measured [token/s]
    weight_read_s, kv_read_s : t_w, t_kv [s]
    layers : L; two all-reduces each [1]
    returns : 0 when the rate beats the reads [s]
    limits : all of the gap is put on the link, also what belongs to launches or heat.
    source : decode_s solved for t_ar

    >>> round(gap_allreduce_s(1, 40, 0.0223, 0, 64) * 1e6, 1)
    21.1
    """
    return ops.maximum(0, round_tokens / decode_tokens_per_s - weight_read_s - kv_read_s) / allreduces(layers)
