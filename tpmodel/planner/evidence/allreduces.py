"""All-reduces as they were timed: public tables of nccl-tests, and ours with NCCL held to one protocol at a time."""

from ...catalog.links import link
from ...formulas import collectives
from ..plan import wire
from .measured import MIDDLE
from .rows import table


def public(group):
    """((bytes, seconds), ...) of one public series, and its number of GPUs.

    >>> public("C13a")[0][0]
    (8192, 1.117e-05)
    """
    lines = [line for line in table("comm_cases.csv") if line["group"] == group and line["time_s"]]
    return tuple((int(line["message_bytes"]), float(line["time_s"])) for line in lines), int(lines[0]["ranks"])


def ours(series, protocol="default"):
    """((bytes, seconds), ...) between our two H200, inside a CUDA graph; protocol default, LL, LL128 or Simple."""
    lines = (line for line in table("h200_allreduce.csv") if (line["series"], line["protocol"]) == (series, protocol))
    return tuple((int(line["message_bytes"]), float(line["time_s"])) for line in lines)


def predicted_s(message_bytes, ranks, key):
    """What a link of the catalog is said to take, in the middle."""
    return wire.allreduce_s(link(key), message_bytes, ranks, MIDDLE)


def straight_s(message_bytes, ranks, key):
    """The same by one latency and the bytes."""
    way = link(key)
    return collectives.allreduce_s(message_bytes, ranks, wire.bandwidth(way, MIDDLE), wire.latency(way, ranks, MIDDLE))


def carried_bytes_per_s(series, protocol, first=2**22, last=2**28):
    """Bytes a second that a protocol moves, by the slope between two large messages."""
    times = dict(ours(series, protocol))
    return (last - first) / (times[last] - times[first])
