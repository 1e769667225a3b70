"""Two unequal cards: memory of each stage, and where tensor or pipeline parallelism wins."""

from .. import ops
from ..catalog.unequal import CARDS, LINK, MODEL, batch
from ..evidence import article2 as a2
from ..formulas import pipeline, weights
from ..live.controls import Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Curve, Label, Line, Marker, Table
from ..units import GB, GIB, US
from .unequal import MACHINE, SHAPE, layers_slider, link_slider, rate_slider

RATIO = round(CARDS["5080"].bf16_flop_per_s / CARDS["5060"].bf16_flop_per_s, 2)
PEAKS = {17: ("vram_pp1717_0", "vram_pp1717_1"), 20: ("vram_pp2014_0", "vram_pp2014_1")}
OVER = tuple(float(n) for n in range(1, int(MODEL.layers)))
HELD = {"reported_first": CARDS["5080"].reported_bytes, "reported_last": CARDS["5060"].reported_bytes}


def _used_gib(v, layers, tables, reserve):
    return (v(weights.stage_bytes, stage_layers=layers, tables=tables) + v.overhead_bytes + reserve) / GIB


def _first_gib(v):
    return _used_gib(v, v.first_layers, 1, v.reserve_bytes)


def _last_gib(v):
    return _used_gib(v, v.layers - v.first_layers, 0, 0)


def _usable(v, place):
    reserve = v.reserve_bytes if place == "first" else 0
    return v(weights.usable_bytes, reported_bytes=getattr(v, f"reported_{place}"), reserve_bytes=reserve)


def _limit_gib(place):
    return lambda v: (_usable(v, place) + (v.reserve_bytes if place == "first" else 0)) / GIB


def _room(v, place):
    return ops.minimum(v.layers - 1, v(weights.room_layers, tables=1 if place == "first" else 0, usable_bytes=_usable(v, place)))


def _balance(v):
    return v(pipeline.balance_layers, first_flop_per_s=v.ratio * v.last_flop_per_s)


def _fastest(v):
    least = ops.maximum(1, v.layers - _room(v, "last"))
    return v(pipeline.best_first_layers, first_flop_per_s=v.ratio * v.last_flop_per_s, least_layers=least,
             most_layers=_room(v, "first"))


def _peak(index, color):
    return tuple(Marker(f"peak-{layers}-{index}", layers, a2.measured(names[index]) / 1024, color, shape="s")
                 for layers, names in PEAKS.items())


def unequal_memory():
    """Memory of both stages against the layers on the first card, live."""
    fits = lambda v: ops.where(_room(v, "first") + _room(v, "last") < v.layers, 0, 1)
    shown = lambda v: ops.where(fits(v) > 0, _fastest(v), 0 - v.layers)  # beyond the axis where no split fits
    return Figure(
        name="unequal-memory",
        title="How many layers can the first card take?",
        caption="Memory in use on each card. Squares: measured peaks at 17/17 and 20/14. Dashed: what each may hold.",
        controls=(
            layers_slider(20),
            Slider("ratio", "Speed of the first card, of the second", log_texts(0.5, 5, 40, start=RATIO), str(RATIO)),
            Slider("reserve_bytes", "Taken before the start (display)", linear_texts(0, 4, 0.1), "1.3", "GiB", factor=GIB),
            Slider("overhead_bytes", "Activations and buffers", linear_texts(0.5, 5, 0.1), "2.1", "GiB", factor=GIB),
            Slider("utilisation_frac", "Fraction the engine may take", linear_texts(0.5, 1, 0.01), "0.9"),
        ),
        constants=SHAPE | HELD | {"last_flop_per_s": CARDS["5060"].bf16_flop_per_s},
        derived={name: a2.DERIVED[name] for name in ("layer_parameters", "layer_bytes", "embedding_bytes")},
        axes=(Axes("layers on the first card", "GiB in use", (0, 34), (0, 20), legend=2),),
        marks=(
            Curve("first", "first_layers", OVER, _first_gib, "blue", "first: RTX 5080"),
            Curve("last", "first_layers", OVER, _last_gib, "green", "last: RTX 5060 Ti"),
            Line("first-limit", 0, _limit_gib("first"), 34, _limit_gib("first"), "blue", "first may hold", dashed=True),
            Line("last-limit", 0, _limit_gib("last"), 34, _limit_gib("last"), "green", "last may hold", dashed=True),
            *_peak(0, "blue"), *_peak(1, "green"),
            Line("chosen", lambda v: v.first_layers, 0, lambda v: v.first_layers, 20, "gray"),
            Line("fastest", shown, 0, shown, 20, "purple", "fastest split", dashed=True),
            Marker("first-here", lambda v: v.first_layers, _first_gib, "blue"),
            Marker("last-here", lambda v: v.first_layers, _last_gib, "green"),
        ),
        readouts={
            "here": ((lambda v: v.first_layers, 0), "/", (lambda v: v.layers - v.first_layers, 0), ": ", (_first_gib, 2), " and ",
                     (_last_gib, 2), " GiB in use; weights ", (lambda v: a2.stage_gib(v, v.first_layers, 1), 2), " and ",
                     (lambda v: a2.stage_gib(v, v.layers - v.first_layers), 2), " GiB."),
            "room": ("Room for ", (lambda v: _room(v, "first"), 0), " layers on the first card and ",
                     (lambda v: _room(v, "last"), 0), " on the second", (fits, (
                         ": too few.", (". Fastest in a long run: ", (_fastest, 0), "/", (lambda v: v.layers - _fastest(v), 0), ".")))),
            "balance": ("Both cards would work equally long at ", (_balance, 1), "/", (lambda v: v.layers - _balance(v), 1), "."),
        },
        table=Table("GiB on each card", ("", "first", "last"), (
            ("weights", ((lambda v: a2.stage_gib(v, v.first_layers, 1), 2),), ((lambda v: a2.stage_gib(v, v.layers - v.first_layers), 2),)),
            ("in use", ((_first_gib, 2),), ((_last_gib, 2),)),
            ("may hold", ((_limit_gib("first"), 2),), ((_limit_gib("last"), 2),)),
            ("layers that fit", ((lambda v: _room(v, "first"), 0),), ((lambda v: _room(v, "last"), 0),)),
        )),
        size=(4.6, 3.2),
    )


