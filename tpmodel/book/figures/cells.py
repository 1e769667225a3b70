"""A grid of cells to count, filled row by row: how many there are, of which kinds, and how many are missing."""

from ...formula import ops
from ..live import Axes, Box, Curve, Label, quantity

ACROSS, DOWN = 25, 8  # cells of a row; rows
AXES = Axes(xlim=(-0.05, ACROSS + 0.05), ylim=(-DOWN - 0.05, 0.9), bare=True, legend=3, height=1.6)


def _per_cell(parts):
    """How many of what is counted one cell stands for: one, while there are cells enough."""
    def per(v):
        most = 1
        for _, _, _, end in parts:
            most = ops.maximum(most, quantity(end)(v))
        return ops.ceil(most / (ACROSS * DOWN))
    return per


def _zigzag(name, along, across, turned):
    """All lines between cells one way, as one thin curve that goes up and down."""
    def place(v):
        line = ops.floor(v.corner / 2)
        turn = v.corner - 4 * ops.floor(v.corner / 4)
        return line, ops.where(turn < 1, 0, ops.where(turn < 3, along, 0))
    first, second = (lambda v: place(v)[0]), (lambda v: place(v)[1])
    samples = tuple(float(i) for i in range(2 * (across + 1)))
    x, y = (second, lambda v: 0 - first(v)) if turned else (first, lambda v: 0 - second(v))
    return Curve(name, "corner", samples, y, "text", x=x, thin=True)


def cells(parts, said):
    """Marks and recipes for `parts`: (name, colour, label, quantity at which it ends); each begins where one ends."""
    per, start = _per_cell(parts), lambda v: 0
    marks = [Label("per-cell", 0, 0.5, said, align="left")]
    for name, color, label, end in parts:
        for row in range(DOWN):
            edge = lambda at, row=row: lambda v: ops.minimum(ops.maximum(at(v) / v.per_cell - row * ACROSS, 0), ACROSS)
            marks.append(Box(f"{name}-{row + 1}", edge(start), edge(quantity(end)), -row - 1, -row, color,
                             "" if row else label, ghost=color == "gray"))
        start = quantity(end)
    return (*marks, _zigzag("columns", DOWN, ACROSS, False), _zigzag("rows", ACROSS, DOWN, True)), {"per_cell": per}
