"""Two unequal cards: memory of each stage, and where tensor or pipeline parallelism wins."""

from ...formula import ops
from ...formula.units import GB, US
from ...planner.evidence import article2 as a2
from ...planner.evidence.unequal import CARDS, LINK, MODEL, batch
from ..live import Axes, Curve, Figure, Label, Line, Marker, Slider, Table, holding, quantity, slider
from .options import share
from .unequal import MACHINE, RECIPES, SHAPE, TFLOP_PER_S

RATIO = round(CARDS["5080"].bf16_flop_per_s / CARDS["5060"].bf16_flop_per_s, 2)
OVER = tuple(float(n) for n in range(1, int(MODEL.layers)))
HELD = {"reported_first": CARDS["5080"].reported_bytes, "reported_last": CARDS["5060"].reported_bytes,
        "last_flop_per_s": CARDS["5060"].bf16_flop_per_s}
PAIRED = {"first_flop_per_s": lambda v: v.ratio * v.last_flop_per_s}

STAGES = {  # what each card holds: its layers; the first the embedding table and the display, too
    "first": holding(stage_layers="first_layers", tables=1.0, reported_bytes="reported_first"),
    "last": holding(stage_layers="second_layers", tables=0.0, reported_bytes="reported_last", reserve_bytes=0.0)}
BOTH = (("first", "blue", "5080"), ("last", "green", "5060 Ti"))


def unequal_memory():
    """Memory of both stages against the layers on the first card, live."""
    return Figure(
        name="unequal-memory", title="How many layers can the first card take?", size=(4.6, 3.2),
        caption="Memory in use on each card. Squares: measured peaks at 17/17 and 20/14. Dashed: what each may hold.",
        controls=(
            slider("first_layers", "Layers on the first card", 1, MODEL.layers - 1, 20, step=1, whole=True),
            slider("ratio", "Speed of the first card, of the second", 0.5, 5, RATIO, per_decade=40),
            slider("reserve_bytes", "Taken before the start (display)", 0, 4, 1.3, "GiB", step=0.1),
            slider("overhead_bytes", "Activations and buffers", 0.5, 5, 2.1, "GiB", step=0.1),
            share(0.5, 0.9)),
        constants=SHAPE | HELD,
        recipes=PAIRED | {
            "second_layers": RECIPES["second_layers"],
            "in_use_bytes": lambda v: v.stage_bytes + v.overhead_bytes + v.reserve_bytes,
            "limit_bytes": lambda v: v.usable_bytes + v.reserve_bytes,
            "room": lambda v: ops.minimum(v.layers - 1, v.room_layers),
            **{f"{stage}_{name}": quantity(name, at) for stage, at in STAGES.items()
               for name in ("in_use_bytes", "limit_bytes", "stage_bytes", "room")},
            "most_layers": "first_room",
            "least_layers": lambda v: ops.maximum(1, v.layers - v.last_room),
            "fit": lambda v: ops.where(v.first_room + v.last_room < v.layers, 0, 1),
            "best_layers": lambda v: ops.where(v.fit > 0, v.best_first_layers, v.layers),
            "best_second_layers": lambda v: v.layers - v.best_layers,
            "shown_layers": lambda v: ops.where(v.fit > 0, v.best_first_layers, 0 - v.layers),  # none: beyond the axis
            "balance_second": lambda v: v.layers - v.balance_layers},
        axes=(Axes("layers on the first card", "GiB in use", (0, 34), (0, 20), legend=2),),
        marks=(
            *(Curve(stage, "first_layers", OVER, f"{stage}_in_use_bytes/GIB", color, f"{stage}: RTX {model}")
              for stage, color, model in BOTH),
            *(Line(f"{stage}-limit", 0, f"{stage}_limit_bytes/GIB", 34, f"{stage}_limit_bytes/GIB", color,
                   f"{stage} may hold", dashed=True) for stage, color, _ in BOTH),
            *(Marker(f"peak-{layers}-{i}", layers, a2.measured(f"vram_{way}_{i}") / 1024, color, shape="s")
              for i, (_, color, _) in enumerate(BOTH) for layers, way in ((17, "pp1717"), (20, "pp2014"))),
            Line("chosen", "first_layers", 0, "first_layers", 20, "gray"),
            Line("fastest", "shown_layers", 0, "shown_layers", 20, "purple", "fastest split", dashed=True),
            *(Marker(f"{stage}-here", "first_layers", f"{stage}_in_use_bytes/GIB", color) for stage, color, _ in BOTH)),
        readouts={
            "here": "{first_layers:0}/{second_layers:0}: {first_in_use_bytes/GIB:2} and {last_in_use_bytes/GIB:2} GiB "
                    "in use; weights {first_stage_bytes/GIB:2} and {last_stage_bytes/GIB:2} GiB.",
            "room": "Room for {first_room:0} layers on the first card and {last_room:0} on the second"
                    "{fit?: too few for |. Fastest in a long run: }{best_layers:0}/{best_second_layers:0}.",
            "balance": "Both cards would work equally long at {balance_layers:1}/{balance_second:1}."},
        table=Table("GiB on each card", ("", "first", "last"), tuple(
            (words, f"{{first_{name}}}", f"{{last_{name}}}") for words, name in (
                ("weights", "stage_bytes/GIB:2"), ("in use", "in_use_bytes/GIB:2"),
                ("may hold", "limit_bytes/GIB:2"), ("layers that fit", "room:0")))))


