"""The rows of claims.csv: what the two articles say."""

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources


@dataclass(frozen=True)
class Claim:
    """One row of claims.csv."""

    id: str
    article: str
    section: str
    quantity: str
    value: float
    unit: str
    tolerance: float
    kind: str
    role: str


@lru_cache(maxsize=None)
def claims():
    """Every claim, in the order of the file."""
    text = (resources.files(__package__) / "data" / "claims.csv").read_text(encoding="utf-8")
    rows = []
    for row in csv.DictReader(text.splitlines()):
        rows.append(Claim(**{**row, "value": float(row["value"]), "tolerance": float(row["tolerance"])}))
    return tuple(rows)


def printed(name):
    """The value of one row, in its own unit.

    >>> printed("a2.allreduce_256m")
    4.0
    """
    return next(claim.value for claim in claims() if claim.id == name)
