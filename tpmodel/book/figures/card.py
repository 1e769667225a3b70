"""Figure 4: what fills one card."""

from ...formula import ops
from ...formula.units import DTYPE_BYTES, GB, GIB
from ...planner.evidence.articles import GPU, MODEL, OVERHEAD, UTILISATION_FRAC
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Label, Line, Table, bar, quantity, rows
from .options import AS_COUNTED, BUILD_GB, DRIVER, KV_DTYPES, LONGEST_TOKENS, NOMINAL, TP

LOW, MIDDLE, HIGH = (f"{end / GIB:.10g}" for end in OVERHEAD.base_range)
XLIM, TOP, BOTTOM = (0.0, 125.0), 1.05, -3.15
CARDS = {f"{gib} GiB": {"vram_bytes": gib * GIB} for gib in (12, 24, 32, 48, 80)}
STATES = {name: {"state_element_bytes": DTYPE_BYTES[name.lower()]} for name in ("FP32", "BF16")}
MTP = {"off": {"mtp": 0, "drafts": 0}, "BF16 layer, 1 draft": {"mtp": 1, "drafts": 1}, "BF16 layer, 3 drafts": {"mtp": 1, "drafts": 3}}
PARTS = (("weights", "blue", "weights", "own_weights_bytes"), ("mtp", "purple", "MTP layer", "own_mtp_bytes"),
         ("overhead", "gray", "overhead", "overhead_bytes"), ("state", "gold", "state", "state_pool_bytes"),
         ("kv", "green", "KV cache", "kv_cache_bytes"))  # name, colour, label, bytes on one card; the first lies at the bottom


def at(overhead_bytes):
    """A function that gives any view another overhead."""
    return lambda v: v.extended(overhead_bytes=float(overhead_bytes))


LOW_END, HIGH_END = at(float(LOW) * GIB), at(float(HIGH) * GIB)
ENDS = (("low", -1, LOW_END), ("high", -2, HIGH_END))


def _end(count, view):
    """Where the part number `count` begins, in percent of the card: a function of the view."""
    sizes = [quantity(size, view) for *_, size in PARTS[:count]]
    return lambda v: sum((size(v) for size in sizes), 0) * 100 / v.vram_bytes


def _bars(row, view=None, suffix="", ghost=False):
    return tuple(bar(name + suffix, row, _end(i, view) if i else 0, _end(i + 1, view), color, "" if ghost else label, ghost)
                 for i, (name, color, label, _) in enumerate(PARTS))


def _verdict(v):
    """0: weights alone are too much; 1: no overhead fits; 2: none of the estimate; 3: it decides; 4: every one fits."""
    none, low, high = (view(v).left_bytes for view in (at(0), LOW_END, HIGH_END))
    bare = v.budget_bytes - v.weights_bytes / v.ranks
    return ops.where(bare <= 0, 0, ops.where(none < 0, 1, ops.where(low < 0, 2, ops.where(high < 0, 3, 4))))


RECIPES = {
    "mtp_bytes": lambda v: v.mtp * v.mtp_parameters * v.element_bytes,
    "weights_bytes": lambda v: v.build_bytes + v.mtp_bytes,
    "own_weights_bytes": lambda v: v.build_bytes / v.ranks,
    "own_mtp_bytes": lambda v: v.mtp_bytes / v.ranks,
    "full_layers": lambda v: v.main_full_layers + v.mtp,
    "all_bytes": lambda v: v.used_bytes + v.state_pool_bytes,
    "fits": lambda v: ops.where(v.left_bytes >= 0, 1, 0),
    "apart_bytes": lambda v: ops.maximum(v.left_bytes, 0 - v.left_bytes),  # left or missing, without its sign
    "apart_tokens": lambda v: v.apart_bytes / v.kv_bytes_per_token,
    "room_tokens": lambda v: v.given(kv_pool_bytes=v.kv_pool_bytes - v.state_pool_bytes).pool_tokens,  # beside the states
    "just_bytes": lambda v: ops.maximum(0, v.left_bytes + v.overhead_bytes),  # the overhead at which nothing is left
    "verdict": _verdict,
    "budget_percent": lambda v: 100 * v.utilisation_frac,
}


