"""Figure 2: the data flow of one transformer block over several GPUs, and what three ways to cut its FFN send."""

from ...formula import ops
from ...formulas.linear import GATE_AND_UP
from ...planner.evidence.articles import MODEL
from ..live import Axes, Box, Choice, Figure, Label, Line, Slider, Table, bar, holding, quantity, slider
from .options import formats, gpus

ALL, ARTICLE = "every collective, bytes sent", "the article's: its payloads"
WAYS = {"megatron": "Megatron", "naive_a": "naive A", "naive_b": "naive B"}
CUTS = {"megatron": "columns then rows", "naive_a": "columns then columns", "naive_b": "rows then rows"}
LANES = ((0.0, 155.0), (166.0, 321.0))  # left and right edge: GPU 1, the others
PITCH, TALL = 24.0, 16.0  # from row to row; height of a box
TOP = 11 * PITCH
BYTES = (1e3, 1e10)
HEADS = ("GPU 1", "{others?GPU 2|GPU 2, 3, 4 alike|GPU 2 to 8 alike}")
STEPS = (  # name, colour, words; what is red joins the GPUs
    ("input", "gray", "x: all {hidden:0}"), ("qkv", "blue", "Q, K, V: cut by columns"),
    ("mixer", "green", "attention, own heads"), ("out", "gold", "o_proj: cut by rows"),
    ("first", "red", "ALL-REDUCE: {message_bytes:0} B"), ("add", "gray", "add x: all {hidden:0}"),
    ("up", "blue", "gate, up: {own_intermediate:0} columns"), ("product", "green", "SiLU(gate) · up"),
    ("down", "gold", "down: {own_intermediate:0} rows"), ("second", "red", "ALL-REDUCE: {message_bytes:0} B"),
    ("end", "gray", "add: all {hidden:0}"))

INNER = holding(hidden="intermediate")  # the vector that travels is as wide as the FFN inside


def _counted(full, article):
    """One of two names, as the count is chosen."""
    return lambda v: ops.where(v.counts_all > 0, getattr(v, full), getattr(v, article))


RECIPES = {  # what each way moves, counted in full and as the article counts; each GPU's share in full is a formula
    "message_bytes": "allreduce_payload_bytes",
    "inner_bytes": quantity("message_bytes", INNER),
    "megatron_payload_bytes": "message_bytes",
    "naive_a_payload_bytes": lambda v: v.inner_bytes + v.message_bytes,
    "naive_b_payload_bytes": lambda v: GATE_AND_UP * v.inner_bytes + v.message_bytes,
    "megatron_article_payload_bytes": "message_bytes",
    "naive_a_article_payload_bytes": "inner_bytes",
    "naive_b_article_payload_bytes": lambda v: 2 * v.message_bytes,
    "megatron_article_wire_bytes": "megatron_wire_bytes",
    "naive_a_article_wire_bytes": quantity("gather_wire_bytes", INNER),
    "naive_b_article_wire_bytes": lambda v: 2 * v.allreduce_wire_bytes,
    "own_intermediate": lambda v: v.intermediate / v.ranks,
    "others": lambda v: ops.where(v.ranks < 3, 0, ops.where(v.ranks < 5, 1, 2)),
    **{f"{way}_{part}_shown": _counted(f"{way}_{part}_bytes", f"{way}_article_{part}_bytes")
       for way in WAYS for part in ("payload", "wire")},
    **{f"{way}_compared": _counted(f"{way}_wire_bytes", f"{way}_article_payload_bytes") for way in WAYS},
    **{f"{way}_{name}_ratio": lambda v, way=way, name=name: getattr(v, f"{way}_{name}") / getattr(v, f"megatron_{name}")
       for way in WAYS for name in ("compared", "wire_bytes", "article_payload_bytes")}}


