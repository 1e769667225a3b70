"""What engines printed about their cache, beside our rules: the tables of the page on the engine."""

from functools import lru_cache
from importlib import resources
from pathlib import Path

from ...planner.evidence.checks import check, read_table
from .tables import Words, short


def _path(file):
    return Path(str(resources.files("tpmodel.planner.evidence") / "data" / file))


@lru_cache(maxsize=None)
def _checked(file):
    return check("kv", _path(file))


def counts(file):
    """The summary of one table of cases."""
    return _checked(file)[1]


QUANTITIES = {"printed_needed_gib": "needed, GiB", "printed_est_max_len": "largest length", "printed_kv_tokens": "cache, tokens",
              "printed_concurrency": "sequences", "printed_load_gib": "weights, GiB", "printed_block": "block, tokens"}


def _table(caption, rows, noted):
    """Rows as texts: the model in place of the case, and for misses what the log's collector noted."""
    lines = {line.text("id"): line for line in read_table(_path("kv_cases.csv"))[1]}
    head = ("model", "printed number", "ours", "range", "printed") + (("what is known",) if noted else ())
    cells = lambda row: (lines[row.id].text("model"), QUANTITIES[row.quantity], short(row.predicted),
                         f"{short(row.low)} to {short(row.high)}", short(row.measured))
    return Words(caption, head, tuple(cells(row) + ((lines[row.id].text("note") or row.note or "nothing",) if noted else ()) for row in rows),
                 numbers=(2, 4))


def gate_table():
    """Every gate row of the public logs that could be predicted."""
    return _table("Printed by engines", [row for row in _checked("kv_cases.csv")[0] if row.use == "gate" and row.status == "ok"], False)


def missed_table():
    """Every row that misses, gate or not, with what is known."""
    return _table("Where we miss", [row for row in _checked("kv_cases.csv")[0] if row.status == "miss"], True)
