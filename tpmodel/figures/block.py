"""Figure 2: the data flow of one transformer block over several GPUs, and what three ways to cut its FFN send."""

from .. import ops
from ..catalog.articles import MODEL
from ..formulas import linear
from ..formulas.collectives import allreduce_payload_bytes, allreduce_wire_bytes, allreduces, gather_wire_bytes
from ..live.controls import Choice, Slider, linear_texts
from ..live.figure import Figure
from ..live.marks import Axes, Box, Label, Line, Table, bar
from .options import ACTIVATION_DTYPES, TP

COUNTED = {"every collective, bytes sent": {"counts_all": 1}, "the article's: its payloads": {"counts_all": 0}}
WAYS = {"megatron": "Megatron", "naive_a": "naive A", "naive_b": "naive B"}
CUTS = {"megatron": "columns then rows", "naive_a": "columns then columns", "naive_b": "rows then rows"}
LANES = ((0.0, 155.0), (166.0, 321.0))  # left and right edge: GPU 1, the others
PITCH, TALL = 24.0, 16.0  # from row to row; height of a box
TOP = 11 * PITCH
BYTES = (1e3, 1e10)


def _payload(v, elements):
    return v(allreduce_payload_bytes, hidden=elements)


def _hidden(v):
    return _payload(v, v.hidden)


def _inner(v):
    return _payload(v, v.intermediate)


# --- what each way moves: (payload, sent by each GPU), counted in full and as the article counts ---------------------

FULL = {
    "megatron": (_hidden, lambda v: v(linear.megatron_wire_bytes)),
    "naive_a": (lambda v: _inner(v) + _hidden(v), lambda v: v(linear.naive_a_wire_bytes)),
    "naive_b": (lambda v: linear.GATE_AND_UP * _inner(v) + _hidden(v), lambda v: v(linear.naive_b_wire_bytes)),
}
ARTICLE = {
    "megatron": FULL["megatron"],
    "naive_a": (_inner, lambda v: v(gather_wire_bytes, message_bytes=_inner(v))),
    "naive_b": (lambda v: 2 * _hidden(v), lambda v: 2 * v(allreduce_wire_bytes, message_bytes=_hidden(v))),
}


def _derived():
    found = {"layer_allreduces": lambda v: v(allreduces, layers=1)}
    for way in WAYS:
        for part, name in enumerate(("payload_bytes", "sent_bytes")):
            found[f"{way}_{name}"] = lambda v, way=way, part=part: FULL[way][part](v)
            found[f"{way}_article_{name}"] = lambda v, way=way, part=part: ARTICLE[way][part](v)
    return found


def _pick(way, name):
    """The way's bytes by the accounting chosen."""
    return lambda v: ops.where(v.counts_all > 0, getattr(v, f"{way}_{name}"), getattr(v, f"{way}_article_{name}"))


def _shown(way):
    """The number that the accounting chosen compares: bytes sent, or the article's payload."""
    return lambda v: ops.where(v.counts_all > 0, getattr(v, f"{way}_sent_bytes"), getattr(v, f"{way}_article_payload_bytes"))


def _ratio(number, base):
    return lambda v: number(v) / base(v)


# --- the flow --------------------------------------------------------------------------------------------------------

def _row(number):
    """Lower and upper edge of a row of the flow."""
    return TOP - number * PITCH - TALL, TOP - number * PITCH


def _words(name, left, right, row, text):
    low, high = _row(row)
    return Label(name, (left + right) / 2, (low + high) / 2, text)


def _step(row, name, color, text, arrow=True):
    """One box on each GPU, an arrow into it."""
    marks, (low, high) = [], _row(row)
    for lane, (left, right) in enumerate(LANES):
        here = f"{name}-{lane + 1}"
        marks += [Box(here, left, right, low, high, color, ghost=True), _words(here + "-text", left, right, row, text)]
        if arrow:
            middle = (left + right) / 2
            marks.append(Line(here + "-in", middle, high + PITCH - TALL, middle, high + 1, "gray", arrow=True))
    return marks


def _allreduce(row, name):
    """One red box over both lanes."""
    (left, _), (_, right), (low, high) = *LANES, _row(row)
    text = ("ALL-REDUCE: ", (_hidden, 0), " B")
    arrows = [Line(f"{name}-in-{lane + 1}", (a + b) / 2, high + PITCH - TALL, (a + b) / 2, high + 1, "red", arrow=True)
              for lane, (a, b) in enumerate(LANES)]
    return [Box(name, left, right, low, high, "red", ghost=True), _words(name + "-text", left, right, row, text), *arrows]


