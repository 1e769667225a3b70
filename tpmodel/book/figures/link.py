"""One all-reduce against its message: measured, along one straight line, and by the quicker of two protocols."""

import math

from ...catalog.links import link
from ...formula import ops
from ...formula.units import GB, KIB, MIB, US, fixed
from ...planner.evidence.allreduces import ours, public
from ..live import Axes, Choice, Curve, Figure, Marker, Table, holding, slider, template

SIZES = (KIB, 4 * MIB)
MESSAGES = tuple(2.0 ** (10 + i / 4) for i in range(49))
SHOWN = 13  # points of a series at most
START = link("shm-rtx-4090")
SERIES = {  # label -> (points, GPUs)
    "RTX 4090, host memory": public("C01"), "MI100, host memory": public("C06"),
    "4 RTX PRO 6000, peer access": public("C13a"),
    "H200, host memory": (ours("shm"), 2), "H200, NVLink": (ours("nvlink"), 2)}
CATALOG = {"4090, host": "shm-rtx-4090", "MI100, host": "shm-mi100", "peer, PCIe 5.0 x16": "p2p-pcie5-x16",
           "H200, host": "shm-h200", "H200, NVLink": "nvlink-h200", "mailbox": "mailbox", "staged copies": "staged"}


def _option(points, ranks):
    """At most SHOWN points, evenly drawn, the last repeated where there are fewer."""
    inside = [point for point in points if SIZES[0] <= point[0] <= SIZES[1]]
    last, names = len(inside) - 1, {"ranks": ranks}
    for i in range(SHOWN):
        drawn = round(i * max(last, SHOWN - 1) / (SHOWN - 1))
        names[f"size_{i}"], names[f"seconds_{i}"] = inside[min(drawn, last)]
    return names


def _miss(name):
    """Mean distance of a time from the points, in percent."""
    def percent(v):
        total = 0
        for i in range(SHOWN):
            ratio = getattr(holding(message_bytes=f"size_{i}")(v), name) / getattr(v, f"seconds_{i}")
            total = total + ops.maximum(ratio, 1 / ratio) - 1
        return 100 * total / SHOWN
    return percent


def _row(label, key):
    numbers = {name: number.base_range[1] for name, number in link(key).numbers.items()}
    start, bulk = (fixed(numbers.get(name, math.nan) / US, 1) for name in ("allreduce_latency_s", "bulk_latency_s"))
    return (label, start, bulk, fixed(link(key).link_bytes_per_s / GB, 1))


def link_protocols():
    """Three numbers and a table of measured times, live."""
    return Figure(
        name="link-protocols", title="One all-reduce: measured, and by three numbers.", size=(4.6, 4.0),
        caption="Choose what was measured, then move the three numbers until the blue curve meets the points.",
        controls=(
            Choice("series", "Measured", {label: _option(*series) for label, series in SERIES.items()},
                   "RTX 4090, host memory"),
            slider("allreduce_latency_s", "Start of the first protocol", 1, 200, START.allreduce_latency_s / US, "µs"),
            slider("bulk_latency_s", "Start of the bulk protocol", 1, 500, START.bulk_latency_s / US, "µs"),
            slider("link_bytes_per_s", "Bandwidth of the link", 1, 450, START.link_bytes_per_s / GB, "GB/s")),
        axes=(Axes("message", "one all-reduce", SIZES, (4e-6, 4e-3), xlog=True, ylog=True, legend=2,
                   xticks=((KIB, "1 KiB"), (10 * KIB, "10 KiB"), (128 * KIB, "128 KiB"), (MIB, "1 MiB"), (4 * MIB, "")),
                   yticks=((5e-6, "5 µs"), (1e-5, "10 µs"), (3e-5, "30 µs"), (1e-4, "100 µs"), (3e-4, "300 µs"),
                           (1e-3, "1 ms"), (3e-3, "3 ms"))),),
        marks=(
            Curve("line", "message_bytes", MESSAGES, "allreduce_s", "gray", "one straight line", dashed=True),
            Curve("two", "message_bytes", MESSAGES, "protocol_allreduce_s", "blue", "two protocols"),
            *(Marker(f"point-{i}", f"size_{i}", f"seconds_{i}", "red", "" if i else "measured", "D")
              for i in range(SHOWN))),
        recipes={"two_percent": _miss("protocol_allreduce_s"), "line_percent": _miss("allreduce_s")},
        readouts={
            "miss": "Away from the points on average: two protocols {two_percent:1} %, "
                    "one straight line {line_percent:1} %.",
            "token": template("One token's message, 10 KiB: {protocol_allreduce_s/US:1} µs, "
                              "by the straight line {allreduce_s/US:1} µs.", holding(message_bytes=10 * KIB))},
        table=Table("What the catalog says of links between two GPUs", ("link", "start, µs", "bulk, µs", "GB/s"),
                    tuple(_row(label, key) for label, key in CATALOG.items())))
