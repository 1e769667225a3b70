"""The one vocabulary, terms.csv: every name a formula may use, with symbol, unit, domain, theme and meaning.

A name's suffix is its unit in SI base units; counts are bare nouns. A parameter or a formula
whose name is not here is refused when it is defined. The book's symbol table is made from this.
"""

import csv
import math
from dataclasses import dataclass
from importlib import resources

from ..inputs import shown

DOMAINS = {
    "real": ("a finite number", lambda lo, hi: True),
    ">=0": ("a finite number >= 0", lambda lo, hi: lo >= 0),
    ">0": ("a finite number > 0", lambda lo, hi: lo > 0),
    "[0,1]": ("a number from 0 to 1", lambda lo, hi: lo >= 0 and hi <= 1),
    "(0,1]": ("a number above 0, at most 1", lambda lo, hi: lo > 0 and hi <= 1),
    "[0,1)": ("a number from 0 up to but not 1", lambda lo, hi: lo >= 0 and hi < 1),
    ">=1": ("a finite number >= 1", lambda lo, hi: lo >= 1),
    "int>=0": ("a whole number >= 0", lambda lo, hi: lo >= 0),
    "int>=1": ("a whole number >= 1", lambda lo, hi: lo >= 1),
}


@dataclass(frozen=True)
class Term:
    """One name: its LaTeX symbol, unit (empty for a plain number), domain, theme in the book's table, and meaning."""

    symbol: str
    unit: str
    domain: str
    theme: str
    meaning: str


def _read():
    """{name: Term} of terms.csv."""
    text = (resources.files(__package__) / "terms.csv").read_text(encoding="utf-8")
    return {row.pop("name"): Term(**row) for row in csv.DictReader(text.splitlines())}


NAMES = _read()

RESERVED = frozenset(
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if import in instanceof let new null return static super switch this throw true try typeof var void "
    "while with yield await eval arguments".split()
)


def term(name):
    """The Term of `name`; an unknown name is an error that says where to add it."""
    if name not in NAMES:
        raise NameError(f"{name!r} is not in tpmodel/formula/terms.csv: add it there with symbol, unit, domain, theme, meaning")
    return NAMES[name]


def accepted(name):
    """What the parameter `name` accepts, in words."""
    return DOMAINS[term(name).domain][0]


def allows_zero(name):
    """Whether zero lies in the domain of `name`."""
    return DOMAINS[term(name).domain][1](0.0, 0.0)


def assumptions(name):
    """What SymPy may assume of the symbol `name`."""
    domain = term(name).domain
    if domain == "real":
        return {"real": True}
    return {"nonnegative" if allows_zero(name) else "positive": True}


def refuse(name, value):
    """The ValueError for a bad `value` of `name`: name, unit, value, what is accepted."""
    unit = f" [{NAMES[name].unit}]" if NAMES[name].unit else ""
    return ValueError(f"{name}{unit} = {shown(value)} is not accepted: {NAMES[name].meaning}; it must be {accepted(name)}")


def check(name, value):
    """`value` as a float (or a float64 array) if it lies in the domain of `name`, else ValueError.

    >>> check("ranks", 2)
    2.0
    >>> check("ranks", 1.5)
    Traceback (most recent call last):
    ...
    ValueError: ranks = 1.5 is not accepted: GPUs that share one tensor-parallel group; it must be a whole number >= 1
    """
    domain = NAMES[name].domain
    inside = DOMAINS[domain][1]
    kind = type(value)
    if kind is float or kind is int:
        try:
            number = float(value)
        except OverflowError:
            raise refuse(name, value) from None
        whole = domain[:3] != "int" or number == math.floor(number) if math.isfinite(number) else False
        if not (whole and inside(number, number)):
            raise refuse(name, value)
        return number
    if hasattr(value, "dtype") and hasattr(value, "astype"):
        if value.dtype.kind not in "iuf" or value.size == 0:
            raise refuse(name, value)
        array = value.astype("float64")
        lo, hi = float(array.min()), float(array.max())
        whole = domain[:3] != "int" or bool((array % 1 == 0).all()) if math.isfinite(lo) and math.isfinite(hi) else False
        if not (whole and inside(lo, hi)):
            worst = next((v for v in array.flat if not _single(domain, float(v))), lo)
            raise refuse(name, float(worst))
        return array if array.ndim else float(array)
    raise refuse(name, value)


def _single(domain, number):
    if not math.isfinite(number):
        return False
    return (domain[:3] != "int" or number % 1 == 0) and DOMAINS[domain][1](number, number)


for _name in NAMES:
    if _name in RESERVED:
        raise NameError(f"{_name!r} is a reserved word of JavaScript and cannot be a name of the vocabulary")
