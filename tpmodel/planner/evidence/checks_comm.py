"""Collectives between GPUs as people timed them, against the link of the catalog that the row names.

Read are transport, slot, host and path, GPUs, collective and message, never the time. Nothing is fitted to a row: the
range is the link's own, by the function that `plan` asks too.
"""

from ...formulas import collectives
from ..plan import wire
from ..plan.assume import ENDS
from . import transports
from .checks import judged, need_columns

HALVES = ("all_gather", "reduce_scatter")  # half of an all-reduce each; message_bytes is the whole tensor


def rows(columns, lines):
    """The Rows of a table with the columns of comm_cases.csv."""
    need_columns(columns, "id gpu ranks link collective message_bytes")
    return judged(lines, "time_s", predict)


def predict(line):
    """((low, middle, high) in s, the link's key) of one row."""
    collective, ranks = line.text("collective"), line.number("ranks", least=2, most=transports.MOST_RANKS)
    message, link = line.number("message_bytes", whole=False), transports.of(line)
    if collective in HALVES:
        message /= collectives.HOPS_PER_ROUND
    elif collective != "all_reduce":
        raise ValueError(f"collective = {collective[:40]!r} is not predicted: "
                       f"it must be all_reduce, {' or '.join(HALVES)}")
    times = tuple(wire.allreduce_s(link, message, ranks, end) for end in reversed(range(len(ENDS))))
    rate = link.numbers["link_bytes_per_s"]
    return times, f"link {link.key} {rate.where if rate.kind == 'computed' else ''}".rstrip()
