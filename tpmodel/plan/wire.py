"""What one all-reduce over a link of the catalog costs, low to high, whatever protocol the link speaks."""

from ..formulas import collectives

HOP_S = {"nvlink": 0.6e-6, "": 1e-6}  # one more GPU, over PCIe where nothing else is said: NCCL's own cost table, src/graph/tuning.cc
ONESHOT = "oneshot"  # links of this name send everything to everyone


def bandwidth(link, end):
    """Of the link, at one end of its range: 0 slow, 1 middle, 2 fast."""
    return link.numbers["link_bytes_per_s"].base_range[end]


def latency(link, ranks, end):
    """Of an all-reduce with almost nothing to carry. The catalog's is of two GPUs; at the fast end, where one kernel serves all, of any number."""
    pair = link.numbers["allreduce_latency_s"].base_range[2 - end]
    chain = end < 2 and not oneshot(link)
    hop = next(seconds for kind, seconds in HOP_S.items() if link.key.startswith(kind))
    return collectives.group_latency_s(pair, ranks if chain else 2, hop)


def oneshot(link):
    """Whether every GPU sends everything to everyone at once."""
    return link.key.startswith(ONESHOT)


def numbers(link, ranks, end):
    """{name: number} that collectives.protocol_allreduce_s reads; without a bulk protocol it is one straight line."""
    start = latency(link, ranks, end)
    bulk = link.numbers["bulk_latency_s"].base_range[2 - end] if "bulk_latency_s" in link.numbers else start
    return {"link_bytes_per_s": bandwidth(link, end), "allreduce_latency_s": start, "bulk_latency_s": bulk}


def allreduce_s(link, message_bytes, ranks, end):
    """Of one message: in one shot, or by the quicker of two protocols.

    >>> from tpmodel.catalog.links import link
    >>> round(allreduce_s(link("shm"), 10240, 2, 1) * 1e6, 1)
    17.7
    """
    here = numbers(link, ranks, end)
    if not oneshot(link):
        return collectives.protocol_allreduce_s(message_bytes, ranks, **here)
    rate, start = here["link_bytes_per_s"], here["allreduce_latency_s"]
    one = collectives.oneshot_allreduce_s(message_bytes, ranks, rate, start)
    two = collectives.allreduce_s(message_bytes, ranks, rate, 2 * start)  # a reduce-scatter, then an all-gather: two starts, fewer bytes
    return min(one, two) if end == 2 else one
