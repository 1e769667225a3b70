"""Figure 2: one token through one transformer block over several GPUs, step by step, cut in three ways."""

from ...formula import ops
from ...formulas.linear import GATE_AND_UP
from ...planner.evidence.articles import GPU, MODEL
from ..live import Axes, Box, Choice, Figure, Label, Line, Slider, Table, bar, holding, quantity, slider, steps
from .linear import NVFP4_BYTES
from .options import SHAPE, SHM, formats, gpus

ALL, ARTICLE = "every collective, bytes sent", "the article's: its payloads"
WAYS = {"megatron": "Megatron", "naive_a": "naive A", "naive_b": "naive B"}
CUTS = {"megatron": "columns then rows", "naive_a": "columns then columns", "naive_b": "rows then rows"}
LANES = ((0.0, 155.0), (166.0, 321.0))  # left and right edge: GPU 1, the others
PITCH, TALL, STRIP = 25.0, 14.0, 6.0  # from row to row; height of a box, and of the result below it
HEADS = ("GPU 1", "{others?GPU 2|GPU 2, 3, 4 alike|GPU 2 to 8 alike}")
STEPS = (  # name, colour in each way, words, and what a GPU then holds in each: all, a piece, a partial sum, or no step
    ("input", "gray", "x: all {hidden:0}", "aaa"), ("qkv", "blue", "Q, K, V: columns", "ppp"),
    ("mixer", "green", "attention, own heads", "ppp"), ("out", "gold", "o_proj: rows", "sss"),
    ("first", "red", "ALL-REDUCE: {message_bytes:0} B", "aaa"), ("add", "gray", "add x: all {hidden:0}", "aaa"),
    ("up", "blue blue gold", "gate, up: {way?columns|columns|rows}", "pps"),
    ("sums", "red", "{way?nothing travels|nothing travels|ALL-REDUCE of gate and up}", "--a"),
    ("product", "green", "SiLU(gate) · up", "ppa"),
    ("gather", "red", "{way?nothing travels|ALL-GATHER of the product|nothing travels}", "-a-"),
    ("down", "gold blue gold", "down: {way?rows|columns|rows}", "sps"),
    ("second", "red", "{way?ALL-REDUCE|ALL-GATHER|ALL-REDUCE}: {message_bytes:0} B", "aaa"),
    ("end", "gray", "add: all {hidden:0}", "aaa"))
TOP = len(STEPS) * PITCH
GATED_Q = 2  # this model's attention has an output gate as large as Q

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
    "most_bytes": lambda v: ops.maximum(v.naive_b_payload_shown, ops.maximum(v.naive_b_wire_shown, ops.maximum(
        ops.maximum(v.megatron_payload_shown, v.megatron_wire_shown),
        ops.maximum(v.naive_a_payload_shown, v.naive_a_wire_shown)))),
    "others": lambda v: ops.where(v.ranks < 3, 0, ops.where(v.ranks < 5, 1, 2)),
    **{f"{way}_{part}_shown": _counted(f"{way}_{part}_bytes", f"{way}_article_{part}_bytes")
       for way in WAYS for part in ("payload", "wire")},
    **{f"{way}_compared": _counted(f"{way}_wire_bytes", f"{way}_article_payload_bytes") for way in WAYS},
    **{f"{way}_{name}_ratio": lambda v, way=way, name=name: getattr(v, f"{way}_{name}") / getattr(v, f"megatron_{name}")
       for way in WAYS for name in ("compared", "wire_bytes", "article_payload_bytes")}}


def _by_way(first, second, third):
    """One of three numbers, as the way is chosen."""
    return lambda v: ops.where(v.way < 1, first, ops.where(v.way < 2, second, third))


def _so_far(*parts):
    """What adds up until the step: (name of a step, function of the view)."""
    at = {name: row for row, (name, *_) in enumerate(STEPS)}
    return lambda v: sum(ops.where(v.step >= at[name], one(v), 0) for name, one in parts)


def _all_sent(name):
    """The sum so far over the collectives of a formula's value; a gather is half of an all-reduce."""
    def of(message, half=False):
        one = lambda v: getattr(v.extended(message_bytes=message(v)), name)
        return lambda v: one(v) / 2 if half else one(v)

    outer, inner = (lambda v: v.message_bytes), (lambda v: v.inner_bytes)
    both = lambda v: GATE_AND_UP * v.inner_bytes
    return _so_far(
        ("first", of(outer)), ("sums", lambda v: _by_way(0, 0, of(both)(v))(v)),
        ("gather", lambda v: _by_way(0, of(inner, True)(v), 0)(v)),
        ("second", lambda v: _by_way(of(outer)(v), of(outer, True)(v), of(outer)(v))(v)))


COUNTERS = {
    "q_k_v": lambda v: (GATED_Q * v.heads + 2 * v.kv_heads) * v.head_elements,
    "own_weight_bytes": lambda v: v.hidden * v.weight_element_bytes / v.ranks,  # of what is hidden long
    "read_so_far": _so_far(("qkv", lambda v: v.q_k_v * v.own_weight_bytes),
                           ("out", lambda v: v.heads * v.head_elements * v.own_weight_bytes),
                           ("up", lambda v: GATE_AND_UP * v.intermediate * v.own_weight_bytes),
                           ("down", lambda v: v.intermediate * v.own_weight_bytes)),
    "sent_so_far": _all_sent("allreduce_wire_bytes"),
    "linked_s": _all_sent("protocol_allreduce_s"),
    "read_s": lambda v: v.read_so_far / v.memory_bytes_per_s,
    "so_far_s": lambda v: v.read_s + v.linked_s}