def card_memory():
    """Figure 4, live."""
    return Figure(
        name="card-memory",
        title="What fills one card?",
        caption=f"Top bar: your setting. Pale bars: the same with the low ({LOW} GiB) and the high ({HIGH} GiB) end of the estimated overhead.",
        controls=(
            Choice("card", "Memory of a card", {NOMINAL: {"vram_bytes": GPU.vram_bytes}, DRIVER: {"vram_bytes": GPU.reported_bytes}} | CARDS, NOMINAL),
            Slider("utilisation_frac", "Fraction the engine may take", linear_texts(0.5, 1, 0.01, start=UTILISATION_FRAC), f"{UTILISATION_FRAC}"),
            Slider("build_bytes", "Weights, all GPUs", log_texts(5, 200, 40, start=(MODEL.weights_bytes / GB, BUILD_GB)), f"{MODEL.weights_bytes / GB:.10g}", "GB", "e9"),
            Choice("mtp_layer", "MTP layer on top", MTP, "off"),
            Slider("overhead_bytes", "Overhead: graphs, activations, buffers", linear_texts(0, 5, 0.1, start=float(MIDDLE)), MIDDLE, "GiB", factor=GIB),
            Slider("context_tokens", "Context", linear_texts(0, 262144, 4096, start=LONGEST_TOKENS), "262144", "tokens"),
            Choice("kv_dtype", "KV cache stored as", KV_DTYPES, "FP8"),
            Choice("state_dtype", "Recurrent state stored as", STATES, "FP32"),
            Choice("tp", "Split over", TP, "2 GPUs"),
        ),
        presets={"article 1: 20 GB, nominal 16 GiB, overhead 1.2 GiB": {},
                 AS_COUNTED: {"card": DRIVER, "build_bytes": BUILD_GB, "context_tokens": LONGEST_TOKENS}},
        constants={name: getattr(MODEL, name) for name in
                   ("hidden", "intermediate", "heads", "kv_heads", "head_elements", "element_bytes", "state_layers",
                    "value_heads", "key_elements", "value_elements")} | {"main_full_layers": MODEL.full_layers},
        recipes=RECIPES,
        axes=(Axes("% of the card's memory", xlim=XLIM, ylim=(BOTTOM, TOP), legend=3,
                   xticks=tuple((at, str(at)) for at in (0, 25, 50, 75, 100)),
                   yticks=((0, "yours"), *((row, f"{name} end") for name, row, _ in ENDS))),),
        marks=(
            *_bars(0),
            *(mark for name, row, view in ENDS for mark in _bars(row, view, f"-{name}", ghost=True)),
            Line("budget", "budget_percent", BOTTOM, "budget_percent", TOP, "red", "may be taken", dashed=True),
            Line("card", 100, BOTTOM, 100, TOP, "text", "card's end"),
            Label("budget-size", lambda v: v.budget_percent - 1.5, 0.68, "{budget_bytes/GIB:2} GiB", color="red", align="right"),
            Label("card-size", 101.5, -2.8, "{vram_bytes/GIB:2} GiB", align="left"),
        ),
        readouts={
            "verdict": "{fits?Does not fit: |Fits: }{apart_bytes/GIB:2} GiB {fits?is missing|is left} on each card, the cache of {apart_tokens:0} tokens.",
            "decides": "{verdict?The weights alone exceed what the engine may take. |Not even without any overhead. |"
                       f"Even the lowest estimated overhead, {LOW} GiB, is too much. |The overhead decides, an estimate. |"
                       f"It fits even with the highest estimated overhead, {HIGH} GiB. }}Just enough would be an overhead of {{just_bytes/GIB:2}} GiB.",
        },
        table=Table("GiB on each card", ("", "yours", f"overhead {LOW}", f"overhead {HIGH}"), rows(
            (None, LOW_END, HIGH_END),
            *((label, f"{{{size}/GIB:2}}") for _, _, label, size in PARTS),
            ("in all", "{all_bytes/GIB:2}"),
            ("may be taken", "{budget_bytes/GIB:2}"),
            ("pool: for state and cache", "{kv_pool_bytes/GIB:2}"),
            ("left", "{left_bytes/GIB:2}"),
            ("tokens that fit, by division", "{room_tokens:0}"),
        )),
    )
