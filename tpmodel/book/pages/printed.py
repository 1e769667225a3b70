"""What engines printed about their cache, beside our rules: the tables of the page on the engine."""

from functools import cache
from importlib import resources

from ...planner.evidence.checks import check, read_table
from .tables import Words, short

QUANTITIES = {"printed_needed_gib": "needed, GiB", "printed_est_max_len": "largest length",
              "printed_kv_tokens": "cache, tokens", "printed_concurrency": "sequences",
              "printed_load_gib": "weights, GiB", "printed_block": "block, tokens"}


@cache
def _checked(file):
    with resources.as_file(resources.files("tpmodel.planner.evidence") / "data" / file) as path:
        return read_table(path)[1], check("kv", path)


def counts(file):
    """The summary of one table of cases."""
    return _checked(file)[1][1]


def _table(caption, keep, noted=False):
    """The rows to keep as texts: the model in place of the case, and for misses what the log's collector noted."""
    table, (rows, _) = _checked("kv_cases.csv")
    lines = {line.text("id"): line for line in table}
    cells = lambda line, row: (
        line.text("model"), QUANTITIES[row.quantity], short(row.predicted), f"{short(row.low)} to {short(row.high)}",
        short(row.measured), *([line.text("note") or row.note or "nothing"] if noted else ()))
    head = ("model", "printed number", "ours", "range", "printed", *(["what is known"] if noted else ()))
    return Words(caption, head, tuple(cells(lines[row.id], row) for row in rows if keep(row)), numbers=(2, 4))


def gate_table():
    """Every gate row of the public logs that could be predicted."""
    return _table("Printed by engines", lambda row: row.use == "gate" and row.status == "ok")


def missed_table():
    """Every row that misses, gate or not, with what is known."""
    return _table("Where we miss", lambda row: row.status == "miss", noted=True)
