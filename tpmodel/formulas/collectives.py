"""What the GPUs of one tensor-parallel group say to each other: payload, wire bytes, counts, time."""

from ..formula import formula, ops

ALLREDUCES_PER_LAYER = 2  # one behind the attention (or state) mixer, one behind the FFN
LL_SENT = 2  # the low-latency protocol sends a flag of 4 bytes with every 4 bytes of data
SHORTEST_S = 1e-9  # what counts as no time where a rate is asked for
IN_32_BITS = 2  # times the bytes of a message in 16 bits
HOPS_PER_ROUND = 2  # a ring all-reduce goes round twice: reduce-scatter, then all-gather


@formula
def allreduce_payload_bytes(tokens, hidden, element_bytes):
    r"""Payload of one all-reduce: every token's hidden vector.
    returns : the tensor that is summed, as one GPU holds it
    limits : BF16 activations whatever the weight format; an engine that reduces in FP8 sends half.
    source : Shoeybi et al. 2019, arXiv:1909.08053, section 3
    >>> allreduce_payload_bytes(tokens=1, hidden=5120, element_bytes=2)
    10240.0
    """
    return tokens * hidden * element_bytes


@formula
def allreduces(layers):
    r"""All-reduces in one pass: two a layer.
    returns : the count; also for Gated DeltaNet layers, whose mixer ends in one row-split projection
    limits : the embedding and the logits add one collective each; they are not counted here.
    source : Shoeybi et al. 2019, arXiv:1909.08053, figure 4
    >>> allreduces(layers=64)
    128.0
    """
    return ALLREDUCES_PER_LAYER * layers


@formula
def allreduce_wire_bytes(message_bytes, ranks):
    r"""Bytes each GPU sends in one ring all-reduce.
    returns : 0 for one GPU, M for two, towards 2 M for many
    limits : a ring; a one-shot kernel sends (N-1) M, a switch that reduces sends less.
    source : Patarasuk & Yuan 2009, doi:10.1016/j.jpdc.2008.09.002
    >>> allreduce_wire_bytes(message_bytes=1e9, ranks=4)
    1500000000.0
    """
    return HOPS_PER_ROUND * (ranks - 1) / ranks * message_bytes


@formula
def gather_wire_bytes(message_bytes, ranks):
    r"""Bytes each GPU sends in one ring all-gather, or reduce-scatter.
    returns : half of an all-reduce of the same tensor, which is one of each
    limits : a ring; a plain send and receive between two GPUs moves the message once.
    source : Thakur et al. 2005, doi:10.1177/1094342005051521
    >>> gather_wire_bytes(message_bytes=34816, ranks=2)
    17408.0
    """
    return (ranks - 1) / ranks * message_bytes


@formula
def ring_latency_s(ranks, link_latency_s):
    r"""Latency of a ring all-reduce from that of one hop.
    returns : time of an all-reduce with nothing to carry
    limits : each hop pays in turn; NCCL's tree pays for its depth instead, the same at N = 2.
    source : Thakur et al. 2005, doi:10.1177/1094342005051521
    >>> ring_latency_s(ranks=2, link_latency_s=5e-6)
    1e-05
    """
    return HOPS_PER_ROUND * (ranks - 1) * link_latency_s


@formula
def tree_latency_s(levels, link_latency_s):
    r"""Latency of a tree all-reduce from that of one hop: up and down again.
    returns : equal to the ring at N = 2, below it from N = 4 on
    limits : small messages; for large ones the tree's root is the bottleneck.
    source : Sanders et al. 2009, doi:10.1016/j.parco.2009.09.001
    >>> tree_latency_s(levels=1, link_latency_s=5e-6)
    1e-05
    """
    return HOPS_PER_ROUND * levels * link_latency_s


@formula
def allreduce_s(message_bytes, ranks, link_bytes_per_s, allreduce_latency_s):
    r"""Time of one all-reduce: a latency, then the bytes; one GPU pays nothing.
    limits : one straight line; NCCL changes protocol between about 8 and 256 KiB and leaves it there.
    source : Hockney 1994, doi:10.1016/S0167-8191(06)80021-9
    >>> allreduce_s(message_bytes=31.5e9, ranks=2, link_bytes_per_s=31.5e9, allreduce_latency_s=1e-5)
    1.00001
    >>> allreduce_s(message_bytes=31.5e9, ranks=1, link_bytes_per_s=31.5e9, allreduce_latency_s=1e-5)
    0.0
    """
    return ops.where(ranks > 1, allreduce_latency_s, 0) + allreduce_wire_bytes(message_bytes, ranks) / link_bytes_per_s


