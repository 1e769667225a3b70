"""Figure 5: KV cache against context length, and where it meets the budget."""

from ...formula import ops
from ...formula.units import DTYPE_BYTES, GIB
from ...formulas import memory
from ...planner.evidence.articles import GPU
from ..live import Axes, Choice, Curve, Figure, Line, Marker, Table, holding, quantity, rows, slider
from .blocks import BLOCKS, HYBRID, engine
from .options import AS_COUNTED, BUILD_GB, TAKEN_GIB, cache_format, gpus, note, share

ENGINE = "0.33"
DIVIDED, BLOCKED = "by division, as article 1", f"in blocks of vLLM {ENGINE}, with states"
TYPED = note(lambda v: v.typed_pool_bytes > 0, "the KV budget that you typed stands")
REPORTED_GIB = f"{GPU.reported_bytes / GIB:.10g}"
CONTEXTS = (32768, 131072, 262144)  # the rows of article 1, section 4.1
XLIM, YLIM = (2048.0, 2.0**21), (2.0**-4, 2.0**6)
SAMPLES = tuple(float(round(2 ** (11 + i / 8))) for i in range(81))
STORED = [(name, color, shape, holding(kv_element_bytes=DTYPE_BYTES[name]))
          for name, color, shape in (("bf16", "red", "s"), ("fp8", "blue", "o"))]


def _limit(v):
    """0: nothing fits, 1: the memory decides, 2: the native length decides; 3 more where blocks are counted."""
    found = ops.where(v.room_tokens < 1, 0, ops.where(v.room_tokens < v.native_tokens, 1, 2))
    return found + 3 * v.in_blocks


def _taken(tokens):
    """What one sequence of so many tokens takes of a GPU."""
    return quantity("taken_bytes", holding(context_tokens=tokens))


def _short(tokens):
    return f"{tokens // 1024}K" if tokens < 2**20 else f"{tokens // 2**20}M"


RECIPES = BLOCKS | {
    "kv_pool_bytes": lambda v: ops.where(v.typed_pool_bytes > 0, v.typed_pool_bytes, v(memory.kv_pool_bytes)),
    "lacking": lambda v: ops.where(v.kv_pool_bytes < 0, 1, 0),
    "apart_bytes": lambda v: ops.maximum(v.kv_pool_bytes, 0 - v.kv_pool_bytes),
    "typed": lambda v: ops.where(v.typed_pool_bytes > 0, 1, 0),
    "room_tokens": lambda v: ops.where(v.in_blocks > 0, v.startable_tokens, v.pool_tokens),
    "longest_tokens": lambda v: ops.minimum(v.room_tokens, v.native_tokens),
    "taken_bytes": lambda v: ops.where(v.in_blocks > 0, v.wanted_blocks * v.block_bytes, v.kv_cache_bytes),
    "longest_bytes": _taken("longest_tokens"),
    "room_bytes": _taken("room_tokens"),
    "limit": _limit,
} | {f"taken_{tokens}_bytes": _taken(float(tokens)) for tokens in CONTEXTS}


def context_budget():
    """Figure 5, live."""
    return Figure(
        name="context-budget", title="How long a context fits?",
        caption="Each line is what one sequence takes of one GPU. "
                "Where it meets the dashed budget, the memory is full.",
        controls=(
            cache_format(),
            Choice("counting", "Count", {DIVIDED: {"in_blocks": 0}, BLOCKED: {"in_blocks": 1}}, DIVIDED),
            slider("vram_bytes", "Memory of a GPU", 6, 200, 16, "GiB", REPORTED_GIB, step=1, silent=TYPED),
            share(0.5, silent=TYPED),
            slider("weights_bytes", "Weights, all GPUs", 1, 500, 20, "GB", BUILD_GB, silent=TYPED),
            slider("overhead_bytes", "Overhead beside them", 0, 5, 1.2, "GiB", TAKEN_GIB, step=0.1, silent=TYPED),
            slider("typed_pool_bytes", "KV budget, if known (0: from the card)", 0, 64, 0, "GiB", step=0.1),
            gpus(),
            slider("full_layers", "Layers with full attention", 1, 128, 16, step=1, whole=True),
            Choice("heads", "KV heads", {str(n): {"kv_heads": n} for n in (1, 2, 4, 8, 16, 32)}, "4"),
            Choice("head_size", "Head size", {str(n): {"head_elements": n} for n in (64, 96, 128, 192, 256)}, "256"),
            Choice("native", "Native limit",
                   {_short(n): {"native_tokens": n} for n in (32768, 65536, 131072, 262144, 1048576)}, "256K")),
        presets={"article 1: 20 GB, nominal 16 GiB, by division": {},
                 AS_COUNTED: {"counting": BLOCKED, "vram_bytes": REPORTED_GIB, "weights_bytes": BUILD_GB,
                              "overhead_bytes": TAKEN_GIB}},
        constants=HYBRID | engine(ENGINE) | {"drafts": 0},
        recipes=RECIPES, given=("kv_pool_bytes",),
        axes=(Axes("context, tokens", "GiB on one GPU", XLIM, YLIM, xlog=True, ylog=True, legend=3,
                   xticks=tuple((n, _short(n)) for n in (4096, 16384, 65536, 262144, 1048576)),
                   yticks=((0.0625, "1/16"), (0.25, "1/4"), (1, "1"), (4, "4"), (16, "16"), (64, "64"))),),
        marks=(
            *(Curve(name, "context_tokens", SAMPLES, quantity("taken_bytes/GIB", at), color, f"{name.upper()} KV")
              for name, color, _, at in STORED),
            Line("budget", XLIM[0], "kv_pool_bytes/GIB", XLIM[1], "kv_pool_bytes/GIB", "green", "budget", dashed=True),
            Line("native", "native_tokens", YLIM[0], "native_tokens", YLIM[1], "gray", "native limit", dashed=True),
            Line("largest", "longest_tokens", YLIM[0], "longest_tokens", "longest_bytes/GIB", "purple",
                 "largest context"),
            *(Marker(f"{name}-full", quantity("room_tokens", at), quantity("room_bytes/GIB", at), color, shape=shape)
              for name, color, shape, at in STORED)),
        readouts={
            "largest": "{longest_tokens:0} tokens is the largest context: "
                       "{limit?the weights and buffers leave no room for a cache.|the memory is full there.|"
                       "the model's native limit, by division. (An engine counts in blocks.)|"
                       "not one block beside the states is left.|the engine's blocks are full there.|"
                       "the model's native limit, in the engine's blocks.}",
            "budget": "{lacking?Budget for the KV cache|Weights and buffers are too much by} {apart_bytes/GIB:2} GiB "
                      "on each GPU ({typed?from the card|as typed}); one token takes {kv_bytes_per_token/KIB:1} KiB."},
        table=Table("On each GPU", ("", "BF16 KV", "FP8 KV"), rows(
            [at for *_, at in STORED],
            ("KiB per token", "{kv_bytes_per_token/KIB:1}"),
            *((f"GiB at {tokens:,} tokens", f"{{taken_{tokens}_bytes/GIB:2}}") for tokens in CONTEXTS),
            ("tokens that fit", "{room_tokens:0}"), ("largest context, tokens", "{longest_tokens:0}"))))
