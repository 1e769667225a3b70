"""What a figure draws. Every mark is a plain function of one view of the figure's values.

A place or a size is a number, a name such as "pass_s/MS", or a function of the view. A text is a template, or a tuple
of templates and `(function, decimals)` for a number, `(function, words)` for one word out of a tuple, by index.
"""

import re
from dataclasses import dataclass, field

from ...formula import units
from ...formula.units import fixed

EDGE = 0.02  # how far beyond its axes a mark is still placed, as a fraction of their length; clipped there


@dataclass(frozen=True)
class Axes:
    """One pair of axes with fixed limits: nothing live may change the layout."""

    xlabel: str = ""
    ylabel: str = ""
    xlim: tuple = (0.0, 1.0)
    ylim: tuple = (0.0, 1.0)
    xlog: bool = False
    ylog: bool = False
    xticks: tuple = ()  # (place, words) in place of matplotlib's ticks
    yticks: tuple = ()
    bare: bool = False  # no spines, no ticks: a drawing
    legend: int = 0  # columns of the legend above the axes; 0 for none
    height: float = 1.0  # share of the figure's height
    beyond: str = ""  # said under the picture where a mark lies right of it


@dataclass(frozen=True)
class Mark:
    """Anything that is drawn, under its id in the figure, on the axes of this number."""

    name: str
    axes: int = field(default=0, kw_only=True)

    def parts(self):
        """Its places: x and y of a point, or of two."""
        return tuple(getattr(self, place) for place in self.places)


@dataclass(frozen=True)
class Box(Mark):
    """A filled rectangle. A bar is a box on a row."""

    x0: object
    x1: object
    y0: object
    y1: object
    color: str
    label: str = ""
    ghost: bool = False
    kind, places = "box", ("x0", "y0", "x1", "y1")


def bar(name, row, start, end, color, label="", thickness=0.62, **more):
    """A horizontal bar on row `row` from `start` to `end`."""
    return Box(name, start, end, row - thickness / 2, row + thickness / 2, color, label, **more)


def stack(row, parts, at=None, name="{}", ghost=False, **more):
    """Bars on one row, each from where the last one ends: (name, color, label, end). Ghosts are not in the legend."""
    start = 0
    for part, color, label, end in parts:
        stop = quantity(end, at) if isinstance(end, str) else end
        yield bar(name.format(part), row, start, stop, color, "" if ghost else label, ghost=ghost, **more)
        start = stop


@dataclass(frozen=True)
class Line(Mark):
    """A straight line between two points; `arrow` gives one along an axis, which it never turns from, a head."""

    x0: object
    y0: object
    x1: object
    y1: object
    color: str
    label: str = ""
    dashed: bool = False
    arrow: bool = False
    kind, places = "line", ("x0", "y0", "x1", "y1")


@dataclass(frozen=True)
class Curve(Mark):
    """y over the name `over`, sampled at `samples`; the other names come from the view."""

    over: str
    samples: tuple
    y: object
    color: str
    label: str = ""
    x: object = None
    dashed: bool = False
    thin: bool = False
    kind = "curve"

    def parts(self):
        return (self.x or self.over, self.y)


@dataclass(frozen=True)
class Marker(Mark):
    """A dot."""

    x: object
    y: object
    color: str
    label: str = ""
    shape: str = "o"
    title: str = ""  # shown where a pointer rests on it
    kind, places = "marker", ("x", "y")


@dataclass(frozen=True)
class Label(Mark):
    """A text inside the drawing, at a place that may move."""

    x: object
    y: object
    text: tuple
    size: float = 10.5
    color: str = "text"
    align: str = "center"
    kind, places = "label", ("x", "y")


@dataclass(frozen=True)
class Table:
    """The figure's numbers: a head and rows of texts. The first cell of a row heads it, and may lead elsewhere."""

    caption: str
    head: tuple
    rows: tuple
    links: dict = field(default_factory=dict)  # the words that head a row -> an address


UNITS = {name: getattr(units, name) for name in ("US", "MS", "KB", "MB", "GB", "KIB", "MIB", "GIB", "TFLOP")}
UNITS |= {"PERCENT": 0.01}
HOLE = re.compile(r"\{(\w+(?:/\w+)?)(?::(\d)|\?([^}]*))\}")  # {name/UNIT:decimals} or {name?words|by|index}


def holding(**values):
    """A function that puts values into any view: numbers, or names and functions of that view."""
    return lambda v: v.extended(**{name: place(value, v) for name, value in values.items()})


def quantity(text, at=None):
    """A function of the view from a name, or a name over a unit: "pass_s/MS"; `at` turns the view first.

    >>> from tpmodel.formula.view import View
    >>> quantity("pass_s/MS")(View({"pass_s": 0.02}, given=["pass_s"]))
    20.0
    """
    name, _, unit = text.partition("/")
    if unit and unit not in UNITS:
        raise ValueError(f"unit {unit!r} of {text!r} is not accepted: it must be one of {', '.join(UNITS)}")

    def read(v):
        found = getattr(at(v) if at else v, name)
        return found / UNITS[unit] if unit else found

    read.name = None if at else name
    return read


def asked(part):
    """The name of the quantity whose number a piece of a text shows; None for words and for any other function."""
    return None if isinstance(part, str) or isinstance(part[1], tuple) else getattr(part[0], "name", None)


def template(text, at=None):
    """The parts of a text with holes, such as "{pass_s/MS:1} ms" or "{fits?Does not fit.|Fits.}"."""
    found, end = [], 0
    for hole in HOLE.finditer(text):
        found += [text[end : hole.start()]] * (hole.start() > end)
        found.append((quantity(hole[1], at), tuple(hole[3].split("|")) if hole[2] is None else int(hole[2])))
        end = hole.end()
    rest = text[end:]
    if "{" in rest or "}" in rest:
        raise ValueError(f"{text!r} has a hole that is not understood: "
                         "it must look like {name:1}, {name/MS:1} or {name?no|yes}")
    return (*found, rest) if rest or not found else tuple(found)


def pieces(parts):
    """A text as plain strings and (function, decimals or words), its templates opened."""
    found = []
    for part in (parts,) if isinstance(parts, str) else parts:
        found += template(part) if isinstance(part, str) else [part]
    return tuple(found)


def rows(views, *lines):
    """Rows of a table: (label, template) once for each of `views`, functions of the view; None is the view itself."""
    return tuple((label, *(template(text, at) for at in views)) for label, text in lines)


def place(part, view):
    """A place or size for this view: a function is called, a name is read, a number stands."""
    return quantity(part)(view) if isinstance(part, str) else part(view) if callable(part) else part


def text(parts, view):
    """The text of `parts` for a view of numbers."""
    def shown(function, how):
        number = float(function(view))
        return how[int(number)] if isinstance(how, tuple) else fixed(number, how)

    return "".join(part if isinstance(part, str) else shown(*part) for part in pieces(parts))
