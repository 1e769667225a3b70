"""For the articles' readers, in Japanese: their numbers that are loose or wrong, each with ours."""

import csv
import re
from importlib import resources

from ...planner.evidence.claims import findings
from ...planner.evidence.rows import printed
from .tables import Words, short

VERDICTS = {"loose": "条件付き", "wrong": "誤り"}


def said():
    """What claims_ja.csv says of each claim: its id -> the row of texts."""
    text = (resources.files(__package__) / "data" / "claims_ja.csv").read_text(encoding="utf-8")
    return {row["id"]: row for row in csv.DictReader(text.splitlines())}


def _amount(number, unit):
    """A claim's number in the unit of claims_ja.csv: a fraction where that is per cent.

    >>> _amount(0.7, "%"), _amount(57.1196, "トークン/秒"), _amount(0, "")
    ('70 %', '57.12 トークン/秒', '0')
    """
    return f"{short(100 * number if unit == '%' else number)} {unit}".rstrip()


def corrected():
    """The claims that are loose or wrong as one table, in the order of claims_ja.csv."""
    found = {finding.id: finding for finding in findings() if finding.verdict in VERDICTS}
    row = lambda one, words: (
        words["quantity"], VERDICTS[one.verdict], _amount(one.article, words["unit"]),
        _amount(one.book_value, words["unit"]),
        re.sub(r"\{([\w.]+)\}", lambda name: short(printed(name[1])), words["why"]))
    head = "何の値か", "判定", "記事", "本書", "理由"
    return Words("成り立つ条件が狭い数値と、誤っている数値", head,
                 tuple(row(found[key], words) for key, words in said().items()), (2, 3))
