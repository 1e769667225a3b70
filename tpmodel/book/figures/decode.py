"""Figure 3: where the time of one decoded token goes."""

from ...formula import ops
from ...planner.evidence.articles import GPU, MODEL
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Table, bar, quantity, rows
from .options import AS_COUNTED, COUNTED, KV_DTYPES, LINKS, NO_CACHE, ONE_GPU, STATES, TP

AXIS_MS = 60
GHOSTS_US = (10, 20, 50)  # article 1, section 3.2
PARTS = (("weights", "blue", "weight read"), ("kv", "green", "KV read"), ("compute", "gold", "computes on"),
         ("comm", "red", "all-reduce"), ("wait", "gray", "engine waits"))
ENDS = (0, "weight_read_s/MS", "read_s/MS", "busy_s/MS", "working_s/MS", "pass_s/MS")


def article(latency_us):
    """A function that turns any view into the article's row: its weights, no KV read, latency alone."""
    fixed = dict(read_bytes=MODEL.weights_bytes, ranks=2, memory_bytes_per_s=GPU.memory_bytes_per_s, achieved_frac=1,
                 context_tokens=0, states_bytes=0, gap_s=0, bulk_latency_s=0, allreduce_latency_s=float(f"{latency_us}e-6"))
    return lambda v: v.extended(**fixed).given(message_bytes=0)


VIEWS = (None, *map(article, GHOSTS_US))


def _bars(row, at, suffix="", ghost=False):
    ends = [quantity(end, at) if end else 0 for end in ENDS]
    return tuple(bar(name + suffix, row, start, end, color, "" if ghost else label, ghost)
                 for (name, color, label), start, end in zip(PARTS, ends, ends[1:]))


def decode_time():
    """Figure 3, live."""
    return Figure(
        name="decode-time",
        title="Decode: where one token's time goes.",
        caption="Top bar: your setting, nothing overlapped. Pale bars: the article's setting at 10, 20 and 50 µs an all-reduce.",
        controls=(
            Slider("allreduce_latency_s", "Latency of one all-reduce", log_texts(1, 200, 20, start=(20, COUNTED["allreduce_latency_s"])), "20", "µs", "e-6", silent=ONE_GPU),
            Slider("read_bytes", "Weights read per token, all GPUs", log_texts(2, 200, 20, start=(20, COUNTED["read_bytes"])), "20", "GB", "e9"),
            Slider("memory_bytes_per_s", "Memory bandwidth of a GPU", log_texts(200, 8000, 20, start=448), "448", "GB/s", "e9"),
            Slider("achieved_frac", "Achieved fraction of it", linear_texts(0.5, 1, 0.01), "1"),
            Choice("tp", "Split over", TP, "2 GPUs"),
            Slider("context_tokens", "Context already in the cache", linear_texts(0, 262144, 4096), "0", "tokens"),
            Choice("kv_dtype", "KV cache stored as", KV_DTYPES, "FP8", NO_CACHE),
            Slider("gap_s", "Wait of the engine between two steps", linear_texts(0, 10, 0.1), "0", "ms", "e-3"),
            Choice("link", "Link", LINKS, next(iter(LINKS)), ONE_GPU),
            Choice("states", "Recurrent states", STATES, next(iter(STATES))),
        ),
        presets={"article 1: 20 GB, 20 µs, no wait, empty cache": {}, AS_COUNTED: COUNTED},
        constants={name: getattr(MODEL, name) for name in
                   ("layers", "full_layers", "hidden", "heads", "kv_heads", "head_elements", "element_bytes", "parameters")}
        | {"tokens": 1, "mfu_frac": 1,
           "flop_per_s": GPU.bf16_flop_per_s, "attention_flop_per_s": GPU.bf16_flop_per_s},
        given=("read_bytes", "state_bytes"),
        recipes={
            "message_bytes": "allreduce_payload_bytes",
            "state_bytes": lambda v: v.states_bytes / v.ranks,
            "read_s": lambda v: v.weight_read_s + v.kv_read_s,
            "working_s": lambda v: v.busy_s + v.communication_s,
            "beyond": lambda v: ops.where(v.pass_s > AXIS_MS * 1e-3, 1, 0),
        },
        axes=(Axes("time per token, ms", xlim=(0, AXIS_MS), ylim=(-3.5, 0.5), legend=2,
                   yticks=((0, "yours"), *((-row - 1, f"{us} µs") for row, us in enumerate(GHOSTS_US)))),),
        marks=_bars(0, None) + tuple(mark for row, us in enumerate(GHOSTS_US)
                                     for mark in _bars(-row - 1, article(us), f"-{us}us", ghost=True)),
        readouts={
            "speed": "{decode_tokens_per_s:1} tokens/s: {bound_frac:2}× the weight-read bound of {decode_bound_tokens_per_s:1} tokens/s",
            "range": "Step {pass_s/MS:1} ms with nothing overlapped (drawn); {pass_overlapped_s/MS:1} ms if the all-reduces hid completely. "
                     f"{{beyond?|The bar runs past the axis at {AXIS_MS} ms.}}",
        },
        table=Table("Your setting beside the article's three rows", ("", "yours", *(f"{us} µs" for us in GHOSTS_US)), rows(
            VIEWS,
            ("weight read, ms", "{weight_read_s/MS:1}"),
            ("KV read, ms", "{kv_read_s/MS:2}"),
            ("all-reduces, ms", "{communication_s/MS:2}"),
            ("engine waits, ms", "{gap_s/MS:1}"),
            ("step, ms", "{pass_s/MS:1}"),
            ("tokens/s", "{decode_tokens_per_s:1}"),
            ("of the bound", "{bound_frac:2}×"),
        )),
    )
