"""Figure 4: what fills one card."""

from functools import reduce
from operator import add

from ...formula import ops
from ...formula.units import GB, GIB
from ...planner.evidence.articles import GPU, MODEL, OVERHEAD
from ...planner.evidence.blocks import article_plan
from ..live import Axes, Choice, Figure, Label, Line, Table, holding, rows, slider, stack
from .options import (
    AS_COUNTED, BUILD_GB, CARDS, DRIVER, LOADED_BYTES, NOMINAL, OUR_RANGE, TAKEN, TAKEN_GIB, cache_format, formats,
    gpus, overhead_range, share)

MIDDLE = f"{OVERHEAD.base / GIB:.10g}"
LOW_END, HIGH_END = (holding(overhead_bytes=f"{end}_overhead_bytes") for end in ("low", "high"))
ENDS = (("low", -1, LOW_END), ("high", -2, HIGH_END))
XLIM, TOP, BOTTOM = (0.0, 125.0), 1.05, -3.15
REPORTED = article_plan("0.33", vram_bytes=GPU.reported_bytes, weights_bytes=LOADED_BYTES, overhead_bytes=TAKEN[1])
LONGEST_TOKENS = f"{REPORTED.fitting_tokens:.0f}"
MTP = {"off": {"mtp": 0, "drafts": 0}, **{f"BF16 layer, {words}": {"mtp": 1, "drafts": n}
                                          for n, words in ((1, "1 draft"), (3, "3 drafts"))}}
PARTS = (("weights", "blue", "weights", "own_weights_bytes"), ("mtp", "purple", "MTP layer", "own_mtp_bytes"),
         ("overhead", "gray", "overhead", "overhead_bytes"), ("state", "gold", "state", "state_pool_bytes"),
         ("kv", "green", "KV cache", "kv_cache_bytes"))  # name, colour, label, bytes on one card
BARS = [(name, color, label, f"{name}_percent") for name, color, label, _ in PARTS]


def _verdict(v):
    """0: weights alone are too much; 1: no overhead fits; 2: none of the estimate; 3: it decides; 4: every one fits."""
    none, low, high = (at(v).left_bytes for at in (holding(overhead_bytes=0.0), LOW_END, HIGH_END))
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
    "room_tokens": lambda v: v.given(kv_pool_bytes=v.kv_pool_bytes - v.state_pool_bytes).pool_tokens,
    "just_bytes": lambda v: ops.maximum(0, v.left_bytes + v.overhead_bytes),  # the overhead at which nothing is left
    "verdict": _verdict,
    "budget_percent": lambda v: 100 * v.utilisation_frac}
for i, (name, *_) in enumerate(PARTS, 1):  # where a part ends: those below it and its own
    RECIPES[f"{name}_percent"] = lambda v, parts=PARTS[:i]: (
        reduce(add, (getattr(v, size) for *_, size in parts), 0) * 100 / v.vram_bytes)


def card_memory():
    """Figure 4, live."""
    return Figure(
        name="card-memory", title="What fills one card?",
        caption="Top bar: your setting. Pale bars: the same with the low and the high end of the overhead's range.",
        controls=(
            Choice("card", "Memory of a card",
                   CARDS | {f"{gib} GiB": {"vram_bytes": gib * GIB} for gib in (12, 24, 32, 48, 80)}, NOMINAL),
            share(0.5),
            slider("build_bytes", "Weights, all GPUs", 5, 200, MODEL.weights_bytes / GB, "GB", BUILD_GB, per_decade=40),
            Choice("mtp_layer", "MTP layer on top", MTP, "off"),
            slider("overhead_bytes", "Overhead beside weights and cache", 0, 5, MIDDLE, "GiB", TAKEN_GIB, step=0.1),
            overhead_range(),
            slider("context_tokens", "Context", 0, 262144, 262144, "tokens", LONGEST_TOKENS, step=4096),
            cache_format(),
            Choice("state_dtype", "Recurrent state stored as", formats("state_element_bytes", "FP32", "BF16"), "FP32"),
            gpus()),
        presets={"article 1: 20 GB, nominal 16 GiB, overhead 1.2 GiB": {},
                 AS_COUNTED: {"card": DRIVER, "build_bytes": BUILD_GB, "context_tokens": LONGEST_TOKENS,
                              "overhead_bytes": TAKEN_GIB, "range": OUR_RANGE}},
        constants={name: getattr(MODEL, name) for name in
                   ("hidden", "intermediate", "heads", "kv_heads", "head_elements", "element_bytes", "state_layers",
                    "value_heads", "key_elements", "value_elements")} | {"main_full_layers": MODEL.full_layers},
        recipes=RECIPES,
        axes=(Axes("% of the card's memory", xlim=XLIM, ylim=(BOTTOM, TOP), legend=3,
                   xticks=tuple((at, str(at)) for at in (0, 25, 50, 75, 100)),
                   yticks=((0, "yours"), *((row, f"{name} end") for name, row, _ in ENDS))),),
        marks=(
            *stack(0, BARS),
            *(mark for name, row, at in ENDS for mark in stack(row, BARS, at, f"{{}}-{name}", ghost=True)),
            Line("budget", "budget_percent", BOTTOM, "budget_percent", TOP, "red", "may be taken", dashed=True),
            Line("card", 100, BOTTOM, 100, TOP, "text", "card's end"),
            Label("budget-size", lambda v: v.budget_percent - 1.5, 0.68, "{budget_bytes/GIB:2} GiB", color="red",
                  align="right"),
            Label("card-size", 98.5, -2.8, "{vram_bytes/GIB:2} GiB", align="right")),
        readouts={
            "verdict": "{fits?Does not fit: |Fits: }{apart_bytes/GIB:2} GiB {fits?is missing|is left} on each card, "
                       "the cache of {apart_tokens:0} tokens.",
            "decides": "{verdict?The weights alone exceed what the engine may take. |Not even without any overhead. |"
                       "Even the low end of the overhead is too much. |The overhead decides, and it is a range. |"
                       "It fits even with the high end of the overhead. }"
                       "Just enough would be an overhead of {just_bytes/GIB:2} GiB."},
        table=Table("GiB on each card", ("", "yours", "low overhead", "high overhead"), rows(
            (None, LOW_END, HIGH_END),
            *((label, f"{{{size}/GIB:2}}") for _, _, label, size in PARTS),
            ("in all", "{all_bytes/GIB:2}"), ("may be taken", "{budget_bytes/GIB:2}"),
            ("pool: for state and cache", "{kv_pool_bytes/GIB:2}"), ("left", "{left_bytes/GIB:2}"),
            ("tokens that fit, by division", "{room_tokens:0}"))))
