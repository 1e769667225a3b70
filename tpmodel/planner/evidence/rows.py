"""The tables of the data folder as rows, and the rows of claims.csv: what the two articles say."""

import csv
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import resources


@lru_cache(maxsize=None)
def table(file):
    """The lines of a table of the data folder, each a dict of texts."""
    text = (resources.files(__package__) / "data" / file).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def typed(kind, file):
    """The lines of a table as objects of a dataclass, each cell as its field's type."""
    return tuple(kind(*(field.type(line[field.name]) for field in fields(kind))) for line in table(file))


@dataclass(frozen=True)
class Claim:
    """One row of claims.csv."""

    id: str
    article: str
    quantity: str
    value: float
    unit: str
    tolerance: float
    kind: str
    role: str


@lru_cache(maxsize=None)
def claims():
    """Every claim, in the order of the file."""
    return typed(Claim, "claims.csv")


def printed(name):
    """The value of one row, in its own unit.

    >>> printed("a2.allreduce_256m")
    4.0
    """
    return next(claim.value for claim in claims() if claim.id == name)
