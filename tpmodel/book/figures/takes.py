"""What an engine takes of a card beside weights and cache, part by part."""

from ...catalog.assumptions import assumed
from ...formula import ops
from ...planner.engine.takes import sizes
from ...planner.plan import overhead
from ..live import Axes, Choice, Figure, Line, Table, bar, rows, slider, stack
from .options import AS_COUNTED, PLANNED, gpus

BEHIND = overhead.of_plan(PLANNED).behind  # the view of one card of the article's pair
ONE, SHARED = (assumed(key).buffers_bytes for key in ("vllm", "vllm-tensor-parallel"))
COUNTS = sorted({1, 4, 16, 64, 256, 1024, PLANNED.best.at_once or 256})
TOWER = {"vision tower profiled": {"tower": 1}, "text only": {"tower": 0}}
KEPT = (("buffers", "gray", "kernels, buffers"), ("counts", "gold", "penalty counters"),
        ("graph", "blue", "CUDA graphs"), ("peak", "red", "largest peak"))
PEAKS = (("working", "activations"), ("sampler", "logits, sampler"), ("vision", "vision tower"))
OWN = ("ranks", "sequences", "graph_sizes", "batch_tokens", "buffers_bytes", "patches")  # what the controls set

RECIPES = {
    "buffers_bytes": lambda v: ops.where(v.ranks > 1, SHARED, ONE),
    "patches": lambda v: v.tower * v.most_patches,
    "working_bytes": lambda v: v.forward_bytes + v.compile_bytes,
    "counts_end": lambda v: v.buffers_bytes + v.counts_bytes,
    "graph_end": lambda v: v.counts_end + v.graph_bytes,
    "longest": lambda v: ops.where(v.vision_bytes >= v.peak_bytes, 2, ops.where(v.sampler_bytes >= v.peak_bytes, 1, 0))}
ENDS = [f"{end}/GIB" for end in ("buffers_bytes", "counts_end", "graph_end", "parts_bytes")]


def engine_takes():
    """The figure, live."""
    at_once, tokens = PLANNED.best.at_once or 256, int(BEHIND.batch_tokens)
    return Figure(
        name="engine-takes", title="What does an engine take?",
        caption="Top bar: all that it takes of one card beside weights and cache. Below: three peaks, which do not "
                "exist at one time; the longest counts.",
        controls=(
            Choice("sequences", "Sequences at once (--max-num-seqs)", {
                f"{n:,}": {"sequences": n, "graph_sizes": sizes(n, 0, tokens)} for n in COUNTS}, f"{at_once:,}"),
            Choice("tower", "Pictures", TOWER, "vision tower profiled"),
            slider("batch_tokens", "Tokens of a pass (--max-num-batched-tokens)", 512, 65536, tokens, "tokens",
                   per_decade=10),
            gpus()),
        presets={AS_COUNTED: {}, "a few users, text only": {"sequences": "4", "tower": "text only"}},
        constants={name: getattr(BEHIND, name) for name in BEHIND.names() if name not in OWN}
        | {"most_patches": BEHIND.patches},
        recipes=RECIPES, given=("buffers_bytes",),
        axes=(Axes("GiB on one card", xlim=(0, 6), ylim=(-4.6, 0.6), legend=2, yticks=(
            (0, "in all"), *((-1.2 - i, label) for i, (_, label) in enumerate(PEAKS)))),),
        marks=(*stack(0, [(*part, end) for part, end in zip(KEPT, ENDS)]),
               *(bar(f"peak-{name}", -1.2 - i, 0, f"{name}_bytes/GIB", "red") for i, (name, _) in enumerate(PEAKS)),
               Line("all", "parts_bytes/GIB", -4.6, "parts_bytes/GIB", 0.6, "text", "in all", dashed=True)),
        readouts={"all": "The engine takes {parts_bytes/GIB:2} GiB of each card beside weights and cache. The largest "
                         "peak is of {longest?the activations|logits and sampler|the vision tower}: "
                         "{peak_bytes/GIB:2} GiB."},
        table=Table("GiB on one card", ("", "yours"), rows(
            (None,), *((label, f"{{{name}_bytes/GIB:2}}") for name, _, label in KEPT),
            *((f"peak: {label}", f"{{{name}_bytes/GIB:2}}") for name, label in PEAKS),
            ("in all", "{parts_bytes/GIB:2}"))))
