"""Every number of the two articles: recomputed under its own assumption, judged, or predicted.

A `recompute` row matches when |computed - article| <= tolerance. Its verdict says what we think of the
number itself: `holds`; `loose` (right only under a narrow assumption); `wrong`. Then `book_value` is ours.
A `predict` row is a measured value beside our prediction; `error_frac` is predicted / measured - 1.
"""

from collections import Counter
from dataclasses import asdict, dataclass

from . import article1, article2, statements
from .rows import claims

COMPUTED = article1.COMPUTED | article2.COMPUTED
VERDICTS = article1.VERDICTS | article2.VERDICTS | statements.VERDICTS


@dataclass(frozen=True)
class Finding:
    """What became of one claim. Numbers are in the claim's own unit; `json()` is the finding as a dict."""

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

    json = asdict


def find(claim):
    """The Finding for one claim."""
    low = high = error_frac = None
    computed = float(COMPUTED[claim.id]()) if claim.id in COMPUTED else None
    verdict, book_value, note = VERDICTS.get(claim.id, ("", None, ""))
    book_value = float(book_value()) if callable(book_value) else book_value
    if claim.role == "predict" and claim.id in article2.PREDICTED:
        low, computed, high = map(float, article2.PREDICTED[claim.id]())
    if claim.role == "input":
        status = "input"
    elif computed is None:
        status = "open"
    elif claim.role == "predict":
        status, book_value, error_frac = "predicted", computed, computed / claim.value - 1
    else:
        status = "match" if abs(computed - claim.value) <= claim.tolerance * (1 + 1e-12) else "miss"
        verdict, book_value = verdict or "holds", computed if book_value is None else book_value
    return Finding(claim.id, claim.role, claim.value, computed, low, high, claim.unit, status, verdict, book_value,
                   note, error_frac)


def findings():
    """The findings for every claim.

    >>> {f.id: f for f in findings()}["a1.comm_20us"].status
    'match'
    """
    return tuple(find(claim) for claim in claims())


def summary(found):
    """What became of the rows, in two lines: the predictions' errors, then how many rows of each status."""
    apart, count = article2.OUTLIERS, Counter(f.status for f in found)
    rows = [f for f in found if f.status == "predicted" and f.id not in apart]
    errors = sorted((abs(f.error_frac), f.id) for f in rows)
    return (f"{len(rows)} predictions ({', '.join(apart)} apart): error {errors[len(rows) // 2][0]:.1%} in the median, "
            f"{errors[-1][0]:.1%} at most ({errors[-1][1]}); "
            f"{sum(f.low <= f.article <= f.high for f in rows)} measured inside the range\n"
            + ", ".join(f"{count[status]} {status}" for status in sorted(count)))
