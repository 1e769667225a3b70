"""All-reduces as they were timed: public tables of nccl-tests, and ours with NCCL held to one protocol after the other."""

import csv
from functools import lru_cache
from importlib import resources

from ...catalog.links import link
from ...formulas import collectives
from ..plan import wire
from .measured import MIDDLE


@lru_cache(maxsize=None)
def _table(name):
    return tuple(csv.DictReader((resources.files(__package__) / "data" / name).read_text(encoding="utf-8").splitlines()))


def public(group):
    """((bytes, seconds), ...) of one public series, and its number of GPUs.

    >>> public("C13a")[0][0]
    (8192, 1.117e-05)
    """
    rows = [row for row in _table("comm_cases.csv") if row["group"] == group and row["time_s"]]
    return tuple((int(row["message_bytes"]), float(row["time_s"])) for row in rows), int(rows[0]["ranks"])


def ours(series, protocol="default"):
    """((bytes, seconds), ...) between our two H200, inside a CUDA graph; protocol default, LL, LL128 or Simple."""
    return tuple((int(row["message_bytes"]), float(row["time_s"])) for row in _table("h200_allreduce.csv")
                 if (row["series"], row["protocol"]) == (series, protocol))


def predicted_s(message_bytes, ranks, key):
    """What a link of the catalog is said to take, in the middle."""
    return wire.allreduce_s(link(key), message_bytes, ranks, MIDDLE)


def straight_s(message_bytes, ranks, key):
    """The same by one latency and the bytes."""
    here = link(key)
    return collectives.allreduce_s(message_bytes, ranks, wire.bandwidth(here, MIDDLE), wire.latency(here, ranks, MIDDLE))


def carried_bytes_per_s(series, protocol, first=2**22, last=2**28):
    """Bytes a second that a protocol moves, by the slope between two large messages."""
    times = dict(ours(series, protocol))
    return (last - first) / (times[last] - times[first])
