"""An all-reduce hop by hop: the ring's pieces, and four ways to add up on one clock."""

from ...formula import ops
from ...formula.units import GB, US
from ...formulas.collectives import HOPS_PER_ROUND
from ..live import Axes, Box, Choice, Figure, Label, Line, Slider, Table, bar, holding, quantity, slider, steps
from .options import SHAPE, SHM, note

MOST = 4  # GPUs drawn
COLORS = ("blue", "gold", "green", "purple")  # of the pieces
WIDTH, HIGH, EDGE, GAP = 320.0, 112.0, 22.0, 30.0  # of the drawing; its margins; what an arrow crosses
AWAY = 2 * HIGH  # above the axes: not seen
NONE = "\N{NO-BREAK SPACE}"  # an empty text has no place
WAYS = {"ring": "ring", "chain": "chain", "tree": "tree", "oneshot": "all at once"}
COUNTS = {f"{n} GPUs": {"ranks": n, "levels": levels} for n, levels in ((2, 1), (3, 2), (4, 2))}
PHASES = "{phase?Before the first hop|Adding up (reduce-scatter)|Handing round (all-gather)|All sums are everywhere}"


def _held(gpu, piece):
    """How many GPUs' numbers are in this piece on this GPU by now; 0 where the GPU or the piece is not there."""
    def held(v):
        far = gpu - piece + (v.ranks if gpu < piece else 0)  # the hop at which the piece comes by to be added to
        summed = ops.where(v.at >= v.ranks + far, v.ranks, ops.where(v.at >= far, far + 1, 1))
        return ops.where(v.ranks > max(gpu, piece), summed, 0)
    return held


def _left(gpu):
    return lambda v: EDGE + ops.minimum(gpu, v.ranks) * v.pitch - ops.where(v.ranks > gpu, 0, GAP)


def _right(gpu):
    return lambda v: EDGE + ops.minimum(gpu + 1, v.ranks) * v.pitch - GAP


def _top(piece):
    return lambda v: HIGH - ops.minimum(piece, v.ranks) * v.tall


def _sent(gpu):
    """The height of the piece that this GPU sends: first its own, each hop the one before."""
    def middle(v):
        piece = gpu + 1 - v.at
        return HIGH - (piece - v.ranks * ops.floor(piece / v.ranks) + 1 / 2) * v.tall
    return middle


def _arrow(name, gpu, start, end, shown):
    """From one GPU to the next, while a hop is shown and the GPU is there."""
    seen = lambda v: ops.where(v.at > 0, ops.where(shown(v), _sent(gpu)(v), AWAY), AWAY)
    return Line(name, start, seen, end, seen, "red", arrow=True)


def _ring():
    """A column a GPU, a row a piece, filled by how many GPUs' numbers are summed in it; the last sends to the first."""
    for gpu in range(MOST):
        left, right = _left(gpu), _right(gpu)
        middle = lambda v, a=left, b=right: (a(v) + b(v)) / 2
        yield Label(f"gpu-{gpu + 1}", middle, HIGH + 10, f"{{there_{gpu + 1}?{NONE}|GPU {gpu + 1}}}")
        for piece, color in enumerate(COLORS):
            cell, held = f"{gpu + 1}-{piece + 1}", _held(gpu, piece)
            low, top = _top(piece + 1), _top(piece)
            part = lambda frac, a=low, b=top: lambda v: a(v) + frac * (b(v) - a(v))
            full = lambda v, a=left, b=right, held=held: a(v) + (b(v) - a(v)) * held(v) / v.ranks
            yield Box(f"whole-{cell}", left, right, low, top, "gray", ghost=True)
            yield Box(f"sum-{cell}", left, full, low, part(2 / 5), color)
            yield Label(f"count-{cell}", middle, part(2 / 3),
                        ((held, (NONE, *(f"{n}" for n in range(1, MOST + 1)))),), size=12)
        end = lambda v, b=right: ops.minimum(b(v) + GAP - 2, WIDTH - 2)
        yield _arrow(f"sends-{gpu + 1}", gpu, right, end, lambda v, gpu=gpu: v.ranks > gpu)
        first = lambda v, gpu=gpu: (v.ranks - gpu - 1) * (v.ranks - gpu - 1) < 1  # the last, whose piece comes in here
        yield _arrow(f"comes-{gpu + 1}", gpu, lambda v: 0, lambda v: EDGE - 2, first)