# --- which of the two wins -----------------------------------------------------------------------

RATIOS = tuple(float(f"{0.5 * 2 ** (i / 40):.4g}") for i in range(121))
NO_LINK = 1e6  # GB/s, far beyond the axis: no link lets tensor parallelism win


def balanced(v):
    """Both stages equally long, as if layers could be cut: the cards share the arithmetic by their rates."""
    stage_s = a2.stage_s(v, v.layers, v.first_flop_per_s + v.last_flop_per_s)
    return v.extended(first_s=stage_s, last_s=stage_s)


def unequal_map():
    """Link bandwidth against speed ratio: which of TP and PP wins, live."""
    curve = lambda name, turn, color, label, dashed=False: Curve(
        name, "ratio", RATIOS, "ratio", color, label, x=quantity("meeting_gb", turn), dashed=dashed)
    return Figure(
        name="unequal-map", title="Tensor or pipeline parallel?", size=(4.6, 3.4),
        caption="Right of a curve tensor parallelism is faster than a pipeline split that way, "
                "left of it the pipeline is.",
        controls=(
            slider("link_bytes_per_s", "Link between the cards", 1, 1000, 4, "GB/s"),
            slider("ratio", "Speed of the first card, of the second", 0.5, 4, RATIO, per_decade=40),
            slider("first_layers", "Layers on the first card", 1, MODEL.layers - 1, 20, step=1, whole=True),
            Slider("batches", "Batches in a run", tuple(str(2**i) for i in range(11)), "16", whole=True),
            slider("last_flop_per_s", "Rate of the second card", 10, 500, TFLOP_PER_S["5060"], "TFLOP/s")),
        constants=MACHINE | batch(512) | {"mfu_frac": MODEL.mfu_frac}, given=("busy_s",),
        recipes=RECIPES | PAIRED | {
            "even_s": "busy_s",
            "unhanded_us": lambda v: (v.pipeline_s - v.handover_s) / v.tokens / US,
            "meeting_gb": lambda v: ops.where(v.meeting_bytes_per_s > 0, v.meeting_bytes_per_s / GB, NO_LINK),
            "meets": lambda v: ops.where(v.meeting_gb < NO_LINK, 1, 0),
            "tensor_tokens_per_s": lambda v: v.tokens / v.pass_s,
            "pipeline_tokens_per_s": lambda v: v.tokens / v.pipeline_s,
            "tensor_wins": lambda v: ops.where(v.tensor_tokens_per_s > v.pipeline_tokens_per_s, 1, 0)},
        axes=(Axes("link, GB/s", "first card / second", (1, 1000), (0.5, 4), xlog=True, ylog=True, legend=2,
                   xticks=((1, "1"), (10, "10"), (100, "100"), (1000, "1000")),
                   yticks=((0.5, "½"), (1, "1"), (2, "2"), (4, "4"))),),
        marks=(
            curve("even", holding(first_layers=lambda v: v.layers / 2), "gray", "even split", dashed=True),
            curve("balanced", balanced, "green", "balanced split"),
            curve("yours", None, "blue", "your split"),
            Marker("article", LINK.link_bytes_per_s / GB, RATIO, "gold", "article 2", shape="s"),
            Marker("here", "link_bytes_per_s/GB", "ratio", "red", "you"),
            Label("pp", 2.2, 3.3, ("pipeline",)),
            Label("tp", 330, 0.6, ("tensor",))),
        readouts={
            "here": "Tensor parallel {tensor_tokens_per_s:0} tokens/s, pipeline {first_layers:0}/{second_layers:0} "
                    "{pipeline_tokens_per_s:0}: {tensor_wins?the pipeline wins.|tensor parallelism wins.}",
            "meeting": "{meets?No link lets tensor parallelism win against this split, not even |"
                       "The two meet at a link of }{meeting_gb:0} GB/s."},
        table=Table("One token, µs", ("", "tensor", "pipeline"), (
            ("arithmetic, fill and drain", "{busy_us:1}", "{unhanded_us:1}"),
            ("cable", "{communication_us:1}", "{handover_us:1}"))))