def _strip(name, row, lane, holds, number):
    """What a GPU holds after a step: all of it, its piece of the length, or as thin as its part of the sum."""
    left, right = lane
    below = TOP - row * PITCH - TALL
    there = lambda v: ops.where(v.step >= row, _by_way(*(float(one != "-") for one in holds))(v), 0)
    piece = _by_way(*(float(one == "p") for one in holds))
    part = _by_way(*(float(one == "s") for one in holds))
    start = lambda v: left + piece(v) * there(v) * number / v.ranks * (right - left)
    length = lambda v: there(v) * (1 - piece(v) * (1 - 1 / v.ranks)) * (right - left)
    tall = lambda v: there(v) * (1 - part(v) * (1 - 1 / v.ranks)) * STRIP
    return Box(name, start, lambda v: start(v) + length(v), lambda v: below - tall(v), below, "purple")


def _flow():
    """The steps from top to bottom, a box on each GPU, one over both where they talk; below it what each then holds."""
    here = lambda edge: lambda v: TOP - v.step * PITCH + edge
    yield Box("here", -3, LANES[1][1] + 3, here(3), here(2 - PITCH), "gray", ghost=True)
    for i, lane in enumerate(LANES):
        yield Label(f"head-{i + 1}", sum(lane) / 2, TOP + 10, HEADS[i])
    for row, (name, colors, words, holds) in enumerate(STEPS):
        high, joins, by_way = TOP - row * PITCH, colors == "red", (colors.split() * 3)[:3]
        over = {name: (LANES[0][0], LANES[1][1])} if joins else {f"{name}-{i}": lane for i, lane in enumerate(LANES, 1)}
        for box, (left, right) in over.items():
            for color in dict.fromkeys(by_way):
                drawn = _by_way(*(float(own == color and one != "-") for own, one in zip(by_way, holds)))
                end = lambda v, drawn=drawn, a=left, b=right: a + drawn(v) * (b - a)
                low = (lambda v, drawn=drawn, high=high: high - drawn(v) * TALL) if "-" in holds else high - TALL
                named = box if color == by_way[0] else f"{box}-{color}"
                yield Box(named, left, end, low, high, color, ghost=True)
            yield Label(f"{box}-text", (left + right) / 2, high - TALL / 2, words)
        for i, lane in enumerate(LANES):
            if joins and "-" not in holds:
                middle = sum(lane) / 2
                yield Line(f"{name}-in-{i + 1}", middle, high + 6, middle, high + 1, "red", arrow=True)
            yield _strip(f"{name}-holds-{i + 1}", row, lane, holds, i)


def _bars():
    thin = {"axes": 1, "thickness": 0.2}
    share = lambda name: lambda v: getattr(v, name) / v.most_bytes
    for row, way in zip((2.0, 1.0, 0.0), WAYS):
        payload, sent = ("payload", "each GPU sends") if way == "megatron" else ("", "")
        words = f"{WAYS[way]}, {CUTS[way]}: {{{way}_compared:0}} B"
        yield Label(f"{way}-name", 0, row + 0.46, words, align="left", axes=1)
        yield bar(f"{way}-payload", row + 0.15, 0, share(f"{way}_payload_shown"), "red", payload, ghost=True, **thin)
        yield bar(f"{way}-sent", row - 0.08, 0, share(f"{way}_wire_shown"), "red", sent, **thin)


def block_flow():
    """Figure 2, live."""
    row = lambda label, name, form: (label, *(form.replace("?", f"{way}_{name}") for way in WAYS))
    return Figure(
        name="block-flow", title="One transformer block, split.", size=(4.6, 6.4),
        caption="Blue: cut by columns; gold: cut by rows; red: the link. Purple: what a GPU then holds: all, a piece, "
                "or, thin, its part of a sum. The norms run whole on each GPU. Bars: what one FFN sends.",
        controls=(
            steps("step", len(STEPS) - 1, len(STEPS) - 1),
            Choice("cut", "Way through the FFN", {f"{words}: {CUTS[way]}": {"way": i} for i, (way, words) in enumerate(
                WAYS.items())}, f"Megatron: {CUTS['megatron']}"),
            Choice("accounting", "Count", {ALL: {"counts_all": 1}, ARTICLE: {"counts_all": 0}}, ALL),
            gpus(2, 4, 8),
            Slider("tokens", "Tokens in the pass", tuple(str(2**i) for i in range(14)), "1", "tokens", whole=True),
            slider("hidden", "Hidden size", 1024, 16384, MODEL.hidden, step=256, whole=True),
            slider("intermediate", "FFN size", 1024, 65536, MODEL.intermediate, step=512, whole=True),
            Choice("activation_dtype", "Activations sent as", formats("element_bytes", "BF16", "FP8"), "BF16")),
        presets={"article 1's block, every collective counted": {},
                 "article 1's block, as it counts: payloads": {"accounting": ARTICLE}},
        recipes=RECIPES | COUNTERS,
        constants={name: SHAPE[name] for name in ("heads", "kv_heads", "head_elements")} | SHM | {
            "layers": 1, "weight_element_bytes": NVFP4_BYTES, "memory_bytes_per_s": GPU.memory_bytes_per_s},
        axes=(Axes(xlim=(-4, LANES[1][1] + 4), ylim=(-1, TOP + 16), bare=True, height=3.6),
              Axes(xlim=(0, 1.01), ylim=(-0.3, 2.8), bare=True, legend=2)),
        marks=(*_flow(), *_bars()),
        readouts={
            "counters": "So far {so_far_s/US:0} µs, the link {linked_s/US:0} of them.",
            "bytes": "Each GPU has read {read_so_far/MB:1} MB of weights and sent {sent_so_far:0} B.",
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
