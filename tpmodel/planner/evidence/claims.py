"""Every number of the two articles: recomputed under its own assumption, judged, or predicted.

A `recompute` row matches when |computed - article| <= tolerance. Its verdict says what we think of the
number itself: `holds`; `loose` (right only under a narrow assumption); `wrong`. Then `book_value` is ours.
A `predict` row is a measured value beside our prediction; `error_frac` is predicted / measured - 1.
"""

from dataclasses import asdict, dataclass

from . import article1, article2, statements
from .rows import claims

ARTICLES = (article1, article2, statements)


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
    error_frac: float = None

    def json(self):
        """The finding as a dict of plain values."""
        return asdict(self)


def find(claim):
    """The Finding for one claim."""
    computed = low = high = book_value = error_frac = None
    verdict = note = ""
    for article in ARTICLES:
        if claim.id in article.COMPUTED:
            computed = float(article.COMPUTED[claim.id]())
        if claim.id in article.VERDICTS:
            verdict, book_value, note = article.VERDICTS[claim.id]
            book_value = float(book_value()) if callable(book_value) else book_value
        if claim.role == "predict" and claim.id in getattr(article, "PREDICTED", {}):
            low, computed, high = map(float, article.PREDICTED[claim.id]())
    if claim.role == "input":
        status = "input"
    elif computed is None:
        status = "open"
    elif claim.role == "predict":
        status, book_value, error_frac = "predicted", computed, computed / claim.value - 1
    else:
        status = "match" if abs(computed - claim.value) <= claim.tolerance * (1 + 1e-12) else "miss"
        verdict = verdict or "holds"
        book_value = computed if book_value is None else book_value
    return Finding(claim.id, claim.role, claim.value, computed, low, high, claim.unit, status, verdict, book_value, note,
                   error_frac)


def findings():
    """The findings for every claim.

    >>> {f.id: f for f in findings()}["a1.comm_20us"].status
    'match'
    """
    return tuple(find(claim) for claim in claims())


def summary(found):
    """What became of the rows, in two lines: the predictions' errors, then how many rows of each status."""
    apart = article2.OUTLIERS
    rows = sorted((abs(f.error_frac), f.id, f.low <= f.article <= f.high)
                  for f in found if f.status == "predicted" and f.id not in apart)
    count = {status: sum(f.status == status for f in found) for status in sorted({f.status for f in found})}
    return (f"{len(rows)} predictions ({', '.join(apart)} apart): error {rows[len(rows) // 2][0]:.1%} in the median, "
            f"{rows[-1][0]:.1%} at most ({rows[-1][1]}); {sum(inside for *_, inside in rows)} measured inside the range\n"
            + ", ".join(f"{number} {status}" for status, number in count.items()))