def _flow():
    all_of = ("all ", (lambda v: v.hidden, 0))
    head = lambda name, lane, text: Label(name, sum(lane) / 2, TOP + 8, text)
    others = (lambda v: ops.where(v.ranks < 3, 0, ops.where(v.ranks < 5, 1, 2)), ("GPU 2", "GPU 2, 3, 4 alike", "GPU 2 to 8 alike"))
    return (
        head("head-1", LANES[0], "GPU 1"), head("head-2", LANES[1], (others,)),
        *_step(0, "input", "gray", ("x: ", *all_of), arrow=False),
        *_step(1, "qkv", "blue", "Q, K, V: cut by columns"),
        *_step(2, "mixer", "green", "attention, own heads"),
        *_step(3, "out", "gold", "o_proj: cut by rows"),
        *_allreduce(4, "first"),
        *_step(5, "add", "gray", ("add x: ", *all_of)),
        *_step(6, "up", "blue", ("gate, up: ", (lambda v: v.intermediate / v.ranks, 0), " columns")),
        *_step(7, "product", "green", "SiLU(gate) · up"),
        *_step(8, "down", "gold", ("down: ", (lambda v: v.intermediate / v.ranks, 0), " rows")),
        *_allreduce(9, "second"),
        *_step(10, "end", "gray", ("add: ", *all_of)),
    )


def _bars():
    marks = []
    for row, way in zip((2.0, 1.0, 0.0), WAYS):
        label = lambda words: words if way == "megatron" else ""
        marks += [
            Label(f"{way}-name", 1.12 * BYTES[0], row + 0.44, (f"{WAYS[way]}, {CUTS[way]}: ", (_shown(way), 0), " B"), align="left", axes=1),
            bar(f"{way}-payload", row + 0.15, BYTES[0], _pick(way, "payload_bytes"), "red", label("payload"), ghost=True, axes=1, thickness=0.2),
            bar(f"{way}-sent", row - 0.08, BYTES[0], _pick(way, "sent_bytes"), "red", label("each GPU sends"), axes=1, thickness=0.2),
        ]
    return marks


def _cells(function, decimals, after=""):
    return tuple(((function(way), decimals), after) for way in WAYS)


def block_flow():
    """Figure 2, live."""
    get = lambda name: lambda way: lambda v: getattr(v, f"{way}_{name}")
    relative = lambda name: lambda way: _ratio(get(name)(way), get(name)("megatron"))
    return Figure(
        name="block-flow",
        title="One transformer block, split.",
        caption="Blue: cut by columns; gold: cut by rows; red: the link. The norms before Q, K, V and gate, up run whole on each GPU. "
                "Bars, on a log scale: one FFN, cut in three ways.",
        controls=(
            Choice("accounting", "Count", COUNTED, "every collective, bytes sent"),
            Choice("tp", "Split over", {name: TP[name] for name in ("2 GPUs", "4 GPUs", "8 GPUs")}, "2 GPUs"),
            Slider("tokens", "Tokens in the pass", tuple(str(2**i) for i in range(14)), "1", "tokens", whole=True),
            Slider("hidden", "Hidden size", linear_texts(1024, 16384, 256), f"{MODEL.hidden:.0f}", whole=True),
            Slider("intermediate", "FFN size", linear_texts(1024, 65536, 512), f"{MODEL.intermediate:.0f}", whole=True),
            Choice("activation_dtype", "Activations sent as", ACTIVATION_DTYPES, "BF16"),
        ),
        derived=_derived(),
        axes=(Axes(xlim=(-1, LANES[1][1] + 1), ylim=(-1, TOP + 16), bare=True, height=2.7),
              Axes("bytes for one FFN", xlim=BYTES, ylim=(-0.35, 2.7), xlog=True, yticks=((-0.35, ""),), legend=2)),
        size=(4.6, 6.0),
        marks=(*_flow(), *_bars()),
        readouts={
            "block": ((lambda v: v.layer_allreduces, 0), " all-reduces of ", (_hidden, 0), " B in the block: one after attention, one after the FFN."),
            "ffn": ((lambda v: v.counts_all, ("The article's payloads", "Each GPU sends")), " for the FFN: Megatron ", (_shown("megatron"), 0), " B, naive A ",
                    (_shown("naive_a"), 0), " B (", (_ratio(_shown("naive_a"), _shown("megatron")), 1), "×), naive B ",
                    (_shown("naive_b"), 0), " B (", (_ratio(_shown("naive_b"), _shown("megatron")), 1), "×)."),
        },
        table=Table("One FFN, counted both ways", ("", *WAYS.values()), (
            ("gate, up; then down", "columns; rows", "columns; columns", "rows; rows"),
            ("collectives", "1 all-reduce", "2 all-gathers", "2 all-reduces"),
            ("payload, B", *_cells(get("payload_bytes"), 0)),
            ("each GPU sends, B", *_cells(get("sent_bytes"), 0)),
            ("against Megatron", *_cells(relative("sent_bytes"), 1, "×")),
            ("the article counts", "1 all-reduce", "1 all-gather", "2 all-reduces"),
            ("its payload, B", *_cells(get("article_payload_bytes"), 0)),
            ("against Megatron", *_cells(relative("article_payload_bytes"), 1, "×")),
        )),
    )