@formula
def protocol_allreduce_s(message_bytes, ranks, link_bytes_per_s, allreduce_latency_s, bulk_latency_s):
    r"""Time of one all-reduce of NCCL, the quicker of two protocols.
    Small messages go with a flag beside every word (LL): an early start, half the bandwidth.
    Large ones go in chunks behind fences (Simple): a late start, all of the bandwidth.
    returns : equal to allreduce_s where alpha_S = alpha_N; one GPU pays nothing
    limits : NCCL chooses by its own table and may switch late; NVLink has a third one, with 15/16 of the bandwidth.
    source : Hu et al. 2025, arXiv:2507.04786, section 4: LL, LL128, Simple
    >>> round(protocol_allreduce_s(10240, 2, 2.2e9, 9e-6, 35e-6) * 1e6, 1)
    18.3
    >>> protocol_allreduce_s(1e9, 2, 1e9, 1e-5, 1e-5) == allreduce_s(1e9, 2, 1e9, 1e-5)
    True
    """
    carry_s = allreduce_wire_bytes(message_bytes, ranks) / link_bytes_per_s
    early, late = allreduce_latency_s + LL_SENT * carry_s, ops.maximum(bulk_latency_s, allreduce_latency_s) + carry_s
    return ops.where(ranks > 1, ops.minimum(early, late), 0)


@formula
def group_latency_s(pair_latency_s, ranks, link_latency_s):
    r"""Latency of NCCL's all-reduce in a group from that in a pair.
    limits : one host, where NCCL's ring and its tree both pass every GPU in turn, there and back.
    source : NCCL's cost table, src/graph/tuning.cc: 6.6 us and 1.0 us a hop over PCIe, 0.6 us over NVLink
    >>> [round(group_latency_s(8.6e-6, n, 1e-6) * 1e6, 1) for n in (2, 4, 8)]
    [8.6, 12.6, 20.6]
    """
    return pair_latency_s + HOPS_PER_ROUND * (ops.maximum(2, ranks) - 2) * link_latency_s


@formula
def place_bytes_per_s(line_frac, line_bytes_per_s, host_bytes_per_s):
    r"""Bandwidth of an all-reduce through host memory: a share of the slower slot, at most what the host's chip moves.
    limits : messages of 16 MiB and more; both ways at once, which some chips do far worse than one.
    source : the smaller of two limits, as a roofline; the numbers of each host are in the catalog
    >>> place_bytes_per_s(0.45, 31.5e9, 3.5e9), place_bytes_per_s(0.6, 15.75e9, 27.5e9)
    (3500000000.0, 9450000000.0)
    """
    return ops.minimum(line_frac * line_bytes_per_s, host_bytes_per_s)


@formula
def oneshot_allreduce_s(message_bytes, ranks, link_bytes_per_s, allreduce_latency_s):
    r"""Time of an all-reduce in which every GPU gets all of every other's tensor at once.
    returns : equal to allreduce_s for two GPUs; one GPU pays nothing
    limits : kernels of an engine over peer access, for small messages; a ring moves less from three GPUs on.
    source : vLLM, csrc/custom_all_reduce.cuh
    >>> round(oneshot_allreduce_s(1048576, 4, 35e9, 6e-6) * 1e6, 1)
    95.9
    """
    return ops.where(ranks > 1, allreduce_latency_s, 0) + (ranks - 1) * message_bytes / link_bytes_per_s


@formula
def pairs_allreduce_s(message_bytes, exchanges, link_bytes_per_s, exchange_latency_s):
    r"""Time of an all-reduce in which GPUs swap whole tensors in pairs and add them up, each time with another partner.
    returns : of four GPUs two exchanges, of eight three; where N is no power of two, two more
    limits : llama.cpp without NCCL, from three GPUs on; it swaps sums in 32 bits.
    source : llama.cpp, ggml/src/ggml-backend-meta.cpp; Thakur et al. 2005, doi:10.1177/1094342005051521
    >>> round(pairs_allreduce_s(1e6, exchanges=2, link_bytes_per_s=4e9, exchange_latency_s=20e-6) * 1e6)
    1040
    """
    return exchanges * (exchange_latency_s + IN_32_BITS * message_bytes / link_bytes_per_s)


@formula
def even_message_bytes(ranks, link_bytes_per_s, allreduce_latency_s):
    r"""Message whose bytes take as long as the latency: half of its time is either.
    returns : M*; shorter messages wait for the latency, longer ones for the link
    limits : as allreduce_s.
    source : allreduce_s solved for the message; Hockney's half-performance length
    >>> even_message_bytes(ranks=2, link_bytes_per_s=31.5e9, allreduce_latency_s=20e-6)
    630000.0
    """
    several = ops.maximum(2, ranks)
    return several / (HOPS_PER_ROUND * (several - 1)) * allreduce_latency_s * link_bytes_per_s


@formula
def communication_s(allreduces, protocol_allreduce_s):
    r"""All-reduce time of one pass.
    limits : the calls wait for each other; none of it hidden behind other work.
    source : the sum over the calls
    >>> communication_s(allreduces=128, protocol_allreduce_s=1e-5)
    0.00128
    """
    return allreduces * protocol_allreduce_s


@formula
def comm_ceiling_tokens_per_s(communication_s):
    r"""Decode rate if only the all-reduces took time.
    returns : an upper bound for one stream that decodes one token a step
    limits : speculative decoding confirms several tokens a step; the bound is then on steps.
    source : a reciprocal
    >>> round(comm_ceiling_tokens_per_s(communication_s=1.28e-3))
    781
    """
    return 1 / ops.maximum(communication_s, SHORTEST_S)
