"""Figure 1: one weight matrix and the two ways to cut it."""

from ...formula import ops
from ...planner.evidence.articles import MODEL
from ..live.controls import Choice, Slider, linear_texts
from ..live.figure import Figure
from ..live.marks import Axes, Box, Label, Table, bar
from .options import TP, WEIGHT_DTYPES

COLORS = ("blue", "gold", "green", "purple", "teal", "brown", "gray", "red")  # GPU 1 to GPU 8
SIDES = linear_texts(512, 32768, 512)
WIDTH, HEIGHT = 321.0, 268.0  # of the drawing, about one unit a point
WIDEST, TALLEST = 225.0, 62.0  # the most that W takes of it
LEFT, GAP, STRIP, STACK = 62.0, 7.0, 12.0, 32.0  # left edge of W; distance of x and y; one strip; all strips together
COLUMNS_TOP, ROWS_TOP = 234.0, 98.0  # upper edge of W
BYTES = (1e2, 1e10)


def _scale(v):
    return ops.minimum(WIDEST / v.out_elements, TALLEST / v.in_elements)


def _rest(number):
    """1 where the GPUs do not divide a side, else 0, from its share."""
    return ops.where(ops.floor(number) < number, 1, 0)


def _pieces(name, start, length):
    """One strip or matrix cut in N: the edges of piece k along it; pieces beyond N are empty, at its end."""
    edge = lambda k: lambda v: start(v) + ops.minimum(k, v.ranks) / v.ranks * length(v)
    return [(f"{name}-{k + 1}", edge(k), edge(k + 1), color) for k, color in enumerate(COLORS)]


def _columns_cut():
    """All of x on each GPU, drawn as N strips; W and y cut from left to right."""
    top, bottom = COLUMNS_TOP, lambda v: COLUMNS_TOP - v.drawn_height
    below = lambda v: bottom(v) - GAP
    copies = _pieces("columns-x", lambda v: LEFT - GAP - v.drawn_stack, lambda v: v.drawn_stack)
    weights = _pieces("columns-w", lambda v: LEFT, lambda v: v.drawn_width)
    parts = _pieces("columns-y", lambda v: LEFT, lambda v: v.drawn_width)
    return (*(Box(name, a, b, bottom, top, color) for name, a, b, color in copies + weights),
            *(Box(name, a, b, lambda v: below(v) - STRIP, below, color) for name, a, b, color in parts),
            *_names("columns", top, lambda v: LEFT - GAP - v.drawn_stack, lambda v: below(v) - STRIP / 2))


def _rows_cut():
    """x and W cut from top to bottom; a full-size partial sum of y from each GPU, drawn as N strips."""
    top, bottom = ROWS_TOP, lambda v: ROWS_TOP - v.drawn_height
    down = lambda v: -v.drawn_height
    parts = _pieces("rows-x", lambda v: top, down)
    weights = _pieces("rows-w", lambda v: top, down)
    sums = _pieces("rows-y", lambda v: bottom(v) - GAP, lambda v: -v.drawn_stack)
    end = lambda v: LEFT + v.drawn_width
    return (*(Box(name, LEFT - GAP - STRIP, LEFT - GAP, b, a, color) for name, a, b, color in parts),
            *(Box(name, LEFT, end, b, a, color) for name, a, b, color in weights + sums),
            *_names("rows", top, lambda v: LEFT - GAP - STRIP, lambda v: bottom(v) - GAP - v.drawn_stack / 2))


def _names(cut, top, x_left, y_middle):
    """The letters x, W, y beside their boxes."""
    middle = lambda v: top - v.drawn_height / 2
    return (Label(f"{cut}-x", lambda v: x_left(v) - 8, middle, "x", size=12),
            Label(f"{cut}-w", lambda v: LEFT + v.drawn_width + 10, middle, "W", size=12),
            Label(f"{cut}-y", LEFT - 12, y_middle, "y", size=12))


def _titles():
    return (
        Label("columns-title", 0, COLUMNS_TOP + 25, "By columns: {in_elements:0} × {own_columns:0} each", size=12, align="left"),
        Label("columns-note", 0, COLUMNS_TOP + 10, "x: a copy on each GPU.  y: in pieces.", align="left"),
        Label("rows-title", 0, ROWS_TOP + 25, "By rows: {own_rows:0} × {out_elements:0} each", size=12, align="left"),
        Label("rows-note", 0, ROWS_TOP + 10, "x: in pieces.  y: partial sums, to be added.", align="left"),
    )