# --- which of the two wins -----------------------------------------------------------------------

RATIOS = tuple(float(f"{0.5 * 2 ** (i / 40):.4g}") for i in range(121))
NO_LINK = 1e6  # GB/s, far beyond the axis: no link lets tensor parallelism win


def _paired(v):
    return v.extended(first_flop_per_s=v.ratio * v.last_flop_per_s)


def _meeting_gb(v, stages):
    here = _paired(v)
    found = here(pipeline.meeting_bytes_per_s, even_s=a2.even_s(here), **stages(here)) / GB
    return ops.where(found > 0, found, NO_LINK)


def _even(v):
    return a2.stages(v, v.layers / 2)


def _balanced(v):
    """Both stages equally long, as if layers could be cut: the cards share the arithmetic by their rates."""
    stage_s = a2.stage_s(v, v.layers, v.first_flop_per_s + v.last_flop_per_s)
    return {"first_s": stage_s, "last_s": stage_s}


def _yours(v):
    return a2.stages(v, v.first_layers)


def _rates(v):
    here = _paired(v)
    return a2.speed(here, a2.tensor_parallel_s), a2.speed(here, lambda w: a2.pipeline_s(w, w.first_layers))


def _times(v):
    """Microseconds a token: (arithmetic, cable) of tensor parallelism, then of the pipeline."""
    here = _paired(v)
    even, total = a2.even_s(here), a2.pipeline_s(here, here.first_layers)
    found = even, a2.tensor_parallel_s(here) - even, total - here.transfer_s, here.transfer_s
    return [seconds / v.tokens / US for seconds in found]


def _cell(i, decimals=1):
    return ((lambda v: _times(v)[i], decimals),)


def unequal_map():
    """Link bandwidth against speed ratio: which of TP and PP wins, live."""
    curve = lambda name, stages, color, label, dashed=False: Curve(
        name, "ratio", RATIOS, lambda v: v.ratio, color, label, x=lambda v: _meeting_gb(v, stages), dashed=dashed)
    meets = lambda v: _meeting_gb(v, _yours)
    return Figure(
        name="unequal-map",
        title="Tensor or pipeline parallel?",
        caption="Right of a curve tensor parallelism is faster than a pipeline split that way, left of it the pipeline is.",
        controls=(
            link_slider(1, 1000),
            Slider("ratio", "Speed of the first card, of the second", log_texts(0.5, 4, 40, start=RATIO), str(RATIO)),
            layers_slider(20),
            Slider("batches", "Batches in a run", tuple(str(2**i) for i in range(11)), "16", whole=True),
            rate_slider("last_flop_per_s", "5060", "Rate of the second card"),
        ),
        constants=MACHINE | batch(512) | {"mfu_frac": MODEL.mfu_frac},
        derived={name: a2.DERIVED[name] for name in ("layer_parameters", "layer_flop", "message_bytes", "allreduces",
                                                     "transfer_s")},
        axes=(Axes("link, GB/s", "first card / second", (1, 1000), (0.5, 4), xlog=True, ylog=True, legend=2,
                   xticks=((1, "1"), (10, "10"), (100, "100"), (1000, "1000")),
                   yticks=((0.5, "½"), (1, "1"), (2, "2"), (4, "4"))),),
        marks=(
            curve("even", _even, "gray", "even split", dashed=True),
            curve("balanced", _balanced, "green", "balanced split"),
            curve("yours", _yours, "blue", "your split"),
            Marker("article", LINK.link_bytes_per_s / GB, RATIO, "gold", "article 2", shape="s"),
            Marker("here", lambda v: v.link_bytes_per_s / GB, lambda v: v.ratio, "red", "you"),
            Label("pp", 2.2, 3.3, ("pipeline",)),
            Label("tp", 330, 0.6, ("tensor",)),
        ),
        readouts={
            "here": ("Tensor parallel ", (lambda v: _rates(v)[0], 0), " tokens/s, pipeline ", (lambda v: v.first_layers, 0), "/",
                     (lambda v: v.layers - v.first_layers, 0), " ", (lambda v: _rates(v)[1], 0), ": ",
                     (lambda v: ops.where(_rates(v)[0] > _rates(v)[1], 1, 0), ("the pipeline wins.", "tensor parallelism wins."))),
            "meeting": ((lambda v: ops.where(meets(v) < NO_LINK, 1, 0), (
                "No link lets tensor parallelism win against this split.", ("The two meet at a link of ", (meets, 0), " GB/s."))),),
        },
        table=Table("One token, µs", ("", "tensor", "pipeline"), (
            ("arithmetic, fill and drain", _cell(0), _cell(2)), ("cable", _cell(1), _cell(3)))),
        size=(4.6, 3.4),
    )
