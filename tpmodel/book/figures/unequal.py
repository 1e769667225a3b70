"""Two unequal cards: the time of a token, predicted beside measured."""

from ...formula import ops
from ...formula.units import TFLOP, US
from ...planner.evidence import article2 as a2
from ...planner.evidence.articles import RECIPES
from ...planner.evidence.unequal import CARDS, COPIES, LINK, MODEL, PINNED, batch
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Table, bar, quantity

AXIS_US = 550
LENGTHS = (64, 512, 2048, 8192)
SHAPE = {name: getattr(MODEL, name) for name in ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_elements",
                                                 "vocabulary", "element_bytes", "loaded_extra_bytes")}
MACHINE = SHAPE | {"ranks": 2, "tables": 1, "allreduce_latency_s": LINK.allreduce_latency_s, "gap_s": 0}
RECIPES = RECIPES | {  # the two stages of a pipeline, and tensor parallelism at the pace of the slower card
    "first_s": lambda v: a2.stages(v, v.first_layers)["first_s"],
    "last_s": lambda v: a2.stages(v, v.first_layers)["last_s"],
    "second_layers": lambda v: v.layers - v.first_layers,
    "paced_s": lambda v: ops.maximum(v.first_s, v.last_s),
    "handed_s": lambda v: v.paced_s + v.handover_s,
    "busy_s": a2.even_s,
    "offload_bytes": a2.RECIPES["offload_bytes"],
}
GIVEN = ("busy_s",)
YOURS = 24


def _first(layers):
    return lambda v: v.extended(first_layers=layers)


def _alone(place):
    """All layers on one card, with some in main memory."""
    return lambda v: v.extended(stage_layers=v.layers, flop_per_s=getattr(v, f"{place}_flop_per_s"), copy_bytes_per_s=getattr(v, f"{place}_copy_bytes_per_s"))


TP, PP, OFF = ((("arithmetic", "blue", "busy_s"), ("link", "red", "pass_s")),
               (("arithmetic", "blue", "paced_s"), ("link", "red", "handed_s"), ("fill and drain", "gray", "pipeline_s")),
               (("arithmetic", "blue", "stage_s"), ("copies", "gold", "offload_s")))
WAYS = {"tp": ("TP", None, TP), "pp1717": ("PP 17/17", _first(17.0), PP), "pp1717r": ("reversed", lambda v: _first(17.0)(a2.turned(v)), PP),
        "pp2014": ("PP 20/14", _first(20.0), PP), "yours": ("PP yours", None, PP),
        "off5080": ("5080 off.", _alone("first"), OFF), "off5060": ("5060 off.", _alone("last"), OFF)}
MEASURED = tuple(way for way in WAYS if way != "yours")


def link_slider(lo=1, hi=100):
    return Slider("link_bytes_per_s", "Link between the cards", log_texts(lo, hi, 20, start=4), "4", "GB/s", "e9")


def layers_slider(start):
    return Slider("first_layers", "Layers on the first card", linear_texts(1, MODEL.layers - 1, 1), str(start), whole=True)


def rate_slider(name, card, label):
    start = f"{CARDS[card].bf16_flop_per_s / TFLOP:.10g}"
    return Slider(name, label, log_texts(10, 500, 20, start=float(start)), start, "TFLOP/s", "e12")


def _us(name, turn=None):
    """Microseconds a token of a time of one batch."""
    return lambda v: quantity(name, turn)(v) / v.tokens / US


def _measured(way):
    return lambda v: 1e6 / getattr(v, f"measured_{way}")


def _bars(row, way):
    _, turn, parts = WAYS[way]
    ends = [0, *(_us(end, turn) for *_, end in parts)]
    labelled = {"tp": TP[:2], "pp1717": PP[2:], "off5080": OFF[1:]}.get(way, ())
    found = [bar(f"{way}-{i}", row + 0.17, start, end, part[1], part[0] if part in labelled else "", thickness=0.34)
             for i, (part, start, end) in enumerate(zip(parts, ends, ends[1:]))]
    if way in MEASURED:
        found.append(bar(f"{way}-measured", row - 0.17, 0, _measured(way), "purple", "measured" if way == "tp" else "", ghost=True, thickness=0.34))
    return found


def _speed(way):
    _, turn, parts = WAYS[way]
    return lambda v: 1e6 / _us(parts[-1][2], turn)(v)


def _row(way):
    speed, words = _speed(way), WAYS[way][0]
    if way not in MEASURED:
        return (words, ((speed, 0),), "–", "–")
    error = lambda v: 100 * (speed(v) / getattr(v, f"measured_{way}") - 1)
    return (words, ((speed, 0),), f"{{measured_{way}:0}}", ((error, 1),))


def _alone_us(place, name):
    """Microseconds a token of one part, of one card with offload."""
    return _us(name, _alone(place))


def unequal_speeds():
    """Predicted and measured time of a token for each configuration, live."""
    return Figure(
        name="unequal-speeds",
        title="Was it the card or the cable?",
        caption="Time of one token, predicted in parts, and measured below it in pale. “off.”: one card, 4 GiB in main memory.",
        controls=(
            Choice("length", "Length of a document", {f"{n} tokens": {**batch(n), **{
                f"measured_{name}": a2.measured(f"{name}_{n}") for name in MEASURED}} for n in LENGTHS}, "512 tokens"),
            link_slider(),
            Slider("mfu_frac", "Achieved fraction of the rates", linear_texts(0.6, 1, 0.01), "0.95"),
            layers_slider(YOURS),
            rate_slider("first_flop_per_s", "5080", "Rate of the RTX 5080"),
            rate_slider("last_flop_per_s", "5060", "Rate of the RTX 5060 Ti"),
            Choice("memory", "Copies from main memory", {"not pinned": a2.copies(COPIES), "pinned": a2.copies(PINNED)},
                   "not pinned"),
        ),
        constants=MACHINE,
        given=GIVEN,
        recipes=RECIPES,
        axes=(Axes("µs per token", xlim=(0, AXIS_US), ylim=(-6.6, 0.6), legend=3,
                   yticks=tuple((-i, words) for i, (words, *_) in enumerate(WAYS.values()))),),
        marks=tuple(mark for i, way in enumerate(WAYS) for mark in _bars(-i, way)),
        readouts={
            "tp": ("Tensor parallel: ", (_speed("tp"), 0), " tokens/s. Of ", (_us("pass_s"), 0), " µs a token the slower card computes ",
                   (_us("busy_s"), 0), " and the cable takes ", (_us("communication_s"), 0), ": ",
                   (lambda v: ops.where(v.communication_s > v.busy_s, 1, 0), ("more the card.", "more the cable."))),
            "pp": ("Pipeline {first_layers:0}/{second_layers:0}: ", (_speed("yours"), 0), " tokens/s, paced by the ",
                   (lambda v: ops.where(v.first_s > v.last_s, 1, 0), ("second card", "first card")),
                   "; the cable takes ", (_us("handover_s"), 1), " of ", (_us("pipeline_s"), 0), " µs."),
            "offload": ("One card with offload: the RTX 5060 Ti takes ", (_alone_us("last", "stage_s"), 0), " µs a token of arithmetic and ",
                        (_alone_us("last", "copy_s"), 0), " of its cable, the RTX 5080 ", (_alone_us("first", "stage_s"), 0), " and ",
                        (_alone_us("first", "copy_s"), 0), "."),
        },
        table=Table("Tokens a second", ("", "predicted", "measured", "error, %"), tuple(map(_row, WAYS))),
        size=(4.6, 4.6),
    )
