"""A table of texts that a notebook shows and glues: HTML with mathematics for the page, else aligned plain text."""

import re
from dataclasses import dataclass
from html import escape

from ..live.page import table

LONG, LONGER = 22, 90  # a column with a longer text is given room
COMMAND = re.compile(r"\\[a-z]+|[\\{}()]")  # of LaTeX: not seen
LINK = re.compile(r"(https?://[^\s,;)]+)")


@dataclass(frozen=True)
class Words:
    r"""Rows of texts under a head; the first cell of a row heads it. `\(…\)` is mathematics, an address a link.

    >>> Words("Two", ("name", "n"), (("a", "1"), ("bc", "2")), numbers=(1,))
    Two
    name | n
    a    | 1
    bc   | 2
    """

    caption: str
    head: tuple
    rows: tuple
    numbers: tuple = ()  # columns that are set to the right

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"{self.caption}: {len(row)} cells under a head of {len(self.head)}: {row[0]}")

    def __repr__(self):
        rows = (self.head, *self.rows)
        widths = [max(len(row[i]) for row in rows) for i in range(len(self.head) - 1)] + [0]
        lines = (" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
        return "\n".join((self.caption, *lines))

    def _repr_html_(self):
        sides = [self._side(i) for i in range(len(self.head))]
        cells = lambda row: zip(sides, map(_cell, row))
        return table(escape(self.caption), _cell(self.caption), cells(self.head), map(cells, self.rows), " tp-words")

    def _side(self, column):
        if column in self.numbers:
            return ' class="tp-number"'
        longest = max((len(COMMAND.sub("", row[column])) for row in self.rows), default=0)
        return f' class="tp-long{" tp-longer" * (longest > LONGER)}"' if longest > LONG else ""


@dataclass(frozen=True)
class Several:
    """Tables one below the other."""

    tables: tuple

    def __repr__(self):
        return "\n\n".join(map(repr, self.tables))

    def _repr_html_(self):
        return "\n".join(table._repr_html_() for table in self.tables)


def _cell(text):
    link = lambda address: f'<a href="{escape(address)}">{escape(address.split("://", 1)[1], quote=False)}</a>'
    return "".join(link(part) if i % 2 else escape(part, quote=False) for i, part in enumerate(LINK.split(text)))


def short(number):
    """A number as a table prints it: four digits, with separators; nothing for None.

    >>> short(0.25), short(44.8), short(262144), short(3.792e14), short(None)
    ('0.25', '44.8', '262,144', '3.792e+14', '')
    """
    if number is None:
        return ""
    whole = abs(number) < 1e7 and (abs(number) >= 1e4 or number == int(number))
    return f"{number:,.0f}" if whole else f"{number:.4g}"
