"""Serving: the alarm at 0.6 of the bound, and what speculative decoding gains."""

from .. import ops
from ..catalog.articles import GPU, MODEL
from ..catalog.links import link
from ..evidence.article1 import ALARM_FRAC, read_bytes
from ..formulas import collectives, decode, memory
from ..formulas import speculation as spec
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Curve, Line, Marker, Table, bar
from ..units import GB, MS, US
from .options import KV_DTYPES, NO_CACHE, TP

AXIS_MS = 80
LINK_US = (10, 40)  # up to here a mailbox or a one-shot kernel; up to here NCCL through host memory
AXIS_RATE = 200
MOST_DRAFTS = 8
ROWS = (0, 1, 2, 3, 5)
SHM = link("shm")
SHM_US, SHM_GB = f"{SHM.allreduce_latency_s / US:.1f}", f"{SHM.link_bytes_per_s / GB:.1f}"
SHAPE = {name: getattr(MODEL, name) for name in ("layers", "full_layers", "hidden", "kv_heads", "head_elements", "element_bytes")}
READ_GB = f"{read_bytes() / GB:.2f}"
DERIVED = {
    "allreduces": lambda v: v(collectives.allreduces),
    "message_bytes": lambda v: v(collectives.allreduce_payload_bytes),
    "kv_bytes_per_token": lambda v: v(memory.kv_bytes_per_token),
}


def _read():
    return Slider("read_bytes", "Weights read per step, all GPUs", log_texts(2, 200, 20, start=READ_GB), READ_GB, "GB", "e9")


def _bandwidth():
    return Slider("memory_bytes_per_s", "Memory bandwidth of a GPU", log_texts(200, 8000, 20, start=448),
                  f"{GPU.memory_bytes_per_s / GB:.0f}", "GB/s", "e9")


def _context():
    return Slider("context_tokens", "Context in the cache", linear_texts(0, 262144, 4096), "0", "tokens")


def _measured(v):
    return v.round_tokens / v.decode_tokens_per_s


def _reads(v):
    """The bound: weights and cache at the data-sheet bandwidth."""
    return v(decode.weight_read_s, achieved_frac=1) + v(decode.kv_read_s, achieved_frac=1)


def ratio(v):
    """Measured rate over the bound."""
    return _reads(v) / _measured(v)


def gap(v):
    """What the achieved reads leave of the measured step, on each all-reduce."""
    return v(decode.gap_allreduce_s, weight_read_s=v(decode.weight_read_s), kv_read_s=v(decode.kv_read_s))


def _left(v):
    """0: the reads leave nothing, 1: something on one GPU, 2: something on several."""
    return ops.where(gap(v) <= 0, 0, ops.where(v.ranks < 2, 1, 2))


def _verdict(v):
    """0: beyond the bound, 1: plausible, 2: low as the reads are, 3: suspect with no link to blame, 4: suspect."""
    return ops.where(ratio(v) > 1, 0, ops.where(ratio(v) >= ALARM_FRAC, 1, 2 + _left(v)))


def _explains(v):
    """What so long an all-reduce would be: 0 a fast kernel, 1 NCCL through the host, 2 more than a link takes."""
    return ops.where(gap(v) / US <= LINK_US[0], 0, ops.where(gap(v) / US <= LINK_US[1], 1, 2))


def alarm():
    """The article's alarm as a calculator."""
    weights = lambda v: v(decode.weight_read_s, achieved_frac=1) / MS
    reads = lambda v: _reads(v) / MS
    achieved = lambda v: ops.maximum(reads(v), (v(decode.weight_read_s) + v(decode.kv_read_s)) / MS)
    step = lambda v: _measured(v) / MS
    return Figure(
        name="alarm",
        title="Is my speed what it should be?",
        caption="Top: your measured step and what the reads explain of it. Below: the bound, and the step at which the alarm rings.",
        controls=(
            Slider("decode_tokens_per_s", "Measured, one stream", log_texts(1, 400, 20, start=30), "30", "tokens/s"),
            Slider("round_tokens", "Tokens confirmed per step (1 without MTP)", linear_texts(1, 8, 0.1), "1"),
            _read(), _bandwidth(),
            Slider("achieved_frac", "Achieved fraction of it", linear_texts(0.5, 1, 0.01), "0.8"),
            Choice("tp", "Split over", TP, "2 GPUs"),
            _context(),
            Choice("kv_dtype", "KV cache stored as", KV_DTYPES, "FP8", NO_CACHE),
        ),
        constants=SHAPE,
        derived={"kv_bytes_per_token": DERIVED["kv_bytes_per_token"]},
        axes=(Axes("time of one step, ms", xlim=(0, AXIS_MS), ylim=(-2.5, 0.5), legend=2,
                   yticks=((0, "yours"), (-1, "bound"), (-2, "alarm"))),),
        marks=(
            bar("weights", 0, 0, lambda v: ops.minimum(step(v), weights(v)), "blue", "weight read"),
            bar("kv", 0, lambda v: ops.minimum(step(v), weights(v)), lambda v: ops.minimum(step(v), reads(v)), "green", "KV read"),
            bar("slower", 0, lambda v: ops.minimum(step(v), reads(v)), lambda v: ops.minimum(step(v), achieved(v)), "gold", "reads below data sheet"),
            bar("rest", 0, lambda v: ops.minimum(step(v), achieved(v)), step, "red", "unexplained"),
            bar("bound-weights", -1, 0, weights, "blue", ghost=True),
            bar("bound-kv", -1, weights, reads, "green", ghost=True),
            bar("alarm", -2, 0, lambda v: reads(v) / ALARM_FRAC, "gray", ghost=True),
            Line("limit", lambda v: reads(v) / ALARM_FRAC, -2.5, lambda v: reads(v) / ALARM_FRAC, 0.5, "purple", dashed=True),
        ),
        readouts={
            "ratio": ((ratio, 2), "× the bound of ", (lambda v: v.round_tokens / _reads(v), 1), " tokens/s: ", (_verdict, (
                "beyond the bound. Check tokens per step (speculative decoding?) and the bytes that are read.",
                "plausible.",
                "low, and the achieved fraction that you set explains it all.",
                "suspect. Look at launches without CUDA graphs, at heat.",
                "suspect. Look at the link, at launches without CUDA graphs, at the lanes, at heat."))),
            "gap": ("The reads leave ", (lambda v: ops.maximum(0, step(v) - achieved(v)), 1), " ms a step: ", (_left, (
                "nothing to explain.",
                "one GPU makes no all-reduce, so no link explains them.",
                ((lambda v: gap(v) / US, 1), " µs for each of ", (lambda v: v(collectives.allreduces), 0), " all-reduces, ", (_explains, (
                    "as a mailbox or a one-shot kernel takes.", "as NCCL through host memory takes.",
                    "more than a link takes: launches, copies on Windows, or heat.")))))),
        },
        table=Table("The step", ("", "ms", "tokens/s"), tuple(
            (words, ((at, 1),), ((lambda v, at=at: v.round_tokens / (at(v) * MS), 1),)) for words, at in (
                ("measured", step), ("the bound", reads), ("reads as achieved", achieved),
                ("the alarm", lambda v: reads(v) / ALARM_FRAC)))),
    )


