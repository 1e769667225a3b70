"""Figure 4: what fills one card."""

from .. import ops
from ..catalog.articles import GPU, MODEL, UTILISATION_FRAC
from ..formulas import card, memory
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Label, Line, Table, bar
from ..units import DTYPE_BYTES, GB, GIB, MIB
from .options import KV_DTYPES, TP

LOW, MIDDLE, HIGH = (f"{end / GIB:.10g}" for end in MODEL.numbers["overhead_bytes"].base_range)
ROWS = (("low", -1, float(LOW) * GIB), ("high", -2, float(HIGH) * GIB))
XLIM, TOP, BOTTOM = (0.0, 125.0), 1.05, -3.15
CARDS = {f"{gib} GiB": {"vram_bytes": gib * GIB} for gib in (12, 24, 32, 48, 80)}
DRIVER = f"{GPU.reported_bytes / MIB:,.0f} MiB, as its driver reports"
NOMINAL = f"{GPU.vram_bytes / GIB:.0f} GiB, nominal"
STATES = {name: {"state_element_bytes": DTYPE_BYTES[name.lower()]} for name in ("FP32", "BF16")}
MTP = {"off": {"mtp": 0, "drafts": 0}, "BF16 layer, 1 draft": {"mtp": 1, "drafts": 1}, "BF16 layer, 3 drafts": {"mtp": 1, "drafts": 3}}


def at(overhead_bytes):
    """A function that gives any view another overhead."""
    return lambda v: v.extended(overhead_bytes=overhead_bytes)


def yours(v):
    return v


def _pool(v):
    return v(memory.kv_pool_bytes)


def left(v):
    """What stays free on one card; negative: what is missing."""
    return v(card.left_bytes, kv_pool_bytes=_pool(v))


PARTS = (
    ("weights", "blue", "weights", lambda v: v.build_bytes / v.ranks),
    ("mtp", "purple", "MTP layer", lambda v: v.mtp_bytes / v.ranks),
    ("overhead", "gray", "overhead", lambda v: v.overhead_bytes),
    ("state", "gold", "state", lambda v: v.state_pool_bytes),
    ("kv", "green", "KV cache", lambda v: v.kv_cache_bytes),
)  # name, colour, label, bytes on one card; the first lies at the bottom


def _end(view, count):
    """Where the part number `count` begins, in percent of the card: a function of the view."""
    return lambda v: sum((size(view(v)) for *_, size in PARTS[:count]), 0) * 100 / v.vram_bytes if count else 0


def _bars(row, view, suffix="", ghost=False):
    return tuple(bar(name + suffix, row, _end(view, i), _end(view, i + 1), color, "" if ghost else label, ghost)
                 for i, (name, color, label, _) in enumerate(PARTS))


def _sum(v):
    return v(memory.used_bytes) + v.state_pool_bytes


def _fits(v):
    return ops.where(left(v) >= 0, 1, 0)


def _size(v):
    """What is left or missing, without its sign."""
    return ops.maximum(left(v), 0 - left(v))


def fitting_tokens(v):
    """Tokens whose cache fits beside the states."""
    return v(memory.pool_tokens, kv_pool_bytes=_pool(v) - v.state_pool_bytes)


def _break_even(v):
    """The overhead at which nothing is left and nothing missing; below zero where none fits."""
    return left(v) + v.overhead_bytes


def _verdict(v):
    """0: weights alone are too much; 1: no overhead fits; 2: none of the estimate; 3: it decides; 4: every one fits."""
    none, low, high = (left(at(overhead)(v)) for overhead in (0, *(row[2] for row in ROWS)))
    bare = v(memory.budget_bytes) - v.weights_bytes / v.ranks
    return ops.where(bare <= 0, 0, ops.where(none < 0, 1, ops.where(low < 0, 2, ops.where(high < 0, 3, 4))))


def _row(label, function, decimals=2):
    views = (yours, *(at(overhead) for _, _, overhead in ROWS))
    return (label, *((((lambda v, view=view: function(view(v))), decimals),) for view in views))


def _budget(v):
    return 100 * v.utilisation_frac


