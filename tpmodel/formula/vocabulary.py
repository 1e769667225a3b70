"""The one vocabulary, terms.csv: every name a formula may use, with symbol, unit, domain, theme and meaning.

A name's suffix is its unit in SI base units; counts are bare nouns. A parameter or a formula
whose name is not here is refused when it is defined. The book's symbol table is made from this.
"""

import csv
import sys
from dataclasses import dataclass
from importlib import resources

from ..inputs import shown

LARGEST = sys.float_info.max
DOMAINS = {  # what is accepted, in words, and the test of a finite number or of an array of them
    "real": ("a finite number", lambda x: x == x),
    ">=0": ("a finite number >= 0", lambda x: x >= 0),
    ">0": ("a finite number > 0", lambda x: x > 0),
    "[0,1]": ("a number from 0 to 1", lambda x: (x >= 0) & (x <= 1)),
    "(0,1]": ("a number above 0, at most 1", lambda x: (x > 0) & (x <= 1)),
    "[0,1)": ("a number from 0 up to but not 1", lambda x: (x >= 0) & (x < 1)),
    ">=1": ("a finite number >= 1", lambda x: x >= 1),
    "int>=0": ("a whole number >= 0", lambda x: (x >= 0) & (x % 1 == 0)),
    "int>=1": ("a whole number >= 1", lambda x: (x >= 1) & (x % 1 == 0)),
}


@dataclass(frozen=True)
class Term:
    """One name: its LaTeX symbol, unit (empty for a plain number), domain, theme in the book's table, and meaning."""

    symbol: str
    unit: str
    domain: str
    theme: str
    meaning: str


_ROWS = csv.DictReader((resources.files(__package__) / "terms.csv").read_text(encoding="utf-8").splitlines())
NAMES = {row.pop("name"): Term(**row) for row in _ROWS}
INSIDE = {name: DOMAINS[one.domain][1] for name, one in NAMES.items()}
RESERVED = frozenset(
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if import in instanceof let new null return static super switch this throw true try typeof var void "
    "while with yield await eval arguments".split()
)
for _name in NAMES.keys() & RESERVED:
    raise NameError(f"{_name!r} is a reserved word of JavaScript and cannot be a name of the vocabulary")


def term(name):
    """The Term of `name`; an unknown name is an error that says where to add it."""
    if name not in NAMES:
        raise NameError(f"{name!r} is not in tpmodel/formula/terms.csv: "
                        "add it there with symbol, unit, domain, theme, meaning")
    return NAMES[name]


def accepted(name):
    """What the parameter `name` accepts, in words."""
    return DOMAINS[term(name).domain][0]


def allows_zero(name):
    """Whether zero lies in the domain of `name`."""
    return DOMAINS[term(name).domain][1](0.0)


def assumptions(name):
    """What SymPy may assume of the symbol `name`."""
    if term(name).domain == "real":
        return {"real": True}
    return {"nonnegative" if allows_zero(name) else "positive": True}


def refuse(name, value):
    """The ValueError for a bad `value` of `name`: name, unit, value, what is accepted."""
    unit = f" [{NAMES[name].unit}]" if NAMES[name].unit else ""
    meaning = NAMES[name].meaning
    return ValueError(f"{name}{unit} = {shown(value)} is not accepted: {meaning}; it must be {accepted(name)}")


def check(name, value):
    """`value` as a float (or a float64 array) if it lies in the domain of `name`, else ValueError.
    >>> check("ranks", 2)
    2.0
    >>> check("ranks", 1.5)
    Traceback (most recent call last):
    ...
    ValueError: ranks = 1.5 is not accepted: GPUs that share one tensor-parallel group; it must be a whole number >= 1
    """
    inside = INSIDE[name]
    if type(value) is float or type(value) is int:
        if not (abs(value) <= LARGEST and inside(value)):
            raise refuse(name, value)
        return float(value)
    if not hasattr(value, "dtype") or not hasattr(value, "astype") or value.dtype.kind not in "iuf" or value.size == 0:
        raise refuse(name, value)
    array = value.astype("float64")
    if not ((abs(array) <= LARGEST).all() and inside(array).all()):
        raise refuse(name, next(one for one in map(float, array.flat) if not (abs(one) <= LARGEST and inside(one))))
    return array if array.ndim else float(array)