def round_time(v):
    """One round."""
    return v(spec.round_s, verify_s=v(spec.verify_s), draft_s=v(spec.draft_s))


def confirmed(v):
    """Confirmed tokens/s."""
    return v(spec.confirmed_tokens_per_s, round_tokens=v(spec.round_tokens), round_s=round_time(v))


def plain(v):
    """Tokens/s without drafts."""
    return v(decode.decode_tokens_per_s, decode_s=v(decode.decode_s))


def per_confirmed(v):
    """All-reduces per confirmed token."""
    return v(spec.allreduces_per_confirmed_token, round_allreduces=v(spec.round_allreduces),
             round_tokens=v(spec.round_tokens))


def speculation():
    """Tokens/s against the number of drafts."""
    samples = tuple(float(k) for k in range(MOST_DRAFTS + 1))
    at = lambda function, k: lambda v: function(v.extended(drafts=k))
    return Figure(
        name="speculation",
        title="What do drafts gain?",
        caption="Confirmed tokens/s against tokens drafted a round. Dashed: no drafts; and drafts that would cost nothing.",
        controls=(
            Slider("acceptance_frac", "Chance that a draft is accepted", linear_texts(0, 0.98, 0.02), "0.7"),
            Slider("drafts", "Drafted a round (num_speculative_tokens)", linear_texts(0, MOST_DRAFTS, 1), "3", whole=True),
            Slider("draft_bytes", "Weights a draft step reads, all GPUs", log_texts(0.1, 20, 20, start="3.4"), "3.4", "GB", "e9"),
            Slider("round_overhead_s", "Launches and sampling, a round", linear_texts(0, 60, 0.5), "1", "ms", "e-3"),
            Slider("allreduce_latency_s", "Latency of one all-reduce", log_texts(1, 200, 20, start=SHM_US), SHM_US, "µs", "e-6"),
            Slider("link_bytes_per_s", "Achieved bandwidth of the link", log_texts(1, 400, 20, start=SHM_GB), SHM_GB, "GB/s", "e9"),
            _read(), _bandwidth(), _context(),
        ),
        constants=SHAPE | {"tokens": 1, "ranks": 2, "achieved_frac": 0.8, "kv_element_bytes": 1, "draft_allreduces": 3},
        derived=DERIVED,
        axes=(Axes("drafts a round", "tokens/s", (0, MOST_DRAFTS), (0, AXIS_RATE), legend=2),),
        marks=(
            Curve("free", "drafts", samples, lambda v: plain(v) * v(spec.round_tokens), "gray", "drafts for nothing", dashed=True),
            Line("plain", 0, plain, MOST_DRAFTS, plain, "green", "no drafts", dashed=True),
            Curve("confirmed", "drafts", samples, confirmed, "blue", "confirmed"),
            Marker("here", lambda v: v.drafts, confirmed, "purple", "yours"),
        ),
        readouts={
            "rate": ((confirmed, 1), " tokens/s, ", (lambda v: confirmed(v) / plain(v), 2), "× plain decoding at ", (plain, 1), " tokens/s",
                     (lambda v: ops.where(confirmed(v) >= plain(v), 0, ops.where(v.drafts > 0, 1, 2)), (
                         ".", ": the drafts cost more than they gain.", ": no drafts, but the launches of a round."))),
            "round": ((lambda v: v(spec.round_tokens), 2), " tokens a round of ", (lambda v: round_time(v) / MS, 1), " ms: verify ",
                      (lambda v: v(spec.verify_s) / MS, 1), ", drafts ", (lambda v: v.drafts * v(spec.draft_s) / MS, 1), ", rest ",
                      (lambda v: v.round_overhead_s / MS, 1), ". ", (per_confirmed, 0), " all-reduces a confirmed token."),
        },
        table=Table("By drafts a round", ("", *(str(k) for k in ROWS)), tuple(
            (words, *(((at(function, k), decimals),) for k in ROWS)) for words, function, decimals in (
                ("tokens a round", lambda v: v(spec.round_tokens), 2),
                ("round, ms", lambda v: round_time(v) / MS, 1),
                ("all-reduces a token", per_confirmed, 0),
                ("tokens/s", confirmed, 1)))),
    )
