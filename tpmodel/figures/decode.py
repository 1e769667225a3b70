"""Figure 3: where the time of one decoded token goes."""

from .. import ops
from ..catalog.articles import GPU, LINK, MODEL
from ..formulas import collectives, decode, memory
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Table, bar
from ..units import MS
from .options import KV_DTYPES, NO_CACHE, ONE_GPU, TP

AXIS_MS = 60
GHOSTS_US = (10, 20, 50)  # article 1, section 3.2


def _weights(v):
    return v(decode.weight_read_s)


def _kv(v):
    return v(decode.kv_read_s)


def _communication(v):
    return v(collectives.communication_s)


def _step(v):
    return v(decode.engine_step_s, weight_read_s=_weights(v), kv_read_s=_kv(v), protocol_allreduce_s=v(collectives.allreduce_s))


def _rate(v):
    return v(decode.decode_tokens_per_s, decode_s=_step(v))


def _bound(v):
    return v(decode.decode_bound_tokens_per_s)


def _share(v):
    return v(decode.bound_frac, decode_tokens_per_s=_rate(v), decode_bound_tokens_per_s=_bound(v))


def article(latency_us):
    """A function that turns any view into the article's row: its weights, no KV read, latency alone."""
    fixed = dict(read_bytes=MODEL.weights_bytes, ranks=2, memory_bytes_per_s=GPU.memory_bytes_per_s, achieved_frac=1,
                 context_tokens=0, message_bytes=0, gap_s=0, allreduce_latency_s=float(f"{latency_us}e-6"))
    return lambda v: v.extended(**fixed)


def _bars(row, at, suffix="", ghost=False):
    at = at or (lambda v: v)
    weights = lambda v: _weights(at(v)) / MS
    reads = lambda v: (_weights(at(v)) + _kv(at(v))) / MS
    busy = lambda v: (_step(at(v)) - at(v).gap_s) / MS
    step = lambda v: _step(at(v)) / MS
    label = lambda text: "" if ghost else text
    return (
        bar("weights" + suffix, row, 0, weights, "blue", label("weight read"), ghost),
        bar("kv" + suffix, row, weights, reads, "green", label("KV read"), ghost),
        bar("comm" + suffix, row, reads, busy, "red", label("all-reduce"), ghost),
        *(() if ghost else (bar("wait", row, busy, step, "gray", "engine waits"),)),
    )


def _columns(function, decimals):
    views = [lambda v: v, *(article(us) for us in GHOSTS_US)]
    return tuple(((lambda v, at=at: function(at(v))), decimals) for at in views)


def _row(label, function, decimals, before="", after=""):
    return (label, *((before, part, after) for part in _columns(function, decimals)))


def decode_time():
    """Figure 3, live."""
    return Figure(
        name="decode-time",
        title="Decode: where one token's time goes.",
        caption="Top bar: your setting, nothing overlapped. Pale bars: the article's, with an empty cache, at 10, 20 and 50 µs an all-reduce.",
        controls=(
            Slider("allreduce_latency_s", "Latency of one all-reduce", log_texts(1, 200, 20, start=20), "20", "µs", "e-6", silent=ONE_GPU),
            Slider("read_bytes", "Weights read per token, all GPUs", log_texts(2, 200, 20, start=20), "20", "GB", "e9"),
            Slider("memory_bytes_per_s", "Memory bandwidth of a GPU", log_texts(200, 8000, 20, start=448), "448", "GB/s", "e9"),
            Slider("achieved_frac", "Achieved fraction of it", linear_texts(0.5, 1, 0.01), "1"),
            Choice("tp", "Split over", TP, "2 GPUs"),
            Slider("context_tokens", "Context already in the cache", linear_texts(0, 262144, 4096), "8192", "tokens"),
            Choice("kv_dtype", "KV cache stored as", KV_DTYPES, "FP8", NO_CACHE),
            Slider("gap_s", "Wait of the engine between two steps", linear_texts(0, 10, 0.1), "0", "ms", "e-3"),
        ),
        constants={name: getattr(MODEL, name) for name in
                   ("layers", "full_layers", "hidden", "kv_heads", "head_elements", "element_bytes")}
        | {"link_bytes_per_s": LINK.link_bytes_per_s, "tokens": 1},
        derived={
            "allreduces": lambda v: v(collectives.allreduces),
            "message_bytes": lambda v: v(collectives.allreduce_payload_bytes),
            "kv_bytes_per_token": lambda v: v(memory.kv_bytes_per_token),
        },
        axes=(Axes("time per token, ms", xlim=(0, AXIS_MS), ylim=(-3.5, 0.5), legend=2,
                   yticks=((0, "yours"), *((-row - 1, f"{us} µs") for row, us in enumerate(GHOSTS_US)))),),
        marks=_bars(0, None) + tuple(
            mark for row, us in enumerate(GHOSTS_US) for mark in _bars(-row - 1, article(us), f"-{us}us", ghost=True)
        ),
        readouts={
            "speed": ((_rate, 1), " tokens/s: ", (_share, 2), "× the weight-read bound of ", (_bound, 1), " tokens/s"),
            "range": ("Step ", (lambda v: _step(v) / MS, 1), " ms with nothing overlapped (drawn); ",
                      (lambda v: (v(decode.decode_overlapped_s) + v.gap_s) / MS, 1), " ms if the all-reduces hid completely. ",
                      (lambda v: ops.where(_step(v) / MS > AXIS_MS, 1, 0), ("", f"The bar runs past the axis at {AXIS_MS} ms."))),
        },
        table=Table("Your setting beside the article's three rows", ("", "yours", *(f"{us} µs" for us in GHOSTS_US)), (
            _row("weight read, ms", lambda v: _weights(v) / MS, 1),
            _row("KV read, ms", lambda v: _kv(v) / MS, 2),
            _row("all-reduces, ms", lambda v: _communication(v) / MS, 2),
            _row("engine waits, ms", lambda v: v.gap_s / MS, 1),
            _row("step, ms", lambda v: _step(v) / MS, 1),
            _row("tokens/s", _rate, 1),
            _row("of the bound", _share, 2, after="×"),
        )),
    )
