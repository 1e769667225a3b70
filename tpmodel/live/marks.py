"""What a figure draws. Every mark is a plain function of one view of the figure's values.

A place or a size is a number or a function of the view. A text is a tuple of parts: a plain string,
`(function, decimals)` for a number, or `(function, texts)` for one text out of a tuple, by index.
"""

from dataclasses import dataclass, field

from ..units import fixed

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


@dataclass(frozen=True)
class Box:
    """A filled rectangle. A bar is a box on a row."""

    name: str
    x0: object
    x1: object
    y0: object
    y1: object
    color: str
    label: str = ""
    ghost: bool = False
    axes: int = 0

    kind = "box"

    def parts(self):
        return (self.x0, self.y0, self.x1, self.y1)


def bar(name, row, start, end, color, label="", ghost=False, axes=0, thickness=0.62):
    """A horizontal bar on row `row` from `start` to `end`."""
    return Box(name, start, end, row - thickness / 2, row + thickness / 2, color, label, ghost, axes)


@dataclass(frozen=True)
class Line:
    """A straight line between two points; `arrow` gives it a head, for a line along an axis that keeps its direction."""

    name: str
    x0: object
    y0: object
    x1: object
    y1: object
    color: str
    label: str = ""
    dashed: bool = False
    arrow: bool = False
    axes: int = 0

    kind = "line"

    def parts(self):
        return (self.x0, self.y0, self.x1, self.y1)


@dataclass(frozen=True)
class Curve:
    """y over the name `over`, sampled at `samples`; the other names come from the view."""

    name: str
    over: str
    samples: tuple
    y: object
    color: str
    label: str = ""
    x: object = None
    dashed: bool = False
    axes: int = 0

    kind = "curve"

    def parts(self):
        return (self.x or (lambda v: getattr(v, self.over)), self.y)


@dataclass(frozen=True)
class Marker:
    """A dot."""

    name: str
    x: object
    y: object
    color: str
    label: str = ""
    shape: str = "o"
    axes: int = 0

    kind = "marker"

    def parts(self):
        return (self.x, self.y)


@dataclass(frozen=True)
class Label:
    """A text inside the drawing, at a place that may move."""

    name: str
    x: object
    y: object
    text: tuple
    size: float = 10.5
    color: str = "text"
    align: str = "center"
    axes: int = 0

    kind = "label"

    def parts(self):
        return (self.x, self.y)


@dataclass(frozen=True)
class Table:
    """The figure's numbers: a head and rows of texts. The first cell of a row heads it."""

    caption: str
    head: tuple
    rows: tuple = field(default=())


def place(part, view):
    """A place or size for this view: a function is called, a number stands."""
    return part(view) if callable(part) else part


def parts_of(text):
    """The parts of a text; a plain string is one."""
    return (text,) if isinstance(text, str) else text


def text(parts, view):
    """The text of `parts` for a view of numbers."""
    shown = []
    for part in parts_of(parts):
        if isinstance(part, str):
            shown.append(part)
        else:
            function, how = part
            number = float(function(view))
            shown.append(text(how[int(number)], view) if isinstance(how, tuple) else fixed(number, how))
    return "".join(shown)


def functions(parts):
    """The functions of a text in the order of its parts; what is chosen from follows the function that chooses."""
    for part in parts_of(parts):
        if not isinstance(part, str):
            yield part[0]
            for words in part[1] if isinstance(part[1], tuple) else ():
                yield from functions(words)
