"""The largest context to the block, by vLLM's own rules: what one sequence needs, what the pool holds."""

from .. import ops
from ..catalog.articles import GPU, MODEL, UTILISATION_FRAC
from ..catalog.models import find_config
from ..formulas import memory
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Line, Table, bar
from ..units import GIB
from ..vllm import rules
from ..vllm.engine import version
from .options import KV_DTYPES, TP

NULL_BLOCKS, FULL_GROUPS = 1, 1
INPUT_BYTES = 2  # the convolution's inputs are BF16
OVERHEAD = MODEL.numbers["overhead_bytes"].base_range
CARDS = {"16 GiB nominal": 16 * GIB, "16,311 MiB, as reported": GPU.reported_bytes,
         "24 GiB": 24 * GIB, "32 GiB": 32 * GIB}
ENGINES = {f"vLLM {text}": {"step_tokens": version(text).gdn_step, "checkpoints": int(version(text).gdn_step > 16)} for text in ("0.32", "0.33")}
WORDS = ("low", "mid", "high")
AXIS_BLOCKS = 400


def shape():
    """The hybrid's shape by the names that the rules use."""
    config = find_config(MODEL.key)
    full = next(layer for layer in config.order if layer.kind == "full")
    state = next(layer.state for layer in config.order if layer.state)
    return {
        "kv_heads": full.kv_heads, "head_elements": full.head_elements, "value_head_elements": full.value_head_elements,
        "value_heads": state.value_heads, "value_elements": state.value_elements, "key_heads": state.key_heads,
        "key_elements": state.key_elements, "state_element_bytes": state.element_bytes, "convolution": state.convolution,
        "full_count": config.kinds["full"], "state_count": config.kinds["state"], "native_tokens": config.native_tokens,
        "element_bytes": INPUT_BYTES, "kv_scale_bytes": 0, "block_tokens": 16}


def _group(v):
    """Layers of a group: the full-attention layers, and the MTP layer beside them."""
    return v.full_count + ops.where(v.drafts > 0, 1, 0)


DERIVED = {
    "layer_bytes_per_token": lambda v: v(rules.layer_bytes_per_token),
    "state_page_bytes": lambda v: v(rules.state_page_bytes),
    "aligned_block_tokens": lambda v: v(rules.aligned_block_tokens),
    "block_bytes": lambda v: v.aligned_block_tokens * v.layer_bytes_per_token * _group(v),
    "fixed_blocks": lambda v: ops.ceil(v.state_count / _group(v)) * v(rules.state_blocks, cached=1),
    "request_blocks": lambda v: v.fixed_blocks + FULL_GROUPS * v(rules.full_blocks, block_tokens=v.aligned_block_tokens),
}


def at(v, overhead):
    """The view with the pool of one overhead."""
    pool = v(memory.kv_pool_bytes, overhead_bytes=overhead)
    return v.extended(pool_blocks=rules.pool_blocks(kv_pool_bytes=pool, block_bytes=v.block_bytes))


def longest(v, overhead):
    """The largest length that starts."""
    found = at(v, overhead)(rules.fitting_tokens, null_blocks=NULL_BLOCKS, full_groups=FULL_GROUPS, block_tokens=v.aligned_block_tokens)
    return ops.minimum(found, v.native_tokens)


def slack(v, overhead):
    """Blocks to spare for the wanted context; below zero the engine refuses."""
    return at(v, overhead).pool_blocks - NULL_BLOCKS - v.request_blocks


def _cells(function, decimals=0):
    return tuple((((lambda v, o=o: function(v, o)), decimals),) for o in OVERHEAD)


def context_blocks():
    """The figure, live."""
    blocks = lambda v, o: at(v, o).pool_blocks
    return Figure(
        name="context-blocks",
        title="Will it start? Counted in blocks.",
        caption="Bars: blocks of the pool, for a low, middle and high overhead. The line: what one sequence of this context needs, "
                "and the null block.",
        controls=(
            Choice("card", "Memory of a GPU", {words: {"vram_bytes": size} for words, size in CARDS.items()}, "16 GiB nominal"),
            Slider("utilisation_frac", "Fraction the engine may take", linear_texts(0.8, 1, 0.01, start=UTILISATION_FRAC), "0.92"),
            Slider("weights_bytes", "Weights, all GPUs", log_texts(10, 80, 40, start=20), "20", "GB", "e9"),
            Choice("kv_dtype", "KV cache stored as", KV_DTYPES, "FP8"),
            Choice("mtp", "Tokens drafted by the MTP layer", {str(n): {"drafts": n} for n in (0, 1, 2, 3)}, "0"),
            Slider("context_tokens", "Context wanted", linear_texts(8192, 262144, 4096), "262144", "tokens"),
            Choice("tp", "Split over", {words: TP[words] for words in ("1 GPU", "2 GPUs", "4 GPUs")}, "2 GPUs"),
            Choice("engine", "Engine", ENGINES, "vLLM 0.32"),
        ),
        constants=shape(),
        derived=DERIVED,
        axes=(Axes("blocks", xlim=(0, AXIS_BLOCKS), ylim=(-2.6, 0.6), legend=2,
                   yticks=tuple((-i, f"{words}: {o / GIB:.1f} GiB") for i, (words, o) in enumerate(zip(WORDS, OVERHEAD)))),),
        marks=tuple(bar(f"pool-{words}", -i, 0, lambda v, o=o: blocks(v, o), "green", "" if i else "blocks of the pool")
                    for i, (words, o) in enumerate(zip(WORDS, OVERHEAD)))
        + (Line("needed", lambda v: v.request_blocks + NULL_BLOCKS, -2.6, lambda v: v.request_blocks + NULL_BLOCKS, 0.6, "red", "needed", dashed=True),),
        readouts={
            "verdict": ((lambda v: ops.where(slack(v, OVERHEAD[1]) < 0, 0, 1), ("Refused", "Starts")), " at the middle overhead: ",
                        (lambda v: v.request_blocks, 0), " blocks and the null block needed, ", (lambda v: blocks(v, OVERHEAD[1]), 0), " there."),
            "longest": ("Largest context ", (lambda v: longest(v, OVERHEAD[1]), 0), " tokens (", (lambda v: longest(v, OVERHEAD[2]), 0), " to ",
                        (lambda v: longest(v, OVERHEAD[0]), 0), " by the overhead). A block holds ", (lambda v: v.aligned_block_tokens, 0), " tokens."),
        },
        table=Table("By overhead", ("", *(f"{words}, {o / GIB:.1f} GiB" for words, o in zip(WORDS, OVERHEAD))), (
            ("blocks of the pool", *_cells(blocks)),
            ("needed, with the null block", *_cells(lambda v, o: v.request_blocks + NULL_BLOCKS)),
            ("to spare", *_cells(slack)),
            ("largest context, tokens", *_cells(longest)),
        )),
    )
