"""Two unequal cards: the time of a token, predicted beside measured."""

from ...formula import ops
from ...formula.units import TFLOP, US
from ...planner.evidence import article2 as a2
from ...planner.evidence.articles import RECIPES
from ...planner.evidence.unequal import CARDS, COPIES, LINK, MODEL, PINNED, batch
from ..live import Axes, Choice, Figure, Table, bar, holding, quantity, slider, stack
from .options import BEYOND, sources

TFLOP_PER_S = {name: card.bf16_flop_per_s / TFLOP for name, card in CARDS.items()}
SHAPE = {name: getattr(MODEL, name) for name in ("layers", "hidden", "intermediate", "heads", "kv_heads",
                                                 "head_elements", "vocabulary", "element_bytes", "loaded_extra_bytes")}
MACHINE = SHAPE | {"ranks": 2, "tables": 1, "allreduce_latency_s": LINK.allreduce_latency_s, "gap_s": 0}
TIMES = ("busy", "pass", "communication", "paced", "handed", "handover", "pipeline", "stage", "copy", "offload")
RECIPES = RECIPES | {  # the two stages of a pipeline, and tensor parallelism at the pace of the slower card
    "first_s": lambda v: a2.stages(v, v.first_layers)["first_s"],
    "last_s": lambda v: a2.stages(v, v.first_layers)["last_s"],
    "second_layers": lambda v: v.layers - v.first_layers,
    "paced_s": lambda v: ops.maximum(v.first_s, v.last_s),
    "handed_s": lambda v: v.paced_s + v.handover_s,
    "busy_s": a2.even_s,
    "offload_bytes": a2.RECIPES["offload_bytes"],
    **{f"{name}_us": lambda v, name=f"{name}_s": getattr(v, name) / v.tokens / US for name in TIMES}}  # of one token
FIRST, LAST = (holding(stage_layers="layers", **{name: f"{card}_{name}" for name in ("flop_per_s", "copy_bytes_per_s")})
               for card in ("first", "last"))  # all layers on one card, with some in main memory
HALVES = holding(first_layers=17.0)
TP = (("arithmetic", "blue", "busy_us"), ("link", "red", "pass_us"))
PP = (("arithmetic", "blue", "paced_us"), ("link", "red", "handed_us"), ("fill and drain", "gray", "pipeline_us"))
OFF = (("arithmetic", "blue", "stage_us"), ("copies", "gold", "offload_us"))
WAYS = {"tp": ("TP", None, TP), "pp1717": ("PP 17/17", HALVES, PP),
        "pp1717r": ("reversed", lambda v: HALVES(a2.turned(v)), PP),
        "pp2014": ("PP 20/14", holding(first_layers=20.0), PP), "yours": ("PP yours", None, PP),
        "off5080": ("5080 off.", FIRST, OFF), "off5060": ("5060 off.", LAST, OFF)}
MEASURED = tuple(way for way in WAYS if way != "yours")
LABELLED = {"tp": TP, "pp1717": PP[2:], "off5080": OFF[1:]}  # way -> its parts that the legend names


def _bars(row, way):
    (_, turn, parts), named = WAYS[way], LABELLED.get(way, ())
    found = [(i, part[1], part[0] if part in named else "", part[2]) for i, part in enumerate(parts)]
    yield from stack(row + 0.17, found, turn, f"{way}-{{}}", thickness=0.34)
    if way in MEASURED:
        yield bar(f"{way}-measured", row - 0.17, 0, lambda v: 1e6 / getattr(v, f"measured_{way}"), "purple",
                  "measured" if way == "tp" else "", ghost=True, thickness=0.34)


def _rates(way):
    """Tokens a second, and by how many percent that is more than measured."""
    time_us = quantity(WAYS[way][2][-1][2], WAYS[way][1])
    error = lambda v: 100 * (getattr(v, f"{way}_rate") / getattr(v, f"measured_{way}") - 1)
    return {f"{way}_rate": lambda v: 1e6 / time_us(v), f"{way}_error": error}


def unequal_speeds():
    """Predicted and measured time of a token for each configuration, live."""
    measured = lambda n: {f"measured_{name}": a2.measured(f"{name}_{n}") for name in MEASURED}
    row = lambda way: (f"{{measured_{way}:0}}", f"{{{way}_error:1}}") if way in MEASURED else ("–", "–")
    return Figure(
        name="unequal-speeds", title="Was it the card or the cable?", size=(4.6, 4.6),
        caption="Time of one token, predicted in parts, and measured below it in pale. "
                "“off.”: one card, 4 GiB in main memory.",
        controls=(
            Choice("length", "Length of a document",
                   {f"{n} tokens": batch(n) | measured(n) for n in (64, 512, 2048, 8192)}, "512 tokens"),
            slider("link_bytes_per_s", "Link between the cards", 1, 100, 4, "GB/s"),
            slider("mfu_frac", "Achieved fraction of the rates", 0.6, 1, 0.95, step=0.01),
            slider("first_layers", "Layers on the first card", 1, MODEL.layers - 1, 24, step=1, whole=True),
            slider("first_flop_per_s", "Rate of the RTX 5080", 10, 500, TFLOP_PER_S["5080"], "TFLOP/s"),
            slider("last_flop_per_s", "Rate of the RTX 5060 Ti", 10, 500, TFLOP_PER_S["5060"], "TFLOP/s"),
            Choice("memory", "Copies from main memory", {"not pinned": a2.copies(COPIES), "pinned": a2.copies(PINNED)},
                   "not pinned")),
        constants=MACHINE, sources=sources(MACHINE, MODEL, LINK), given=("busy_s",),
        recipes=RECIPES | {
            **{name: how for way in WAYS for name, how in _rates(way).items()},
            "cable_longer": lambda v: ops.where(v.communication_s > v.busy_s, 1, 0),
            "first_longer": lambda v: ops.where(v.first_s > v.last_s, 1, 0),
            **{f"{card}_{name}": quantity(name, at) for card, at in (("first", FIRST), ("last", LAST))
               for name in ("stage_us", "copy_us")}},
        axes=(Axes("µs per token", xlim=(0, 550), ylim=(-6.6, 0.6), legend=3, beyond=BEYOND,
                   yticks=tuple((-i, words) for i, (words, *_) in enumerate(WAYS.values()))),),
        marks=tuple(mark for i, way in enumerate(WAYS) for mark in _bars(-i, way)),
        readouts={
            "tp": "Tensor parallel: {tp_rate:0} tokens/s. Of {pass_us:0} µs a token the slower card computes "
                  "{busy_us:0} and the cable takes {communication_us:0}: {cable_longer?more the card.|more the cable.}",
            "pp": "Pipeline {first_layers:0}/{second_layers:0}: {yours_rate:0} tokens/s, paced by the "
                  "{first_longer?second card|first card}; the cable takes {handover_us:1} of {pipeline_us:0} µs.",
            "offload": "One card with offload: the RTX 5060 Ti takes {last_stage_us:0} µs a token of arithmetic and "
                       "{last_copy_us:0} of its cable, the RTX 5080 {first_stage_us:0} and {first_copy_us:0}."},
        table=Table("Tokens a second", ("", "predicted", "measured", "error, %"), tuple(
            (words, f"{{{way}_rate:0}}", *row(way)) for way, (words, *_) in WAYS.items())))