def _bars():
    for row, name, size, color, words in (
            (2.0, "shard", "shard_bytes", "blue", "stays: {shard_bytes/MIB:2} MiB of weights on each GPU"),
            (1.0, "gather", "gather_wire_bytes", "red", "columns: {gather_wire_bytes:0} B, if y must be gathered"),
            (0.0, "sum", "allreduce_wire_bytes", "red", "rows: {allreduce_wire_bytes:0} B to add up y")):
        yield bar(name, row, BYTES[0], size, color, axes=1, thickness=0.3)
        yield Label(f"bar-{name}", 1.15 * BYTES[0], row + 0.42, words, align="left", axes=1)


def two_cuts():
    """Figure 1, live."""
    return Figure(
        name="two-cuts",
        title="Two ways to cut a weight matrix.",
        caption="y = xW, one colour a GPU. Below, on a log scale: the bytes that stay on a GPU, and those that it sends for one token.",
        controls=(
            Choice("tp", "Split over", TP, "2 GPUs"),
            Slider("in_elements", "Input size: rows of W", SIDES, f"{MODEL.hidden:.0f}", whole=True),
            Slider("out_elements", "Output size: columns of W", SIDES, f"{MODEL.intermediate:.0f}", whole=True),
            Choice("weight_dtype", "Weights stored as", WEIGHT_DTYPES, "BF16"),
        ),
        presets={"article 1: the gate matrix of Qwen3.8-27B, two GPUs": {}},
        constants={"tokens": 1, "activation_bytes": MODEL.element_bytes},
        recipes={
            "message_bytes": lambda v: v.extended(hidden=v.out_elements, element_bytes=v.activation_bytes).allreduce_payload_bytes,
            "own_rows": lambda v: v.in_elements / v.ranks,
            "own_columns": lambda v: v.out_elements / v.ranks,
            "uneven_rows": lambda v: _rest(v.own_rows),
            "uneven_columns": lambda v: _rest(v.own_columns),
            "drawn_width": lambda v: _scale(v) * v.out_elements,
            "drawn_height": lambda v: _scale(v) * v.in_elements,
            "drawn_stack": lambda v: ops.minimum(STRIP * v.ranks, STACK),
        },
        axes=(Axes(xlim=(0, WIDTH), ylim=(0, HEIGHT), bare=True, height=2.5),
              Axes("bytes", xlim=BYTES, ylim=(-0.35, 2.75), xlog=True, yticks=((-0.35, ""),))),
        size=(4.6, 5.5),
        marks=(*_columns_cut(), *_rows_cut(), *_titles(), *_bars()),
        readouts={
            "shard": "{shard_bytes/MIB:2} MiB on each GPU, whichever way W is cut.",
            "columns": "By columns a GPU sends nothing, or {gather_wire_bytes:0} B a token if all of y is needed. "
                       "By rows it sends {allreduce_wire_bytes:0} B to add up y."
                       "{uneven_columns?| The GPUs do not divide the columns: engines refuse that.}"
                       "{uneven_rows?| The GPUs do not divide the rows: engines refuse that.}",
        },
        table=Table("The two cuts side by side, activations in BF16", ("", "by columns", "by rows"), (
            ("a shard of W", "{in_elements:0} × {own_columns:0}", "{own_rows:0} × {out_elements:0}"),
            ("MiB a shard", "{shard_bytes/MIB:2}", "{shard_bytes/MIB:2}"),
            ("a GPU needs of x", "all {in_elements:0}", "its own {own_rows:0}"),
            ("a GPU gets of y", "its own {own_columns:0}, finished", "a partial sum of all {out_elements:0}"),
            ("afterwards", "nothing, or an all-gather", "an all-reduce"),
            ("sends, B a token", "0, or {gather_wire_bytes:0}", "{allreduce_wire_bytes:0}"),
            ("nonlinearity", "at once", "after the sum only"),
            ("bias", "cut with the columns", "added by one GPU"),
            ("balance", "even if N divides the columns", "even if N divides the rows"),
            ("in a block", "Q, K, V, gate, up", "o_proj, down"),
        )),
    )