def _clock():
    """One bar a way, as far as it is when the ring has made its hop; pale, all of it. The longest fills the axis."""
    for row, (way, words) in zip((3, 2, 1, 0), WAYS.items()):
        share = lambda v, way=way: getattr(v, f"{way}_s") / v.longest_s
        done = lambda v, share=share: ops.minimum(share(v), v.now_s / v.longest_s)
        yield bar(f"all-{way}", row, 0, share, "gray", axes=1, ghost=True, thickness=0.34)
        yield bar(f"done-{way}", row, 0, done, "red", axes=1, thickness=0.34)
        yield Label(f"time-{way}", 0, row + 0.42, f"{words}: {{{way}_s/US:1}} µs", align="left", axes=1)


RECIPES = {
    "message_bytes": "allreduce_payload_bytes",
    "hops": lambda v: HOPS_PER_ROUND * (v.ranks - 1),
    "at": lambda v: ops.minimum(v.hop, v.hops),
    "phase": lambda v: ops.where(v.at < 1, 0, ops.where(v.at >= v.hops, 3, ops.where(v.at < v.ranks, 1, 2))),
    "pitch": lambda v: (WIDTH - 2 * EDGE + GAP) / v.ranks,
    "tall": lambda v: HIGH / v.ranks,
    **{f"there_{gpu + 1}": lambda v, gpu=gpu: ops.where(v.ranks > gpu, 1, 0) for gpu in range(MOST)},
    "piece_bytes": lambda v: v.message_bytes / v.ranks,
    "tree_hops": lambda v: HOPS_PER_ROUND * v.levels,
    "hop_s": lambda v: v.link_latency_s + v.piece_bytes / v.link_bytes_per_s,
    "whole_s": lambda v: v.link_latency_s + v.message_bytes / v.link_bytes_per_s,
    "oneshot_bytes": lambda v: (v.ranks - 1) * v.message_bytes,
    "now_s": lambda v: v.at * v.hop_s,
    "sent_bytes": lambda v: v.at * v.piece_bytes,
    "ring_s": quantity("allreduce_s", holding(allreduce_latency_s="ring_latency_s")),
    "chain_s": lambda v: v.hops * v.whole_s,
    "tree_s": lambda v: v.tree_hops * v.whole_s,
    "oneshot_s": quantity("oneshot_allreduce_s", holding(allreduce_latency_s="link_latency_s")),
    "longest_s": lambda v: ops.maximum(ops.maximum(v.ring_s, v.chain_s), ops.maximum(v.tree_s, v.oneshot_s))}


def allreduce_steps():
    """An all-reduce in a ring, hop by hop, and on one clock with three others."""
    return Figure(
        name="allreduce-steps", title="An all-reduce, hop by hop.", size=(4.6, 4.3),
        caption="Each GPU's tensor is cut in as many pieces as there are GPUs, one colour a piece. The number says how "
                "many GPUs' values are summed in it. Below: four ways on one clock; the longest fills the axis.",
        controls=(
            steps("hop", HOPS_PER_ROUND * (MOST - 1), 1, "Hop",
                  silent=note(lambda v: v.hop > v.hops, "the ring is done")),
            Choice("tp", "GPUs in the ring", COUNTS, "4 GPUs"),
            Slider("tokens", "Tokens in the message", tuple(str(2**i) for i in range(14)), "1", "tokens", whole=True),
            slider("link_latency_s", "Latency of one hop", 0.5, 50, SHM["allreduce_latency_s"] / 2 / US, "µs"),
            slider("link_bytes_per_s", "Achieved bandwidth of the link", 1, 400, SHM["link_bytes_per_s"] / GB, "GB/s")),
        constants={name: SHAPE[name] for name in ("hidden", "element_bytes")}, recipes=RECIPES,
        axes=(Axes(xlim=(0, WIDTH), ylim=(-1, HIGH + 18), bare=True, height=1.2),
              Axes(xlim=(0, 1.01), ylim=(-0.3, 3.7), bare=True)),
        marks=(*_ring(), *_clock()),
        readouts={
            "hop": PHASES + ": hop {at:0} of {hops:0}.",
            "sent": "Each GPU has sent {sent_bytes:0} of {allreduce_wire_bytes:0} B, in {now_s/US:1} of {ring_s/US:1} "
                    "µs. All at once takes {oneshot_s/US:1} µs."},
        table=Table("One all-reduce in four ways", ("", "hops", "B a hop", "µs a hop", "µs"), (
            ("ring", "{hops:0}", "{piece_bytes:0}", "{hop_s/US:1}", "{ring_s/US:1}"),
            ("chain", "{hops:0}", "{message_bytes:0}", "{whole_s/US:1}", "{chain_s/US:1}"),
            ("tree", "{tree_hops:0}", "{message_bytes:0}", "{whole_s/US:1}", "{tree_s/US:1}"),
            ("all at once", "1", "{oneshot_bytes:0}", "{oneshot_s/US:1}", "{oneshot_s/US:1}"))))
