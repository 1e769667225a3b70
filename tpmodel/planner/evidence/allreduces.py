"""All-reduces as they were timed: public tables of nccl-tests, and ours with NCCL held to one protocol at a time."""

from statistics import median

from ...catalog.links import line_bytes_per_s, link
from ...formulas import collectives
from ..plan import wire
from . import transports
from .checks import own_table
from .measured import MIDDLE
from .rows import table


def public(group):
    """((bytes, seconds), ...) of one public series, and its number of GPUs.

    >>> public("C13a")[0][0]
    (8192, 1.117e-05)
    """
    lines = [line for line in table("comm_cases.csv") if line["group"] == group and line["time_s"]]
    return tuple((int(line["message_bytes"]), float(line["time_s"])) for line in lines), int(lines[0]["ranks"])


def by_place(large=2**24):
    """((class of host, what the slot moves, sockets, whether cards share a way up), bandwidth), ...: of the messages
    of `large` bytes and more through host memory, the median of each place, in bytes a second on the wire.

    >>> dict(by_place())["epyc-zen2", line_bytes_per_s(4, 8), 1, False] / 1e9
    3.6
    """
    found = {}
    for line in own_table("comm", "host")[0]:
        here = transports.place_of(line)
        if line["link"] == "shm" and line["use"] == "gate" and int(line["message_bytes"]) >= large and here.slot:
            where = (here.host.key if here.host else "not-said", line_bytes_per_s(*here.slot), here.sockets,
                     here.shared or here.root)
            sent = collectives.allreduce_wire_bytes(int(line["message_bytes"]), int(line["ranks"]))
            found.setdefault(where, []).append(float(sent) / float(line["time_s"]))
    return tuple((where, round(median(rates), -7)) for where, rates in found.items())


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
