"""Collectives between GPUs as people timed them, against the link of the catalog that the row names.

Read are transport, slot, host and path, GPUs, collective and message, never the time. Nothing is fitted to a row: the
range is the link's own, by the function that `plan` asks too.
"""

from statistics import median

from ...formulas import collectives
from ..plan import wire
from ..plan.assume import ENDS
from . import transports
from .checks import COUNTED, judged, need_columns

HALVES = ("all_gather", "reduce_scatter")  # half of an all-reduce each; message_bytes is the whole tensor


def rows(columns, lines):
    """The Rows of a table with the columns of comm_cases.csv."""
    need_columns(columns, "id gpu ranks link collective message_bytes")
    return judged(lines, "time_s", predict)


def summary(found, lines):
    """{"by_host": {transport and class of host: how far off, how many inside}} of the rows that count, and with each
    source left out how far off the rest is, with its sign; empty where no row tells a host."""
    groups = {}
    for row, line in zip(found, lines):
        if row.use in COUNTED and row.error_frac is not None:
            host = transports.host_of(line)
            groups.setdefault(f"{line.text('link')}, {host.key if host else 'not-said'}", []).append((row, line))
    if not any(transports.host_of(line) for line in lines):
        return {}
    return {"by_host": {name: _of_host(group) for name, group in sorted(groups.items())}}


def _of_host(group):
    errors, sources = [row.error_frac for row, _ in group], {line.text("source") for _, line in group}
    rest = {left: [row.error_frac for row, line in group if line.text("source") != left] for left in sources}
    return {"rows": len(group), "inside_frac": sum(row.inside for row, _ in group) / len(group),
            "median_abs_error_frac": median(map(abs, errors)), "median_error_frac": median(errors),
            "without": {left: median(errors) for left, errors in sorted(rest.items()) if errors}}


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
