"""Two unequal cards on one clock: the lanes of a pipeline with its bubbles, and of tensor parallelism below."""

from ...formula import ops
from ...formula.units import GB
from ...planner.evidence import article2 as a2
from ...planner.evidence.unequal import CARDS, LINK, MODEL, batch
from ..live import Axes, Box, Figure, Label, Table, slider, steps
from .unequal import MACHINE, RECIPES, TFLOP_PER_S

TICKS, MOST = 12, 6  # moments of the clock; batches drawn
HALF = 0.3  # of a lane's height
LANES = {  # name -> row, card, colour, how far apart batches begin, when the first begins, how long each works
    "pp1": (3.3, "RTX 5080, {first_layers:0} layers", "blue", "pace_s", 0, "first_s"),
    "pp2": (2.3, "RTX 5060 Ti, {second_layers:0} layers", "green", "pace_s", "start_s", "last_s"),
    "tp1": (1.0, "RTX 5080, half of each layer", "blue", "pass_s", 0, "half_first_s"),
    "tp2": (0.0, "RTX 5060 Ti, half of each layer", "green", "pass_s", 0, "half_last_s")}
LINKED, RUNS = {"pp": ("first_s", "start_s"), "tp": ("busy_s", "pass_s")}, {"pp": "piped_s", "tp": "halved_s"}


def _read(v, name):
    return getattr(v, name) if isinstance(name, str) else name


def _drawn(name, row, begin, end, color, **more):
    """A brick of a lane, as far as the clock has come; none where the run is shorter."""
    share = lambda v, at: ops.minimum(at(v), v.now_s) / v.longest_s
    return Box(name, lambda v: share(v, begin), lambda v: share(v, end), row - HALF, row + HALF, color, **more)


def _lane(lane):
    row, words, color, pace, start, work = LANES[lane]
    run = RUNS[lane[:2]]
    yield _drawn(f"{lane}-idle", row, lambda v: 0 * v.now_s, lambda v: getattr(v, run), "gray", ghost=True)
    yield Label(f"{lane}-name", 0, row + HALF + 0.2, words, align="left")
    for i in range(MOST):
        here = lambda v, i=i: ops.minimum(i, v.batches - 1)  # what is beyond the run lies on its last batch
        at = lambda offset, here=here: lambda v: here(v) * getattr(v, pace) + _read(v, offset)
        begin, end = at(start), lambda v, at=at: at(start)(v) + getattr(v, work)
        yield _drawn(f"{lane}-{i + 1}", row, begin, end, color, ghost=True)
        middle = lambda v, begin=begin, end=end: (begin(v) + end(v)) / 2 / v.longest_s
        yield Label(f"{lane}-count-{i + 1}", middle, row, f"{{shown_{i + 1}?\N{NO-BREAK SPACE}|{i + 1}}}")
        yield _drawn(f"{lane}-link-{i + 1}", row, *map(at, LINKED[lane[:2]]), "red")


def _idle(lane):
    """The share of a run in which a card neither computes nor sends."""
    _, _, _, pace, _, work = LANES[lane]
    if lane.startswith("tp"):
        return lambda v: 100 * (v.busy_s - getattr(v, work)) / v.pass_s
    return lambda v: 100 * (1 - v.batches * (getattr(v, work) + v.handover_s) / v.piped_s)


def unequal_lanes():
    """What each of two cards does while batches pass, live."""
    return Figure(
        name="unequal-lanes", title="Who waits for whom?", size=(4.6, 4.0),
        caption="Numbered: batches of documents. Red: the link; under tensor parallelism all of a batch's all-reduces "
                "put together. Grey: a card that waits. The longer run fills the axis.",
        controls=(
            steps("clock", TICKS, TICKS, "Clock"),
            slider("first_layers", "Layers on the RTX 5080", 1, MODEL.layers - 1, MODEL.layers / 2, step=1, whole=True),
            slider("batches", "Batches, one behind the other", 1, MOST, MOST, step=1, whole=True),
            slider("link_bytes_per_s", "Link between the cards", 1, 100, LINK.link_bytes_per_s / GB, "GB/s"),
            slider("first_flop_per_s", "Rate of the RTX 5080", 10, 500, TFLOP_PER_S["5080"], "TFLOP/s")),
        presets={"17/17, as article 2 began": {}, "20/14, its best": {"first_layers": "20"},
                 "24/10, nobody's yet": {"first_layers": "24"}},
        constants=MACHINE | {name: batch(512)[name] for name in ("tokens", "sequence_tokens")} | {
            "mfu_frac": MODEL.mfu_frac, "last_flop_per_s": CARDS["5060"].bf16_flop_per_s},
        given=("busy_s",),
        recipes=RECIPES | {
            **{f"half_{end}": lambda v, end=end: a2.stages(v, MODEL.layers / 2)[end] for end in ("first_s", "last_s")},
            "pace_s": lambda v: v.paced_s + v.handover_s,
            "start_s": lambda v: v.first_s + v.handover_s,
            "piped_s": lambda v: v.batches * v.pipeline_s,
            "halved_s": lambda v: v.batches * v.pass_s,
            "longest_s": lambda v: ops.maximum(v.piped_s, v.halved_s),
            "now_s": lambda v: v.clock / TICKS * v.longest_s,
            **{f"shown_{i + 1}": lambda v, i=i: ops.where(v.batches > i, 1, 0) for i in range(MOST)},
            **{f"{lane}_idle": _idle(lane) for lane in LANES},
            "cable_percent": lambda v: 100 * v.communication_s / v.pass_s,
            "pp_rate": lambda v: v.tokens / v.pipeline_s, "tp_rate": lambda v: v.tokens / v.pass_s},
        axes=(Axes(xlim=(0, 1.01), ylim=(-0.4, 4.0), bare=True),),
        marks=tuple(mark for lane in LANES for mark in _lane(lane)),
        readouts={
            "now": "Pipeline {first_layers:0}/{second_layers:0} {piped_s:1} s, tensor parallel {halved_s:1} s.",
            "pp": "Pipeline: {pp_rate:0} tokens/s. The RTX 5080 waits {pp1_idle:0} % of the time, the RTX 5060 Ti "
                  "{pp2_idle:0} %.",
            "tp": "Tensor parallel: {tp_rate:0} tokens/s. The RTX 5080 waits {tp1_idle:0} %, and the link takes "
                  "{cable_percent:0} %. Clock: {now_s:1} s."},
        table=Table("The run", ("", "s", "tokens/s", "5080 waits, %", "5060 Ti waits, %"), (
            ("pipeline", "{piped_s:2}", "{pp_rate:0}", "{pp1_idle:0}", "{pp2_idle:0}"),
            ("tensor parallel", "{halved_s:2}", "{tp_rate:0}", "{tp1_idle:0}", "{tp2_idle:0}"))))
