"""Figure 1: one weight matrix and the two ways to cut it."""

from ...formula import ops
from ...planner.evidence.articles import MODEL
from ..live import Axes, Box, Choice, Figure, Label, Table, bar, place, slider
from .options import formats, gpus

NVFP4_BYTES = (4 + 8 / 16) / 8  # 4 bits, and one 8-bit scale for each 16 elements
WEIGHT_DTYPES = formats("element_bytes", "BF16", "FP8") | {"NVFP4": {"element_bytes": NVFP4_BYTES}}
COLORS = ("blue", "gold", "green", "purple", "teal", "brown", "gray", "red")  # GPU 1 to GPU 8
WIDTH, HEIGHT = 321.0, 268.0  # of the drawing, about one unit a point
WIDEST, TALLEST = 225.0, 62.0  # the most that W takes of it
LEFT, GAP, STRIP, STACK = 62.0, 7.0, 12.0, 32.0  # left edge of W; distance of x and y; one strip; all strips together
COLUMNS_TOP, ROWS_TOP = 234.0, 98.0  # upper edge of W
STRIP_LEFT = LEFT - GAP - STRIP
RECIPES = {
    "message_bytes": lambda v:
        v.extended(hidden=v.out_elements, element_bytes=v.activation_bytes).allreduce_payload_bytes,
    "most_bytes": lambda v: ops.maximum(v.shard_bytes, v.allreduce_wire_bytes),
    "own_rows": lambda v: v.in_elements / v.ranks,
    "own_columns": lambda v: v.out_elements / v.ranks,
    "uneven_rows": lambda v: ops.where(ops.floor(v.own_rows) < v.own_rows, 1, 0),
    "uneven_columns": lambda v: ops.where(ops.floor(v.own_columns) < v.own_columns, 1, 0),
    "drawn_scale": lambda v: ops.minimum(WIDEST / v.out_elements, TALLEST / v.in_elements),
    "drawn_width": lambda v: v.drawn_scale * v.out_elements,
    "drawn_height": lambda v: v.drawn_scale * v.in_elements,
    "drawn_stack": lambda v: ops.minimum(STRIP * v.ranks, STACK),
    "right": lambda v: LEFT + v.drawn_width,
    "stack_left": lambda v: LEFT - GAP - v.drawn_stack,
    "columns_bottom": lambda v: COLUMNS_TOP - v.drawn_height,
    "columns_below": lambda v: v.columns_bottom - GAP,
    "rows_below": lambda v: ROWS_TOP - v.drawn_height - GAP}


def _cut(name, start, length, low, high):
    """One strip or matrix cut in N, to the right or, by rows, downwards; pieces beyond N are empty, at its end."""
    edge = lambda k: lambda v: place(start, v) + ops.minimum(k, v.ranks) / v.ranks * place(length, v)
    for k, color in enumerate(COLORS):
        across, down = (edge(k), edge(k + 1), low, high), (low, high, edge(k + 1), edge(k))
        yield Box(f"{name}-{k + 1}", *(down if name.startswith("rows") else across), color)


def _letters(cut, top, x_left, y_middle):
    """x, W, y beside their boxes."""
    middle = lambda v: top - v.drawn_height / 2
    return (Label(f"{cut}-x", lambda v: place(x_left, v) - 8, middle, "x", size=12),
            Label(f"{cut}-w", lambda v: v.right + 10, middle, "W", size=12),
            Label(f"{cut}-y", LEFT - 12, y_middle, "y", size=12))


def _drawing():
    """All of x on each GPU, as N strips, W and y in columns; then x and W in rows, a partial sum of y from each GPU."""
    down, stacked = lambda v: -v.drawn_height, lambda v: -v.drawn_stack
    return (
        *_cut("columns-x", "stack_left", "drawn_stack", "columns_bottom", COLUMNS_TOP),
        *_cut("columns-w", LEFT, "drawn_width", "columns_bottom", COLUMNS_TOP),
        *_cut("columns-y", LEFT, "drawn_width", lambda v: v.columns_below - STRIP, "columns_below"),
        *_letters("columns", COLUMNS_TOP, "stack_left", lambda v: v.columns_below - STRIP / 2),
        *_cut("rows-x", ROWS_TOP, down, STRIP_LEFT, LEFT - GAP),
        *_cut("rows-w", ROWS_TOP, down, LEFT, "right"),
        *_cut("rows-y", "rows_below", stacked, LEFT, "right"),
        *_letters("rows", ROWS_TOP, STRIP_LEFT, lambda v: v.rows_below - v.drawn_stack / 2))


def _words():
    """What stands above each cut, and the bars with theirs."""
    for cut, top, title, hint in (
            ("columns", COLUMNS_TOP, "By columns: {in_elements:0} × {own_columns:0} each",
             "x: a copy on each GPU.  y: in pieces."),
            ("rows", ROWS_TOP, "By rows: {own_rows:0} × {out_elements:0} each",
             "x: in pieces.  y: partial sums, to be added.")):
        yield Label(f"{cut}-title", 0, top + 25, title, size=12, align="left")
        yield Label(f"{cut}-note", 0, top + 10, hint, align="left")
    for row, name, size, color, words in (
            (2.0, "shard", "shard_bytes", "blue", "stays: {shard_bytes/MIB:2} MiB of weights on each GPU"),
            (1.0, "gather", "gather_wire_bytes", "red", "columns: {gather_wire_bytes:0} B, if y must be gathered"),
            (0.0, "sum", "allreduce_wire_bytes", "red", "rows: {allreduce_wire_bytes:0} B to add up y")):
        share = lambda v, size=size: getattr(v, size) / v.most_bytes
        yield bar(name, row, 0, share, color, axes=1, thickness=0.3)
        yield Label(f"bar-{name}", 0, row + 0.42, words, align="left", axes=1)


def two_cuts():
    """Figure 1, live."""
    return Figure(
        name="two-cuts", title="Two ways to cut a weight matrix.", size=(4.6, 5.5),
        caption="y = xW, one colour a GPU; W to scale, x and y drawn thicker than they are. Below, from zero: the "
                "bytes that stay on a GPU, and those that it sends for one token. The longest fills the axis.",
        controls=(
            gpus(),
            slider("in_elements", "Input size: rows of W", 512, 32768, MODEL.hidden, step=512, whole=True),
            slider("out_elements", "Output size: columns of W", 512, 32768, MODEL.intermediate, step=512, whole=True),
            Choice("weight_dtype", "Weights stored as", WEIGHT_DTYPES, "BF16")),
        presets={"article 1: the gate matrix of Qwen3.8-27B, two GPUs": {}},
        constants={"tokens": 1, "activation_bytes": MODEL.element_bytes}, recipes=RECIPES,
        axes=(Axes(xlim=(0, WIDTH), ylim=(0, HEIGHT), bare=True, height=2.5),
              Axes(xlim=(0, 1.01), ylim=(-0.35, 2.75), bare=True)),
        marks=(*_drawing(), *_words()),
        readouts={
            "shard": "{shard_bytes/MIB:2} MiB on each GPU, whichever way W is cut.",
            "columns": "By columns a GPU sends nothing, or {gather_wire_bytes:0} B a token if all of y is needed. "
                       "By rows it sends {allreduce_wire_bytes:0} B to add up y."
                       "{uneven_columns?| The GPUs do not divide the columns: engines refuse that.}"
                       "{uneven_rows?| The GPUs do not divide the rows: engines refuse that.}"},
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
            ("in a block", "Q, K, V, gate, up", "o_proj, down"))))
