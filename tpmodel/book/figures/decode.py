"""Figure 3: where the time of one decoded token goes."""

from ...formula import ops
from ...planner.evidence.articles import GPU, MODEL
from ..live import Axes, Choice, Figure, Table, rows, slider, stack
from .options import (AS_COUNTED, COUNTED, LINKS, NO_CACHE, ONE_GPU, PASS, SHAPE, STATES, cache_format, gpus, latency,
                      sources)

AXIS_MS = 60
GHOSTS_US = (10, 20, 50)  # article 1, section 3.2
PARTS = (("weights", "blue", "weight read", "weight_read_s/MS"), ("kv", "green", "KV read", "read_s/MS"),
         ("compute", "gold", "computes on", "busy_s/MS"), ("comm", "red", "all-reduce", "working_s/MS"),
         ("wait", "gray", "engine waits", "pass_s/MS"))


def article(latency_us):
    """A function that turns any view into the article's row: its weights, no KV read, latency alone."""
    fixed = dict(read_bytes=MODEL.weights_bytes, ranks=2, memory_bytes_per_s=GPU.memory_bytes_per_s, achieved_frac=1,
                 context_tokens=0, states_bytes=0, gap_s=0, bulk_latency_s=0,
                 allreduce_latency_s=float(f"{latency_us}e-6"))
    return lambda v: v.extended(**fixed).given(message_bytes=0)


GHOSTS = {f"{us} µs": article(us) for us in GHOSTS_US}


def decode_time():
    """Figure 3, live."""
    return Figure(
        name="decode-time", title="Decode: where one token's time goes.",
        caption="Top bar: your setting, nothing overlapped. "
                "Pale bars: the article's setting at 10, 20 and 50 µs an all-reduce.",
        controls=(
            latency(silent=ONE_GPU),
            slider("read_bytes", "Weights read per token, all GPUs", 2, 200, 20, "GB", COUNTED["read_bytes"]),
            slider("memory_bytes_per_s", "Memory bandwidth of a GPU", 200, 8000, 448, "GB/s"),
            slider("achieved_frac", "Achieved fraction of it", 0.5, 1, 1, step=0.01),
            gpus(),
            slider("context_tokens", "Context already in the cache", 0, 262144, 0, "tokens", step=4096),
            cache_format(NO_CACHE),
            slider("gap_s", "Wait of the engine, a step", 0, 10, 0, "ms", COUNTED["gap_s"], step=0.1),
            Choice("link", "Link", LINKS, next(iter(LINKS)), ONE_GPU),
            Choice("states", "Recurrent states", STATES, next(iter(STATES)))),
        presets={"article 1: 20 GB, 20 µs, no wait, empty cache": {}, AS_COUNTED: COUNTED},
        sources=sources(SHAPE, MODEL), constants=SHAPE | {"parameters": MODEL.parameters, "tokens": 1, "mfu_frac": 1,
                           "flop_per_s": GPU.bf16_flop_per_s, "attention_flop_per_s": GPU.bf16_flop_per_s},
        given=("read_bytes", "state_bytes"),
        recipes=PASS | {
            "read_s": lambda v: v.weight_read_s + v.kv_read_s,
            "beyond": lambda v: ops.where(v.pass_s > AXIS_MS * 1e-3, 1, 0)},
        axes=(Axes("time per token, ms", xlim=(0, AXIS_MS), ylim=(-3.5, 0.5), legend=2,
                   yticks=((0, "yours"), *((-row, words) for row, words in enumerate(GHOSTS, 1)))),),
        marks=(*stack(0, PARTS), *(mark for row, (us, at) in enumerate(zip(GHOSTS_US, GHOSTS.values()), 1)
                                   for mark in stack(-row, PARTS, at, f"{{}}-{us}us", ghost=True))),
        readouts={
            "speed": "{decode_tokens_per_s:1} tokens/s: "
                     "{bound_frac:2}× the weight-read bound of {decode_bound_tokens_per_s:1} tokens/s",
            "range": "Step {pass_s/MS:1} ms with nothing overlapped (drawn); "
                     "{pass_overlapped_s/MS:1} ms if the all-reduces hid completely. "
                     f"{{beyond?|The bar runs past the axis at {AXIS_MS} ms.}}"},
        table=Table("Your setting beside the article's three rows", ("", "yours", *GHOSTS), rows(
            (None, *GHOSTS.values()),
            ("weight read, ms", "{weight_read_s/MS:1}"), ("KV read, ms", "{kv_read_s/MS:2}"),
            ("all-reduces, ms", "{communication_s/MS:2}"), ("engine waits, ms", "{gap_s/MS:1}"),
            ("step, ms", "{pass_s/MS:1}"), ("tokens/s", "{decode_tokens_per_s:1}"),
            ("of the bound", "{bound_frac:2}×"))))
