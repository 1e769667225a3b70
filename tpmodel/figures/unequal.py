"""Two unequal cards: the time of a token, predicted beside measured."""

from .. import ops
from ..catalog.unequal import CARDS, COPIES, LINK, MODEL, PINNED, batch
from ..evidence import article2 as a2
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Table, bar
from ..units import TFLOP, US

AXIS_US = 550
LENGTHS = (64, 512, 2048, 8192)
SHAPE = {name: getattr(MODEL, name) for name in ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_elements",
                                                 "vocabulary", "element_bytes", "loaded_extra_bytes")}
MACHINE = SHAPE | {"ranks": 2, "tables": 1, "allreduce_latency_s": LINK.allreduce_latency_s}
NAMES = ("tp", "pp1717", "pp1717r", "pp2014", "off5080", "off5060")
YOURS = 24
ROWS = {"tp": "TP", "pp1717": "PP 17/17", "pp1717r": "reversed", "pp2014": "PP 20/14", "yours": "PP yours",
        "off5080": "5080 off.", "off5060": "5060 off."}


def link_slider(lo=1, hi=100):
    return Slider("link_bytes_per_s", "Link between the cards", log_texts(lo, hi, 20, start=4), "4", "GB/s", "e9")


def layers_slider(start):
    return Slider("first_layers", "Layers on the first card", linear_texts(1, MODEL.layers - 1, 1), str(start), whole=True)


def rate_slider(name, card, label):
    start = f"{CARDS[card].bf16_flop_per_s / TFLOP:.10g}"
    return Slider(name, label, log_texts(10, 500, 20, start=float(start)), start, "TFLOP/s", "e12")


def _pipeline(at, first):
    """(arithmetic, link, copies, fill and drain) of one batch, in seconds."""
    def parts(v):
        here = at(v)
        both = a2.stages(here, first(here))
        pair = both["first_s"], both["last_s"]
        return ops.maximum(*pair), here.transfer_s, 0, ops.minimum(*pair) / here.batches
    return parts


def _same(v):
    return v


PARTS = {
    "tp": lambda v: (a2.even_s(v), a2.tensor_parallel_s(v) - a2.even_s(v), 0, 0),
    "pp1717": _pipeline(_same, lambda v: 17),
    "pp1717r": _pipeline(a2.turned, lambda v: 17),
    "pp2014": _pipeline(_same, lambda v: 20),
    "yours": _pipeline(_same, lambda v: v.first_layers),
    **{f"off{card}": (lambda v, c=card: (a2.alone_s(v, c), 0, a2.copy_s(v, c), 0)) for card in CARDS},
}
KINDS = (("arithmetic", "blue", "tp"), ("link", "red", "tp"), ("copies", "gold", "off5080"), ("fill and drain", "gray", "pp1717"))
NOTHING = {"tp": (2, 3), "off5080": (1, 3), "off5060": (1, 3)}  # parts that a configuration does not have


def _us(name, upto):
    """Microseconds a token of the first `upto` parts."""
    def total(v):
        found = 0
        for part in PARTS[name](v)[:upto]:
            found = found + part
        return found / v.tokens / US
    return total


def _speed(name):
    return lambda v: 1e6 / _us(name, 4)(v)


def _measured_us(name):
    return lambda v: 1e6 / getattr(v, f"measured_{name}")


def _bars(row, name):
    found = [bar(f"{name}-{i}", row + 0.17, _us(name, i) if i else 0, _us(name, i + 1), color,
                 label=kind if name == labelled else "", thickness=0.34)
             for i, (kind, color, labelled) in enumerate(KINDS) if i not in NOTHING.get(name, (2,))]
    if name in NAMES:
        found.append(bar(f"{name}-measured", row - 0.17, 0, _measured_us(name), "purple", "measured" if name == "tp" else "",
                         ghost=True, thickness=0.34))
    return found


def _table_row(name, words):
    if name not in NAMES:
        return (words, ((_speed(name), 0),), "–", "–")
    error = lambda v: 100 * (_speed(name)(v) / getattr(v, f"measured_{name}") - 1)
    return (words, ((_speed(name), 0),), (((lambda v: getattr(v, f"measured_{name}")), 0),), ((error, 1),))


def _part(name, index):
    return lambda v: PARTS[name](v)[index] / v.tokens / US


def _more(index):
    """How much longer the RTX 5060 Ti takes than the RTX 5080 with offload, by one part."""
    return lambda v: _part("off5060", index)(v) - _part("off5080", index)(v)


def unequal_speeds():
    """Predicted and measured time of a token for each configuration, live."""
    rows = {name: -i for i, name in enumerate(ROWS)}
    more = lambda v: _more(0)(v) + _more(2)(v)
    return Figure(
        name="unequal-speeds",
        title="Was it the card or the cable?",
        caption="Time of one token, predicted in parts, and measured below it in pale. “off.”: one card, 4 GiB in main memory.",
        controls=(
            Choice("length", "Length of a document", {f"{n} tokens": {**batch(n), **{
                f"measured_{name}": a2.measured(f"{name}_{n}") for name in NAMES}} for n in LENGTHS}, "512 tokens"),
            link_slider(),
            Slider("mfu_frac", "Achieved fraction of the rates", linear_texts(0.6, 1, 0.01), "0.95"),
            layers_slider(YOURS),
            rate_slider("first_flop_per_s", "5080", "Rate of the RTX 5080"),
            rate_slider("last_flop_per_s", "5060", "Rate of the RTX 5060 Ti"),
            Choice("memory", "Copies from main memory", {"not pinned": a2.copies(COPIES), "pinned": a2.copies(PINNED)},
                   "not pinned"),
        ),
        constants=MACHINE,
        derived=a2.DERIVED,
        axes=(Axes("µs per token", xlim=(0, AXIS_US), ylim=(-6.6, 0.6), legend=3,
                   yticks=tuple((-i, words) for i, words in enumerate(ROWS.values()))),),
        marks=tuple(mark for name, row in rows.items() for mark in _bars(row, name)),
        readouts={
            "tp": ("Tensor parallel: ", (_speed("tp"), 0), " tokens/s. Of ", (_us("tp", 4), 0), " µs a token the slower card computes ",
                   (_part("tp", 0), 0), " and the cable takes ", (_part("tp", 1), 0), ": ",
                   (lambda v: ops.where(_part("tp", 1)(v) > _part("tp", 0)(v), 1, 0), ("more the card.", "more the cable."))),
            "pp": ("Pipeline ", (lambda v: v.first_layers, 0), "/", (lambda v: v.layers - v.first_layers, 0), ": ",
                   (_speed("yours"), 0), " tokens/s, paced by the ",
                   (lambda v: ops.where(a2.stages(v, v.first_layers)["first_s"] > a2.stages(v, v.first_layers)["last_s"], 1, 0),
                    ("second card", "first card")), "; the cable takes ", (_part("yours", 1), 1), " of ", (_us("yours", 4), 0), " µs."),
            "offload": ("One card with offload: the RTX 5060 Ti takes ", (lambda v: ops.where(more(v) < 0, 0, ops.where(_more(0)(v) < 0, 1, 2)), (
                ((lambda v: 0 - more(v), 0), " µs less than the RTX 5080."),
                ((more, 0), " µs longer than the RTX 5080, because of its cable alone."),
                ((more, 0), " µs longer than the RTX 5080, ", (_more(0), 0), " by its arithmetic and ", (_more(2), 0), " by its cable.")))),
        },
        table=Table("Tokens a second", ("", "predicted", "measured", "error, %"),
                    tuple(_table_row(name, words) for name, words in ROWS.items())),
        size=(4.6, 4.6),
    )
