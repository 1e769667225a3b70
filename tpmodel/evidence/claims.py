"""Every number of the two articles: recomputed under its own assumption, judged, or predicted.

A `recompute` row matches when |computed - article| <= tolerance. Its verdict says what we think of the
number itself: `holds`; `loose` (right only under a narrow assumption); `wrong`. Then `book_value` is ours.
"""

import csv
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import resources

from . import article1

ARTICLES = (article1,)


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


@dataclass(frozen=True)
class Finding:
    """What became of one claim. Numbers are in the claim's own unit."""

    id: str
    role: str
    article: float
    computed: float
    low: float
    high: float
    unit: str
    status: str
    verdict: str
    book_value: float
    note: str

    def json(self):
        """The finding as a dict of plain values."""
        return asdict(self)


@lru_cache(maxsize=None)
def claims():
    """Every claim, in the order of the file."""
    text = (resources.files(__package__) / "data" / "claims.csv").read_text(encoding="utf-8")
    rows = []
    for row in csv.DictReader(text.splitlines()):
        rows.append(Claim(**{**row, "value": float(row["value"]), "tolerance": float(row["tolerance"])}))
    return tuple(rows)


def find(claim):
    """The Finding for one claim."""
    computed = low = high = book_value = None
    verdict = note = ""
    for article in ARTICLES:
        if claim.id in article.COMPUTED:
            computed = float(article.COMPUTED[claim.id]())
        if claim.id in article.VERDICTS:
            verdict, book_value, note = article.VERDICTS[claim.id]
            book_value = float(book_value()) if callable(book_value) else book_value
    if claim.role == "input":
        status = "input"
    elif computed is None:
        status = "open"
    else:
        status = "match" if abs(computed - claim.value) <= claim.tolerance * (1 + 1e-12) else "miss"
        verdict = verdict or "holds"
        book_value = computed if book_value is None else book_value
    return Finding(claim.id, claim.role, claim.value, computed, low, high, claim.unit, status, verdict, book_value, note)


def findings():
    """The findings for every claim.

    >>> {f.id: f for f in findings()}["a1.comm_20us"].status
    'match'
    """
    return tuple(find(claim) for claim in claims())