def card_memory():
    """Figure 4, live."""
    return Figure(
        name="card-memory",
        title="What fills one card?",
        caption=f"Top bar: your setting. Pale bars: the same with the low ({LOW} GiB) and the high ({HIGH} GiB) end of the estimated overhead.",
        controls=(
            Choice("card", "Memory of a card", {NOMINAL: {"vram_bytes": GPU.vram_bytes}, DRIVER: {"vram_bytes": GPU.reported_bytes}} | CARDS, NOMINAL),
            Slider("utilisation_frac", "Fraction the engine may take", linear_texts(0.5, 1, 0.01, start=UTILISATION_FRAC), f"{UTILISATION_FRAC}"),
            Slider("build_bytes", "Weights, all GPUs", log_texts(5, 200, 40, start=MODEL.weights_bytes / GB), f"{MODEL.weights_bytes / GB:.10g}", "GB", "e9"),
            Choice("mtp_layer", "MTP layer on top", MTP, "off"),
            Slider("overhead_bytes", "Overhead: graphs, activations, buffers", linear_texts(0, 5, 0.1, start=float(MIDDLE)), MIDDLE, "GiB", factor=GIB),
            Slider("context_tokens", "Context", linear_texts(0, 262144, 4096), "262144", "tokens"),
            Choice("kv_dtype", "KV cache stored as", KV_DTYPES, "FP8"),
            Choice("state_dtype", "Recurrent state stored as", STATES, "FP32"),
            Choice("tp", "Split over", TP, "2 GPUs"),
        ),
        constants={name: getattr(MODEL, name) for name in
                   ("hidden", "intermediate", "heads", "kv_heads", "head_elements", "element_bytes", "state_layers",
                    "value_heads", "key_elements", "value_elements")} | {"main_full_layers": MODEL.full_layers},
        derived={
            "mtp_bytes": lambda v: v.mtp * v(card.mtp_parameters) * v.element_bytes,
            "weights_bytes": lambda v: v.build_bytes + v.mtp_bytes,
            "full_layers": lambda v: v.main_full_layers + v.mtp,
            "kv_bytes_per_token": lambda v: v(memory.kv_bytes_per_token),
            "kv_cache_bytes": lambda v: v(memory.kv_cache_bytes),
            "state_bytes": lambda v: v(memory.state_bytes),
            "state_pool_bytes": lambda v: v(card.state_pool_bytes),
        },
        axes=(Axes("% of the card's memory", xlim=XLIM, ylim=(BOTTOM, TOP), legend=3,
                   xticks=tuple((at, str(at)) for at in (0, 25, 50, 75, 100)),
                   yticks=((0, "yours"), *((row, f"{name} end") for name, row, _ in ROWS))),),
        marks=(
            *_bars(0, yours),
            *(mark for name, row, overhead in ROWS for mark in _bars(row, at(overhead), f"-{name}", ghost=True)),
            Line("budget", _budget, BOTTOM, _budget, TOP, "red", "may be taken", dashed=True),
            Line("card", 100, BOTTOM, 100, TOP, "text", "card's end"),
            Label("budget-size", lambda v: _budget(v) - 1.5, 0.68, ((lambda v: v(memory.budget_bytes) / GIB, 2), " GiB"), color="red", align="right"),
            Label("card-size", 101.5, -2.8, ((lambda v: v.vram_bytes / GIB, 2), " GiB"), align="left"),
        ),
        readouts={
            "verdict": ((_fits, ("Does not fit: ", "Fits: ")), (lambda v: _size(v) / GIB, 2), " GiB ",
                        (_fits, ("is missing", "is left")), " on each card, the cache of ",
                        (lambda v: _size(v) / v.kv_bytes_per_token, 0), " tokens."),
            "decides": ((_verdict, (
                "The weights alone exceed what the engine may take. ", "Not even without any overhead. ",
                f"Even the lowest estimated overhead, {LOW} GiB, is too much. ",
                "The overhead decides, an estimate. ",
                f"It fits even with the highest estimated overhead, {HIGH} GiB. ")),
                (lambda v: ops.where(_verdict(v) > 1, 1, 0), (
                    "", ("Just enough would be an overhead of ", (lambda v: _break_even(v) / GIB, 2), " GiB.")))),
        },
        table=Table("GiB on each card", ("", "yours", f"overhead {LOW}", f"overhead {HIGH}"), (
            *(_row(label, lambda v, size=size: size(v) / GIB) for _, _, label, size in PARTS),
            _row("in all", lambda v: _sum(v) / GIB),
            _row("may be taken", lambda v: v(memory.budget_bytes) / GIB),
            _row("left", lambda v: left(v) / GIB),
            _row("tokens that fit", fitting_tokens, 0),
        )),
    )
