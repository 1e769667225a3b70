"""Figure 5: KV cache against context length, and where it meets the budget."""

from .. import ops
from ..catalog.articles import UTILISATION_FRAC
from ..formulas import memory
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Curve, Line, Marker, Table
from ..units import GIB
from .options import KV_DTYPES, TP, note

CONTEXTS = (32768, 131072, 262144)  # the rows of article 1, section 4.1
XLIM, YLIM = (2048.0, 2.0**21), (2.0**-4, 2.0**6)
SAMPLES = tuple(float(2 ** (11 + i / 8)) for i in range(81))
POWERS = ((4096, "4K"), (16384, "16K"), (65536, "64K"), (262144, "256K"), (1048576, "1M"))
TYPED = note(lambda v: v.typed_pool_bytes > 0, "the KV budget that you typed stands")
SIZES = ((0.0625, "1/16"), (0.25, "1/4"), (1, "1"), (4, "4"), (16, "16"), (64, "64"))


def _per_token(v, element_bytes):
    return v(memory.kv_bytes_per_token, kv_element_bytes=element_bytes)


def _cache_gib(v, element_bytes):
    return v(memory.kv_cache_bytes, kv_bytes_per_token=_per_token(v, element_bytes)) / GIB


def _fits(v, element_bytes):
    return v(memory.pool_tokens, kv_bytes_per_token=_per_token(v, element_bytes))


def _largest(v, element_bytes):
    return v(memory.max_context_tokens, kv_bytes_per_token=_per_token(v, element_bytes))


def _pool(v):
    """The typed budget if one is given, else what the card leaves."""
    return ops.where(v.typed_pool_bytes > 0, v.typed_pool_bytes, v(memory.kv_pool_bytes))


def _limit(v):
    """0: nothing fits, 1: the memory decides, 2: the native length decides."""
    room = _fits(v, v.kv_element_bytes)
    return ops.where(room < 1, 0, ops.where(room < v.native_tokens, 1, 2))


def _crossing(name, element_bytes, color, shape):
    return Marker(name, lambda v: _fits(v, element_bytes), lambda v: _fits(v, element_bytes) * _per_token(v, element_bytes) / GIB,
                  color, shape=shape)


_BUDGET = ("Budget for the KV cache ", (lambda v: v.kv_pool_bytes / GIB, 2), " GiB on each GPU")


def _cells(function, decimals):
    return tuple((((lambda v, b=b: function(v, b)), decimals),) for b in (2, 1))


def context_budget():
    """Figure 5, live."""
    return Figure(
        name="context-budget",
        title="How long a context fits?",
        caption="Each line is the KV cache of one sequence on one GPU. Where it meets the dashed budget, the memory is full.",
        controls=(
            Choice("kv_dtype", "KV cache stored as", KV_DTYPES, "FP8"),
            Slider("vram_bytes", "Memory of a GPU", linear_texts(6, 200, 1, start=16), "16", "GiB", factor=GIB, silent=TYPED),
            Slider("utilisation_frac", "Fraction the engine may take", linear_texts(0.5, 1, 0.01, start=UTILISATION_FRAC), "0.92", silent=TYPED),
            Slider("weights_bytes", "Weights, all GPUs", log_texts(1, 500, 20, start=20), "20", "GB", "e9", silent=TYPED),
            Slider("overhead_bytes", "Graphs, activations, buffers", linear_texts(0, 5, 0.1), "1.2", "GiB", factor=GIB, silent=TYPED),
            Slider("typed_pool_bytes", "KV budget, if known (0: from the card)", linear_texts(0, 64, 0.1), "0", "GiB", factor=GIB),
            Choice("tp", "Split over", TP, "2 GPUs"),
            Slider("full_layers", "Layers with full attention", linear_texts(1, 128, 1), "16", whole=True),
            Choice("heads", "KV heads", {str(n): {"kv_heads": n} for n in (1, 2, 4, 8, 16, 32)}, "4"),
            Choice("head_size", "Head size", {str(n): {"head_elements": n} for n in (64, 96, 128, 192, 256)}, "256"),
            Choice("native", "Native limit", {words: {"native_tokens": n} for words, n in
                   (("32K", 32768), ("64K", 65536), ("128K", 131072), ("256K", 262144), ("1M", 1048576))}, "256K"),
        ),
        derived={"kv_pool_bytes": _pool, "kv_bytes_per_token": lambda v: v(memory.kv_bytes_per_token)},
        axes=(Axes("context, tokens", "GiB on one GPU", XLIM, YLIM, xlog=True, ylog=True, legend=3,
                   xticks=POWERS, yticks=SIZES),),
        marks=(
            Curve("bf16", "context_tokens", SAMPLES, lambda v: _cache_gib(v, 2), "red", "BF16 KV"),
            Curve("fp8", "context_tokens", SAMPLES, lambda v: _cache_gib(v, 1), "blue", "FP8 KV"),
            Line("budget", XLIM[0], lambda v: v.kv_pool_bytes / GIB, XLIM[1], lambda v: v.kv_pool_bytes / GIB, "green",
                 "budget", dashed=True),
            Line("native", lambda v: v.native_tokens, YLIM[0], lambda v: v.native_tokens, YLIM[1], "gray",
                 "native limit", dashed=True),
            Line("largest", lambda v: v(memory.max_context_tokens), YLIM[0], lambda v: v(memory.max_context_tokens),
                 lambda v: v(memory.max_context_tokens) * v.kv_bytes_per_token / GIB, "purple",
                 "largest context"),
            _crossing("bf16-full", 2, "red", "s"),
            _crossing("fp8-full", 1, "blue", "o"),
        ),
        readouts={
            "largest": ((lambda v: v(memory.max_context_tokens), 0), " tokens is the largest context: ",
                        (_limit, ("the weights and buffers leave no room for a cache.", "the memory is full there.",
                                  "the model's native limit, by division. (An engine counts in blocks.)"))),
            "budget": ((lambda v: ops.where(v.kv_pool_bytes < 0, 0, ops.where(v.typed_pool_bytes > 0, 2, 1)), (
                           ("Weights and buffers are ", (lambda v: 0 - v.kv_pool_bytes / GIB, 2), " GiB too much for each GPU"),
                           (*_BUDGET, " (from the card)"), (*_BUDGET, " (as typed)"))), "; one token takes ", (lambda v: v.kv_bytes_per_token / 1024, 1), " KiB."),
        },
        table=Table("On each GPU", ("", "BF16 KV", "FP8 KV"), (
            ("KiB per token", *_cells(lambda v, b: _per_token(v, b) / 1024, 1)),
            *((f"GiB at {tokens:,} tokens", *_cells(lambda v, b, t=tokens: _cache_gib(v.extended(context_tokens=t), b), 2))
              for tokens in CONTEXTS),
            ("tokens that fit", *_cells(_fits, 0)),
            ("largest context, tokens", *_cells(_largest, 0)),
        )),
    )
