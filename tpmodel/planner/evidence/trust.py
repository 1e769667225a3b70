"""Which inputs are uncertain, and how far each alone moves an answer: low and high of its source, the rest middle."""

from dataclasses import dataclass

from ...catalog.links import link
from ...formula.units import GB, GIB, MS, US
from ...formulas import memory
from ..plan.assume import ACHIEVED, GAPS_S
from ..shapes.models import find_config
from .articles import GPU, MODEL, OVERHEAD, setting
from .measured import rate


@dataclass(frozen=True)
class Swing:
    """One input, the two ends of its range as text, and the answer at both."""

    input: str
    kind: str
    ends: tuple
    answers: tuple

    @property
    def size(self):
        """How far the answer moves."""
        return abs(self.answers[1] - self.answers[0])


def _swings(answer, inputs):
    """The Swings of (input, kind, both values, how a value reads, the quantity that takes it), the largest first."""
    found = (Swing(name, kind, tuple(map(shown, values)), tuple(answer(**{quantity: value}) for value in values))
             for name, kind, values, shown, quantity in inputs)
    return tuple(sorted(found, key=lambda swing: -swing.size))


def _ranged(name, number, shown, quantity):
    return name, number.kind, number.base_range[::2], shown, quantity


def _gb(number):
    return f"{number / GB:.3g} GB"


def decode_swings():
    """Decode rate in tokens/s: two RTX 5060 Ti, NCCL through host memory, vLLM's wait, no drafts, an empty cache."""
    shm, config = link("shm").numbers, find_config(MODEL.key)

    def answer(file_bytes=None, **more):
        if file_bytes is not None:
            parts = {name: getattr(MODEL, name) for name in memory.read_bytes.parameters}
            more["read_bytes"] = memory.read_bytes(**parts | {"weights_bytes": file_bytes})
        return rate(**more)

    return _swings(answer, (
        _ranged("size of the build", MODEL.numbers["weights_bytes"], _gb, "file_bytes"),
        ("share of the file that is read", "computed", (config.weights_bytes, config.read_bytes), _gb, "read_bytes"),
        ("achieved fraction of the bandwidth", "community", ACHIEVED[::2], "{:.2f}".format, "achieved_frac"),
        _ranged("latency of an all-reduce, same transport", shm["allreduce_latency_s"], lambda s: f"{s / US:.3g} µs",
                "allreduce_latency_s"),
        ("transport", "community", ("mailbox", "staged"), {"mailbox": "mailbox", "staged": "staged copies"}.get,
         "transport"),
        ("wait between two steps", "community", GAPS_S["vllm"][::-2], lambda s: f"{s / MS:.3g} ms", "gap_s"),
        _ranged("bandwidth of the link", shm["link_bytes_per_s"], lambda b: f"{_gb(b)}/s", "link_bytes_per_s"),
        ("context in the FP8 cache", "choice", (0, MODEL.native_tokens), "{:,.0f} tokens".format, "context_tokens")))


def context_swings():
    """Tokens of FP8 cache that fit on two RTX 5060 Ti, before the model's own limit."""
    sold = GPU.numbers["reported_bytes"].kind, (GPU.vram_bytes, GPU.reported_bytes)
    gib = lambda b: f"{b / GIB:.4g} GiB"
    return _swings(lambda **more: setting(kv_element_bytes=1, **more).pool_tokens, (
        _ranged("size of the build", MODEL.numbers["weights_bytes"], _gb, "weights_bytes"),
        _ranged("graphs, activations, buffers", OVERHEAD, gib, "overhead_bytes"),
        ("memory: nominal or as reported", *sold, gib, "vram_bytes"),
        ("utilisation", "choice", (0.9, 0.95), "{:.2f}".format, "utilisation_frac")))
