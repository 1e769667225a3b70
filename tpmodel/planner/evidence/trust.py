"""Which inputs are uncertain, and how far each alone moves an answer: low and high of its source, the rest in the middle."""

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


def _swing(name, kind, values, shown, answer):
    return Swing(name, kind, tuple(map(shown, values)), tuple(map(answer, values)))


def _sorted(*swings):
    return tuple(sorted(swings, key=lambda swing: -swing.size))


def decode_swings():
    """Decode rate in tokens/s: two RTX 5060 Ti, NCCL through host memory, vLLM's wait, no speculation, an empty cache."""
    shm = link("shm").numbers
    weights, latency, bandwidth = MODEL.numbers["weights_bytes"], shm["allreduce_latency_s"], shm["link_bytes_per_s"]
    ends = lambda number: number.base_range[::2]
    config = find_config(MODEL.key)
    read = lambda file: memory.read_bytes(**{name: getattr(MODEL, name) for name in memory.read_bytes.parameters} | {"weights_bytes": file})
    us = lambda s: f"{s / US:.3g} µs"
    return _sorted(
        _swing("size of the build", weights.kind, ends(weights), lambda b: f"{b / GB:.3g} GB", lambda b: rate(read_bytes=read(b))),
        _swing("share of the file that is read", "computed", (config.weights_bytes, config.read_bytes),
               lambda b: f"{b / GB:.3g} GB", lambda b: rate(read_bytes=b)),
        _swing("achieved fraction of the bandwidth", "community", ACHIEVED[::2], "{:.2f}".format, lambda f: rate(achieved_frac=f)),
        _swing("latency of an all-reduce, same transport", latency.kind, ends(latency), us, lambda s: rate(allreduce_latency_s=s)),
        _swing("transport", "community", ("mailbox", "staged"), {"mailbox": "mailbox", "staged": "staged copies"}.get, lambda key: rate(transport=key)),
        _swing("wait between two steps", "community", GAPS_S["vllm"][::-2], lambda s: f"{s / MS:.3g} ms", lambda s: rate(gap_s=s)),
        _swing("bandwidth of the link", bandwidth.kind, ends(bandwidth), lambda b: f"{b / GB:.3g} GB/s", lambda b: rate(link_bytes_per_s=b)),
        _swing("context in the FP8 cache", "choice", (0, MODEL.native_tokens), "{:,.0f} tokens".format, lambda n: rate(context_tokens=n)),
    )


def context_swings():
    """Tokens of FP8 cache that fit on two RTX 5060 Ti, before the model's own limit."""
    weights, overhead = MODEL.numbers["weights_bytes"], OVERHEAD

    def fits(**more):
        return setting(kv_element_bytes=1, **more).pool_tokens

    gib = lambda b: f"{b / GIB:.4g} GiB"
    return _sorted(
        _swing("size of the build", weights.kind, weights.base_range[::2], lambda b: f"{b / GB:.3g} GB", lambda b: fits(weights_bytes=b)),
        _swing("graphs, activations, buffers", overhead.kind, overhead.base_range[::2], gib, lambda b: fits(overhead_bytes=b)),
        _swing("memory: nominal or as reported", GPU.numbers["reported_bytes"].kind, (GPU.vram_bytes, GPU.reported_bytes), gib, lambda b: fits(vram_bytes=b)),
        _swing("utilisation", "choice", (0.9, 0.95), "{:.2f}".format, lambda u: fits(utilisation_frac=u)),
    )
