"""Which inputs are uncertain, and how far each alone moves an answer: low and high of its source, the rest middle."""

from dataclasses import dataclass

from ...catalog.links import link
from ...formula.units import GB, GIB, MS, US
from ...formulas import memory
from ..plan.assume import ACHIEVED, ENGINE
from ..shapes.models import find_config
from .articles import GPU, MODEL, OVERHEAD, setting
from .measured import rate, waits_s


@dataclass(frozen=True)
class Swing:
    """One input, the two ends of its range as text, and the answer at both."""

    input: str
    kind: str
    ends: tuple
    answers: tuple

    size = property(lambda self: abs(self.answers[1] - self.answers[0]), doc="How far the answer moves.")


def _swings(answer, inputs):
    """The Swings of (input, kind, both values, how a value reads, the quantity that takes it), the largest first."""
    found = (Swing(name, kind, tuple(map(shown, values)), tuple(answer(**{quantity: value}) for value in values))
             for name, kind, values, shown, quantity in inputs)
    return tuple(sorted(found, key=lambda swing: -swing.size))


def _ranged(number):
    return number.kind, number.base_range[::2]


def _of(unit, words):
    return lambda value: f"{value / unit:.3g} {words}"


def decode_swings():
    """Decode rate in tokens/s: two RTX 5060 Ti, NCCL through host memory, vLLM's wait, no drafts, an empty cache."""
    config, shm, gb = find_config(MODEL.key), link("shm").numbers, _of(GB, "GB")
    latency, bandwidth = (_ranged(shm[name]) for name in ("allreduce_latency_s", "link_bytes_per_s"))
    words = {"mailbox": "mailbox", "staged": "staged copies"}

    def answer(build_bytes=None, **more):
        read = {"read_bytes": setting()(memory.read_bytes, weights_bytes=build_bytes)} if build_bytes else {}
        return rate(**read, **more)

    return _swings(answer, (
        ("size of the build", *_ranged(MODEL.numbers["weights_bytes"]), gb, "build_bytes"),
        ("share of the file that is read", "computed", (config.weights_bytes, config.read_bytes), gb, "read_bytes"),
        ("achieved fraction of the bandwidth", "community", ACHIEVED[::2], "{:.2f}".format, "achieved_frac"),
        ("latency of an all-reduce, same transport", *latency, _of(US, "µs"), "allreduce_latency_s"),
        ("transport", "community", tuple(words), words.get, "transport"),
        ("wait between two steps", "community", waits_s(ENGINE)[::-2], _of(MS, "ms"), "gap_s"),
        ("bandwidth of the link", *bandwidth, _of(GB, "GB/s"), "link_bytes_per_s"),
        ("context in the FP8 cache", "choice", (0, MODEL.native_tokens), "{:,.0f} tokens".format, "context_tokens")))


def context_swings():
    """Tokens of FP8 cache that fit on two RTX 5060 Ti, before the model's own limit."""
    reported, gib = GPU.numbers["reported_bytes"], lambda b: f"{b / GIB:.4g} GiB"
    return _swings(lambda **more: setting(kv_element_bytes=1, **more).pool_tokens, (
        ("size of the build", *_ranged(MODEL.numbers["weights_bytes"]), _of(GB, "GB"), "weights_bytes"),
        ("graphs, activations, buffers", *_ranged(OVERHEAD), gib, "overhead_bytes"),
        ("memory: nominal or as reported", reported.kind, (GPU.vram_bytes, reported.base), gib, "vram_bytes"),
        ("utilisation", "choice", (0.9, 0.95), "{:.2f}".format, "utilisation_frac")))
