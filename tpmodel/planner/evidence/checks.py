"""Predicted beside measured: reads a table, asks `checks_<kind>` for its predictions, counts the gate rows."""

import csv
import io
from collections import Counter
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module, resources
from pathlib import Path

from ... import inputs

KINDS = ("kv", "comm", "decode", "prefill", "pass", "which")
COUNTED = ("gate", "")  # what `use` says of rows that count: a table that says nothing is all counted
LARGEST_FILE = 20_000_000


@dataclass(frozen=True)
class Row:
    """One quantity of one case; `low` and `high` bound what the inputs, as printed, allow; `json()` is it as a dict."""

    id: str
    quantity: str
    predicted: float
    low: float
    high: float
    measured: float
    error_frac: float
    inside: bool
    use: str
    status: str
    note: str

    json = asdict


class Cells(dict):
    """One line of a table: cells read as numbers, by name, with the reason when they cannot be."""

    path = None  # of the table

    def text(self, name, default=""):
        """The cell, or `default` where it is empty or missing."""
        return (self.get(name) or "").strip() or default

    def number(self, name, default=None, whole=True, least=0, most=2.0**53):
        """The cell as a number from `least` to `most`; `default` where it is empty, which is an error without one."""
        text = self.text(name)
        if not text and default is None:
            raise ValueError(f"{name} is empty")
        if not text:
            return default
        value = inputs.as_real(text)
        if value is None or not least <= value <= most or whole and value % 1:
            kind = "whole number" if whole else "number"
            raise inputs.refused(name, text, f"it must be a {kind} from {least:g} to {most:g}")
        return int(value) if whole else value


def read_table(path):
    """(names of the columns, the lines as Cells) of a CSV file; anything else is a ValueError."""
    text, name = inputs.read_text(path, "file", LARGEST_FILE, "a CSV table of cases in UTF-8"), Path(path).name
    reader, lines = csv.DictReader(io.StringIO(text, newline=""), restkey="", strict=True), []
    try:
        for line in reader:
            if "" in line and "" not in reader.fieldnames:
                raise ValueError(f"{name}: line {reader.line_num} has more cells than the header has names: "
                                 "quote a cell with a comma in it")
            lines.append(Cells({k: v for k, v in line.items() if k}))
            lines[-1].path = Path(path)
    except csv.Error as error:
        raise ValueError(f"{name} is not a CSV table in UTF-8: {error}") from None
    if not reader.fieldnames or not lines:
        raise ValueError(f"{name} holds no rows")
    twice = sorted(column for column, times in Counter(reader.fieldnames).items() if column and times > 1)
    if twice:
        raise ValueError(f"{name} has more than one column {', '.join(twice)}")
    return reader.fieldnames, lines


def need_columns(columns, needed):
    """A missing column is an error that lists what is missing; `needed` names them with spaces between."""
    missing = [name for name in needed.split() if name not in columns]
    if missing:
        raise ValueError(f"the table has no column {', '.join(missing)}")


def judge(line, quantity, prediction, note=""):
    """The Row of one quantity; `prediction` is (low, predicted, high), or text that says why there is none."""
    measured = error_frac = inside = None
    try:
        if line.text(quantity):
            measured = line.number(quantity, whole=False, least=-inputs.MOST, most=inputs.MOST)
    except ValueError as error:
        prediction = str(error)
    low, predicted, high = (None,) * 3 if isinstance(prediction, str) else prediction
    status = "skipped"
    if predicted is None:
        note = prediction
    elif measured is None:
        note = f"no measured value; {note}".rstrip("; ")
    else:
        inside = low <= measured <= high
        status = "ok" if inside else "miss"
        if abs(measured) > 1 / inputs.MOST:
            error_frac = predicted / measured - 1
        elif predicted == measured:
            error_frac = 0.0
    limited = line.text("power_limit_w")  # no term of ours knows it
    note = f"{note}; shown, not counted: held to {limited} W".lstrip("; ") if limited else note
    return Row(line.text("id", "?"), quantity, predicted, low, high, measured, error_frac, inside,
               "report" if limited else line.text("use"), status, note)


def judged(lines, quantity, predict):
    """The Rows of one quantity; `predict` gives ((low, predicted, high), note) of a line, or raises why it cannot."""
    found = []
    for line in lines:
        try:
            found.append(judge(line, quantity, *predict(line)))
        except ValueError as error:
            found.append(judge(line, quantity, str(error)))
    return found


@lru_cache(maxsize=None)
def own_table(kind, table=None):
    """(lines, (rows, summary)) of the project's own table of a kind, data/<kind>_cases.csv, or of another one of it."""
    with resources.as_file(resources.files(__package__) / "data" / f"{table or kind}_cases.csv") as path:
        return read_table(path)[1], check(kind, path)


def check(kind, path):
    """(rows, summary) for the table at `path`; `failed` is None or why the check is no success.

    That is where a counted row misses, or where there are counted lines and not one could be compared. A table whose
    every line says that it does not count passes.
    """
    if kind not in KINDS:
        raise ValueError(f"check {kind!r} is not accepted: it must be one of {', '.join(KINDS)}")
    columns, lines = read_table(path)
    module = import_module(f".checks_{kind}", __package__)
    rows = module.rows(columns, lines)
    gate = [row for row in rows if row.use in COUNTED]
    count = Counter(row.status for row in gate)
    errors = sorted(abs(row.error_frac) for row in gate if row.error_frac is not None)
    failed = f"{count['miss']} of {len(gate)} counted rows miss" if count["miss"] else None
    if any(line.text("use") in COUNTED for line in lines) and count["skipped"] == len(gate):
        why = next((row.note for row in gate if row.predicted is None), "no measured value")
        failed = f"nothing was checked: not one counted line could be compared, the first because: {why}"
    return rows, {"rows": len(rows), "gate": len(gate), **{name: count[name] for name in ("ok", "miss", "skipped")},
                  "failed": failed, "median_abs_error_frac": errors[len(errors) // 2] if errors else None,
                  "worst_abs_error_frac": errors[-1] if errors else None, **import_module(
                      ".spread", __package__).spread(gate, lines),
                  **(module.summary(rows) if hasattr(module, "summary") else {})}
