"""The largest context to the block, by vLLM's own rules: what one sequence needs, what the pool holds."""

from ...formula import ops
from ...formula.units import GIB
from ...formulas import blocks as rules
from ...planner.engine.versions import version
from ...planner.evidence.articles import MODEL
from ..live import Axes, Choice, Figure, Line, Table, bar, holding, rows, slider
from .cells import AXES, cells
from .options import (
    AS_COUNTED, BUILD_GB, CARDS, CONFIG, DRIVER, NOMINAL, OUR_RANGE, cache_format, gpus, note, overhead_range, share)

STATE = next(layer.state for layer in CONFIG.order if layer.state)
HYBRID = {
    "value_heads": STATE.value_heads, "value_elements": STATE.value_elements, "key_heads": STATE.key_heads,
    "key_elements": STATE.key_elements, "state_element_bytes": STATE.element_bytes, "convolution": STATE.convolution,
    "state_layers": CONFIG.kinds["state"], "element_bytes": 2,  # the convolution's inputs are BF16
    "kv_scale_bytes": 0, "block_tokens": 16, "cached": 1, "null_blocks": 1}
"""What the rules need of the hybrid beside its attention layers, and what vLLM starts with."""


def engine(text):
    """What differs between two versions of vLLM for this model."""
    step = version(text).gdn_step
    return {"step_tokens": step, "checkpoints": int(step > 16)}


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
    "request_blocks": lambda v:
        v.fixed_blocks + v.full_groups * v(rules.full_blocks, block_tokens=v.aligned_block_tokens),
    "wanted_blocks": lambda v: v.request_blocks + v.null_blocks,
    "startable_tokens": lambda v: v(rules.fitting_tokens, block_tokens=v.aligned_block_tokens)}
"""The blocks of one sequence and of the pool, in any figure that holds HYBRID and an `engine`."""

ENDS = {words: holding(overhead_bytes=f"{words}_overhead_bytes") for words in ("low", "mid", "high")}
NO_ROOM = note(lambda v: ENDS["low"](v).pool_blocks < 1, "no memory is left for a block")


CELLS, COUNTED_CELLS = cells((
    ("state", "purple", "state", "state_end"), ("cache", "green", "cache", "cache_end"),
    ("null", "gold", "null block", "null_end"), ("spare", "gray", "to spare", "spare_end"),
    ("missing", "red", "missing", "missing_end")), "One cell: {per_cell:0} {several?block|blocks}, middle overhead")
COUNTED_CELLS |= {
    **{f"{part}_end": lambda v, end=end: ops.minimum(getattr(v, end), v.mid_blocks) for part, end in (
        ("state", "fixed_blocks"), ("cache", "request_blocks"), ("null", "wanted_blocks"))},
    "spare_end": "mid_blocks", "missing_end": lambda v: ops.maximum(v.mid_blocks, v.wanted_blocks),
    "several": lambda v: ops.where(v.per_cell > 1, 1, 0)}


def context_blocks():
    """The figure, live."""
    return Figure(
        name="context-blocks", title="Will it start? Counted in blocks.", size=(4.6, 4.0),
        caption="Cells: what one sequence of this context takes of the pool. Bars: the pool at a low, middle and high "
                "overhead, beside the line of what is needed; the larger fills the axis.",
        controls=(
            Choice("card", "Memory of a GPU", CARDS | {f"{gib} GiB": {"vram_bytes": gib * GIB} for gib in (24, 32)},
                   NOMINAL, NO_ROOM),
            share(0.8, silent=NO_ROOM),
            slider("weights_bytes", "Weights, all GPUs", 10, 80, 20, "GB", BUILD_GB, per_decade=40, silent=NO_ROOM),
            cache_format(),
            Choice("mtp", "Tokens drafted by the MTP layer", {str(n): {"drafts": n} for n in range(4)}, "0"),
            slider("context_tokens", "Context wanted", 8192, 262144, 262144, "tokens", step=4096),
            overhead_range(),
            gpus(1, 2, 4, silent=NO_ROOM),
            Choice("engine", "Engine", {f"vLLM {text}": engine(text) for text in ("0.32", "0.33")}, "vLLM 0.32")),
        presets={"article 1: 20 GB, nominal 16 GiB; vLLM 0.32": {},
                 AS_COUNTED: {"card": DRIVER, "weights_bytes": BUILD_GB, "engine": "vLLM 0.33",
                              "range": OUR_RANGE}},
        constants=HYBRID | {name: getattr(MODEL, name)
                             for name in ("kv_heads", "head_elements", "full_layers", "native_tokens")},
        recipes=BLOCKS | COUNTED_CELLS | {
            "longest_tokens": lambda v: ops.minimum(v.startable_tokens, v.native_tokens),
            "spare_blocks": lambda v: v.pool_blocks - v.wanted_blocks,  # below zero the engine refuses
            "starts": lambda v: ops.where(ENDS["mid"](v).spare_blocks < 0, 0, 1),
            **{f"{words}_tokens": lambda v, at=at: at(v).longest_tokens for words, at in ENDS.items()},
            "most_blocks": lambda v: ops.maximum(ENDS["low"](v).pool_blocks, v.wanted_blocks),
            "needed_frac": lambda v: v.wanted_blocks / v.most_blocks,
            "mid_blocks": lambda v: ENDS["mid"](v).pool_blocks},
        axes=(AXES, Axes(xlim=(0, 1.01), ylim=(-2.6, 0.6), xticks=((0, "0"),), yticks=tuple(
            (-i, f"{words} overhead") for i, words in enumerate(ENDS))),),
        marks=(*CELLS,
               *(bar(f"pool-{words}", -i, 0, lambda v, at=at: at(v).pool_blocks / v.most_blocks, "green", axes=1)
                 for i, (words, at) in enumerate(ENDS.items())),
               Line("needed", "needed_frac", -2.6, "needed_frac", 0.6, "red", dashed=True, axes=1)),
        readouts={
            "verdict": "{starts?Refused|Starts} at the middle overhead: "
                       "{request_blocks:0} blocks and the null block needed, {mid_blocks:0} there.",
            "longest": "Largest context {mid_tokens:0} tokens ({high_tokens:0} to {low_tokens:0} by the overhead). "
                       "A block holds {aligned_block_tokens:0} tokens."},
        table=Table("By overhead", ("", *ENDS), rows(
            ENDS.values(),
            ("overhead, GiB", "{overhead_bytes/GIB:2}"),
            ("blocks of the pool", "{pool_blocks:0}"), ("needed, with the null block", "{wanted_blocks:0}"),
            ("to spare", "{spare_blocks:0}"), ("largest context, tokens", "{longest_tokens:0}"))))
