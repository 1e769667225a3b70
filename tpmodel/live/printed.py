"""What engines printed about their cache, beside our rules: the tables of the page on the engine."""

from functools import lru_cache
from importlib import resources

from ..evidence.checks import check
from .tables import Words, short


@lru_cache(maxsize=None)
def _checked(file):
    with resources.as_file(resources.files("tpmodel.evidence") / "data" / file) as path:
        return check("kv", path)


def counts(file):
    """The summary of one table of cases."""
    return _checked(file)[1]


def _table(caption, rows):
    head = ("case", "quantity", "ours", "range", "printed", "note")
    return Words(caption, head, tuple(
        (row.id, row.quantity, short(row.predicted), f"{short(row.low)} to {short(row.high)}", short(row.measured), row.note or "") for row in rows),
        numbers=(2, 4))


def gate_table():
    """Every gate row of the public logs that could be predicted."""
    return _table("Printed by engines", [row for row in _checked("kv_cases.csv")[0] if row.use == "gate" and row.status == "ok"])


def missed_table():
    """Every row that misses, gate or not, with what is known."""
    return _table("Where we miss", [row for row in _checked("kv_cases.csv")[0] if row.status == "miss"])
