"""What one all-reduce over a link of the catalog costs, low to high, by the protocol that the link says it speaks."""

from dataclasses import replace

from ...catalog.assumptions import assumed
from ...formula.vocabulary import NAMES
from ...formulas import collectives


RATES = ("link_bytes_per_s", "copy_bytes_per_s")


def protocol(link):
    """How an all-reduce travels: ring or oneshot, as the link says, or as is taken of any link."""
    return link.said.get("protocol", assumed("link").said["protocol"])


def of_engine(link, how, ranks):
    """The link as an engine uses it: one without NCCL ("pairs") swaps whole tensors by copies, from three GPUs on."""
    swapped = how == "pairs" and ranks > 2 and protocol(link) == "ring"
    return replace(link, said=link.said | {"protocol": how}) if swapped else link


def exchanges(ranks):
    """How often each of so many GPUs swaps: halves, quarters and so on, and twice more for those beyond a power of two.

    >>> [exchanges(ranks) for ranks in (2, 3, 4, 8)]
    [1, 3, 2, 3]
    """
    return ranks.bit_length() - 1 + (2 if ranks & (ranks - 1) else 0)


def unsaid(link):
    """What is taken of a link that does not say how it works, in words; empty where it says all."""
    taken = {} if "protocol" in link.said else {"protocol": f'"{protocol(link)}"'}
    if protocol(link) == "ring" and "link_latency_s" not in link.numbers:
        taken["link_latency_s"] = f"{assumed('link').link_latency_s * 1e6:g} us"
    words = ", ".join(f"{name} = {value}" for name, value in taken.items())
    return f"{link.key} says no {' and no '.join(taken)}: taken as {words}" if taken else ""


def bandwidth(link, end):
    """Of the link, at one end of its range: 0 slow, 1 middle, 2 fast."""
    return link.numbers["link_bytes_per_s"].base_range[end]


def latency(link, ranks, end):
    """Of an all-reduce with almost nothing to carry; at the fast end one kernel serves any number of GPUs like two."""
    pair = link.numbers["allreduce_latency_s"].base_range[2 - end]
    hop_s = link.values().get("link_latency_s", assumed("link").link_latency_s)
    return collectives.group_latency_s(pair, ranks if end < 2 and protocol(link) == "ring" else 2, hop_s)


def numbers(link, ranks, end):
    """{name: number} that collectives.protocol_allreduce_s reads; without a bulk protocol it is one straight line."""
    start, bulk = latency(link, ranks, end), link.numbers.get("bulk_latency_s")
    return {"link_bytes_per_s": bandwidth(link, end), "allreduce_latency_s": start,
            "bulk_latency_s": bulk.base_range[2 - end] if bulk else start}


def step_share(link):
    """What is left of an all-reduce's start in such a graph, as the link says or as is taken of NCCL, which has a bulk
    protocol; None of an engine's own kernel: nobody measured it."""
    taken = assumed("link") if protocol(link) == "ring" and "bulk_latency_s" in link.numbers else link
    return link.numbers.get("in_step_frac", taken.numbers.get("in_step_frac"))


def in_step(link):
    """The link inside a graph of a decode step, where part of an all-reduce's start hides behind the kernel before it.

    >>> from tpmodel.catalog.links import link
    >>> round(allreduce_s(in_step(link("nvlink-h200")), 10240, 2, 1) * 1e6, 1)  # measured: 9.5; alone 17.0
    9.6
    """
    start, share = link.numbers["allreduce_latency_s"], step_share(link)
    if share is None:
        return link
    low, mid, high = (time * part for time, part in zip(start.base_range, share.base_range))
    said = replace(start, low=low, value=mid, high=high, unit="s", kind="computed",
                   source=f"{start.source}; x {share.value:g} in a graph ({share.kind}: {share.source})")
    return replace(link, numbers=link.numbers | {"allreduce_latency_s": said})


def at_end(link, end):
    """The link with one end of its ranges as all that is known of it."""
    share = step_share(link)
    numbers = link.numbers | ({"in_step_frac": share} if share else {})
    return replace(link, numbers={
        name: replace(number, value=number.base_range[end if name in RATES else 2 - end],
                      unit=NAMES[name].unit, low=None, high=None, kind="computed")
        for name, number in numbers.items()})


def allreduce_s(link, message_bytes, ranks, end):
    """Of one message: in one shot, by the quicker of two protocols, or by swaps in pairs.

    >>> from tpmodel.catalog.links import link
    >>> round(allreduce_s(link("shm"), 10240, 2, 1) * 1e6, 1)
    17.3
    """
    here = numbers(link, ranks, end)
    ring = collectives.protocol_allreduce_s(message_bytes, ranks, **here)
    if protocol(link) == "ring":
        return ring
    if protocol(link) == "pairs":
        rate, start = (link.numbers.get(own, link.numbers[other]).base_range for own, other in (
            ("copy_bytes_per_s", "link_bytes_per_s"), ("exchange_latency_s", "allreduce_latency_s")))
        swaps = collectives.pairs_allreduce_s(message_bytes, exchanges(ranks), rate[end], start[2 - end])
        return min(swaps, ring) if end == 2 else swaps  # at best the engine was built with NCCL
    rate, start = here["link_bytes_per_s"], here["allreduce_latency_s"]
    one = collectives.oneshot_allreduce_s(message_bytes, ranks, rate, start)
    two = collectives.allreduce_s(message_bytes, ranks, rate, 2 * start)  # reduce-scatter, all-gather: fewer bytes
    return min(one, two) if end == 2 else one
