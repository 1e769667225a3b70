"""The largest context to the block, by vLLM's own rules: what one sequence needs, what the pool holds."""

from ...formula import ops
from ...formula.units import GIB
from ...formulas import blocks as rules
from ...planner.engine.versions import version
from ...planner.evidence.articles import GPU, MODEL, OVERHEAD, UTILISATION_FRAC
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Line, Table, bar, quantity, rows
from .options import AS_COUNTED, BUILD_GB, CONFIG, DRIVER, KV_DTYPES, NOMINAL, TP, note

INPUT_BYTES = 2  # the convolution's inputs are BF16
OVERHEADS = OVERHEAD.base_range
CARDS = {NOMINAL: {"vram_bytes": GPU.vram_bytes}, DRIVER: {"vram_bytes": GPU.reported_bytes}} | {
    f"{gib} GiB": {"vram_bytes": gib * GIB} for gib in (24, 32)}
WORDS = ("low", "mid", "high")
AXIS_BLOCKS = 400


def engine(text):
    """What differs between two versions of vLLM for this model."""
    step = version(text).gdn_step
    return {"step_tokens": step, "checkpoints": int(step > 16)}


def shape():
    """What the rules need of the hybrid beside its attention layers, and what vLLM starts with."""
    state = next(layer.state for layer in CONFIG.order if layer.state)
    return {
        "value_heads": state.value_heads, "value_elements": state.value_elements, "key_heads": state.key_heads,
        "key_elements": state.key_elements, "state_element_bytes": state.element_bytes, "convolution": state.convolution,
        "state_layers": CONFIG.kinds["state"], "element_bytes": INPUT_BYTES, "kv_scale_bytes": 0, "block_tokens": 16, "cached": 1, "null_blocks": 1}


def _group(v):
    """Layers of a group: those of the rarer kind, or of the other where it is not half as many again."""
    few, many = (pick(v.growing_layers, v.state_layers) for pick in (ops.minimum, ops.maximum))
    return ops.where(many < 1.5 * few, many, few)


BLOCKS = {
    "value_head_elements": "head_elements",
    "growing_layers": lambda v: v.full_layers + ops.where(v.drafts > 0, 1, 0),  # the MTP layer is one more
    "group_layers": _group,
    "full_groups": lambda v: ops.ceil(v.growing_layers / v.group_layers),
    "block_bytes": lambda v: v.aligned_block_tokens * v.layer_bytes_per_token * v.group_layers,
    "fixed_blocks": lambda v: ops.ceil(v.state_layers / v.group_layers) * v.state_blocks,
    "request_blocks": lambda v: v.fixed_blocks + v.full_groups * v(rules.full_blocks, block_tokens=v.aligned_block_tokens),
    "wanted_blocks": lambda v: v.request_blocks + v.null_blocks,
    "startable_tokens": lambda v: v(rules.fitting_tokens, block_tokens=v.aligned_block_tokens),
}
"""The blocks of one sequence and of the pool, in any figure that holds `shape()` and an `engine`."""


def at(overhead):
    """A function that gives any view another overhead."""
    return lambda v: v.extended(overhead_bytes=overhead)


LOW, MIDDLE, HIGH = ENDS = tuple(map(at, OVERHEADS))


NO_ROOM = note(lambda v: LOW(v).pool_blocks < 1, "no memory is left for a block")


def context_blocks():
    """The figure, live."""
    pools = [quantity("pool_blocks", end) for end in ENDS]
    return Figure(
        name="context-blocks",
        title="Will it start? Counted in blocks.",
        caption="Bars: blocks of the pool, for a low, middle and high overhead. The line: what one sequence of this context needs, "
                "and the null block.",
        controls=(
            Choice("card", "Memory of a GPU", CARDS, NOMINAL, NO_ROOM),
            Slider("utilisation_frac", "Fraction the engine may take", linear_texts(0.8, 1, 0.01, start=UTILISATION_FRAC), "0.92", silent=NO_ROOM),
            Slider("weights_bytes", "Weights, all GPUs", log_texts(10, 80, 40, start=(20, BUILD_GB)), "20", "GB", "e9", silent=NO_ROOM),
            Choice("kv_dtype", "KV cache stored as", KV_DTYPES, "FP8"),
            Choice("mtp", "Tokens drafted by the MTP layer", {str(n): {"drafts": n} for n in (0, 1, 2, 3)}, "0"),
            Slider("context_tokens", "Context wanted", linear_texts(8192, 262144, 4096), "262144", "tokens"),
            Choice("tp", "Split over", {words: TP[words] for words in ("1 GPU", "2 GPUs", "4 GPUs")}, "2 GPUs", NO_ROOM),
            Choice("engine", "Engine", {f"vLLM {text}": engine(text) for text in ("0.32", "0.33")}, "vLLM 0.32"),
        ),
        presets={"article 1: 20 GB, nominal 16 GiB; vLLM 0.32": {},
                 AS_COUNTED: {"card": DRIVER, "weights_bytes": BUILD_GB, "engine": "vLLM 0.33"}},
        constants=shape() | {"kv_heads": MODEL.kv_heads, "head_elements": MODEL.head_elements, "full_layers": MODEL.full_layers,
                             "native_tokens": MODEL.native_tokens},
        recipes=BLOCKS | {
            "longest_tokens": lambda v: ops.minimum(v.startable_tokens, v.native_tokens),
            "spare_blocks": lambda v: v.pool_blocks - v.wanted_blocks,  # below zero the engine refuses
            "starts": lambda v: ops.where(MIDDLE(v).spare_blocks < 0, 0, 1),
            **{f"{words}_tokens": lambda v, end=end: end(v).longest_tokens for words, end in zip(WORDS, ENDS)},
            "mid_blocks": lambda v: MIDDLE(v).pool_blocks,
        },
        axes=(Axes("blocks", xlim=(0, AXIS_BLOCKS), ylim=(-2.6, 0.6), legend=2,
                   yticks=tuple((-i, f"{words}: {o / GIB:.1f} GiB") for i, (words, o) in enumerate(zip(WORDS, OVERHEADS)))),),
        marks=tuple(bar(f"pool-{words}", -i, 0, pool, "green", "" if i else "blocks of the pool")
                    for i, (words, pool) in enumerate(zip(WORDS, pools)))
        + (Line("needed", "wanted_blocks", -2.6, "wanted_blocks", 0.6, "red", "needed", dashed=True),),
        readouts={
            "verdict": "{starts?Refused|Starts} at the middle overhead: {request_blocks:0} blocks and the null block needed, {mid_blocks:0} there.",
            "longest": "Largest context {mid_tokens:0} tokens ({high_tokens:0} to {low_tokens:0} by the overhead). "
                       "A block holds {aligned_block_tokens:0} tokens.",
        },
        table=Table("By overhead", ("", *(f"{words}, {o / GIB:.1f} GiB" for words, o in zip(WORDS, OVERHEADS))), rows(
            ENDS,
            ("blocks of the pool", "{pool_blocks:0}"),
            ("needed, with the null block", "{wanted_blocks:0}"),
            ("to spare", "{spare_blocks:0}"),
            ("largest context, tokens", "{longest_tokens:0}"),
        )),
    )