def _flow():
    """The steps from top to bottom, one box on each GPU and an arrow into it; an all-reduce is one box over both."""
    arrow = lambda name, x, high, color: Line(name, x, high + PITCH - TALL, x, high + 1, color, arrow=True)
    for i, lane in enumerate(LANES):
        yield Label(f"head-{i + 1}", sum(lane) / 2, TOP + 8, HEADS[i])
    for row, (name, color, words) in enumerate(STEPS):
        high = TOP - row * PITCH
        joins = color == "red"
        boxes = {name: (LANES[0][0], LANES[1][1])} if joins else {f"{name}-1": LANES[0], f"{name}-2": LANES[1]}
        for here, (left, right) in boxes.items():
            yield Box(here, left, right, high - TALL, high, color, ghost=True)
            yield Label(f"{here}-text", (left + right) / 2, high - TALL / 2, words)
            if row and not joins:
                yield arrow(f"{here}-in", (left + right) / 2, high, "gray")
        if joins:
            yield from (arrow(f"{name}-in-{i}", sum(lane) / 2, high, "red") for i, lane in enumerate(LANES, 1))


def _bars():
    left, thin = BYTES[0], {"axes": 1, "thickness": 0.2}
    for row, way in zip((2.0, 1.0, 0.0), WAYS):
        payload, sent = ("payload", "each GPU sends") if way == "megatron" else ("", "")
        words = f"{WAYS[way]}, {CUTS[way]}: {{{way}_compared:0}} B"
        yield Label(f"{way}-name", 1.12 * left, row + 0.44, words, align="left", axes=1)
        yield bar(f"{way}-payload", row + 0.15, left, f"{way}_payload_shown", "red", payload, ghost=True, **thin)
        yield bar(f"{way}-sent", row - 0.08, left, f"{way}_wire_shown", "red", sent, **thin)


def block_flow():
    """Figure 2, live."""
    row = lambda label, name, form: (label, *(form.replace("?", f"{way}_{name}") for way in WAYS))
    return Figure(
        name="block-flow", title="One transformer block, split.", size=(4.6, 6.0),
        caption="Blue: cut by columns; gold: cut by rows; red: the link. The norms before Q, K, V and gate, up "
                "run whole on each GPU. Bars, on a log scale: one FFN, cut in three ways.",
        controls=(
            Choice("accounting", "Count", {ALL: {"counts_all": 1}, ARTICLE: {"counts_all": 0}}, ALL),
            gpus(2, 4, 8),
            Slider("tokens", "Tokens in the pass", tuple(str(2**i) for i in range(14)), "1", "tokens", whole=True),
            slider("hidden", "Hidden size", 1024, 16384, MODEL.hidden, step=256, whole=True),
            slider("intermediate", "FFN size", 1024, 65536, MODEL.intermediate, step=512, whole=True),
            Choice("activation_dtype", "Activations sent as", formats("element_bytes", "BF16", "FP8"), "BF16")),
        presets={"article 1's block, every collective counted": {},
                 "article 1's block, as it counts: payloads": {"accounting": ARTICLE}},
        constants={"layers": 1}, recipes=RECIPES,
        axes=(Axes(xlim=(-1, LANES[1][1] + 1), ylim=(-1, TOP + 16), bare=True, height=2.7),
              Axes("bytes for one FFN", xlim=BYTES, ylim=(-0.35, 2.7), xlog=True, yticks=((-0.35, ""),), legend=2)),
        marks=(*_flow(), *_bars()),
        readouts={
            "block": "{allreduces:0} all-reduces of {message_bytes:0} B in the block: "
                     "one after attention, one after the FFN.",
            "ffn": "{counts_all?The article's payloads|Each GPU sends} for the FFN: Megatron {megatron_compared:0} B, "
                   "naive A {naive_a_compared:0} B ({naive_a_compared_ratio:1}×), "
                   "naive B {naive_b_compared:0} B ({naive_b_compared_ratio:1}×)."},
        table=Table("One FFN, counted both ways", ("", *WAYS.values()), (
            ("gate, up; then down", "columns; rows", "columns; columns", "rows; rows"),
            ("collectives", "1 all-reduce", "2 all-gathers", "2 all-reduces"),
            row("payload, B", "payload_bytes", "{?:0}"),
            row("each GPU sends, B", "wire_bytes", "{?:0}"),
            row("against Megatron", "wire_bytes_ratio", "{?:1}×"),
            ("the article counts", "1 all-reduce", "1 all-gather", "2 all-reduces"),
            row("its payload, B", "article_payload_bytes", "{?:0}"),
            row("against Megatron", "article_payload_bytes_ratio", "{?:1}×"))))
