"""A plan and its parts as values: what was asked, the machine, each way to split, and the best of them."""

from dataclasses import asdict, dataclass

from .assume import ENDS


@dataclass(frozen=True)
class Ask:
    """What `tpmodel plan` is asked; see the command line for what each field is."""

    model: str
    gpus: tuple
    parallel: str = "auto"
    layers: tuple = None
    link: str = "shm"
    kv_dtype: str = None
    context: int = None
    util: float = 0.92
    reserve_gib: str = "0"
    mtp: int = 0
    acceptance: float = None
    batch: int = 1
    engine: str = "vllm-0.33"
    catalog: str = None
    goal: str = "decode"

    @property
    def part(self):
        """What ways are compared by: decode or prefill."""
        return "decode" if self.goal == "decode" else "prefill"


@dataclass(frozen=True)
class Machine:
    """Cards, the link between them, what is taken of each card before the start, and the names of the user's other links."""

    cards: tuple
    link: object
    reserves_bytes: tuple
    other_links: tuple = ()


@dataclass(frozen=True)
class Speed:
    """A rate in tokens/s at the slow end, in the middle and at the fast end, and the terms of its time in seconds, each slow to fast."""

    rates: tuple
    terms: dict
    prompt_tokens: int = None

    @property
    def mid(self):
        """The middle rate."""
        return self.rates[1]

    @property
    def limited_by(self):
        """The longest term of the middle."""
        return max(self.terms, key=lambda name: self.terms[name][1])

    def document(self):
        """As JSON has it; terms in ms, the fastest first."""
        terms = {name: dict(zip(("high_ms", "mid_ms", "low_ms"), (seconds * 1e3 for seconds in ends))) for name, ends in self.terms.items()}
        found = {**dict(zip(ENDS, self.rates)), "unit": "token/s", "limited_by": self.limited_by, "terms": terms}
        return found | ({"prompt_tokens": self.prompt_tokens} if self.prompt_tokens else {})


@dataclass(frozen=True)
class Way:
    """One way to split: where the weights are, what is left on each card, the longest context at each end, and how fast.

    pool : vLLM's own plan for the cache, in the middle
    """

    placement: object
    util: float
    memories: tuple
    longest: tuple
    context_tokens: int
    fits: bool
    pool: object
    decode: Speed = None
    prefill: Speed = None

    @property
    def holds_tokens(self):
        """The longest context, in the middle."""
        return self.longest[1]

    @property
    def label(self):
        """In words: one, tp, tp with offload, or pp with its layers."""
        if self.placement.kind == "pp":
            return f"pp {','.join(map(str, self.placement.layers))}"
        return "tp with offload" if self.placement.kind == "offload" and self.placement.ranks > 1 else self.placement.kind

    def speed(self, part):
        """The Speed of decode or prefill; None where it does not fit."""
        return getattr(self, part)

    def rate(self, part):
        """Its middle rate; 0 where it does not fit."""
        return self.speed(part).mid if self.speed(part) else 0.0

    def row(self):
        """As one row of the comparison."""
        speeds = {part: dict(zip(ENDS, self.speed(part).rates)) if self.speed(part) else None for part in ("decode", "prefill")}
        return {"kind": self.placement.kind, "label": self.label, "layers": list(self.placement.layers), "fits": self.fits,
                "max_context_tokens": self.holds_tokens, **speeds}


@dataclass(frozen=True)
class Plan:
    """The best way of all that were tried, and what to say of it."""

    ask: Ask
    config: object
    setting: object
    machine: Machine
    best: Way
    tried: tuple
    refused: tuple
    crossover: dict
    verdict: str
    command: str
    assumptions: tuple

    def document(self):
        """The plan as plain values: the one place where its JSON is made."""
        best, placed = self.best, self.best.placement
        return {
            "gpus": [asdict(memory) for memory in best.memories],
            "max_context_tokens": best.holds_tokens, "max_context_range": dict(zip(ENDS, best.longest)),
            "fits": best.fits, "context_tokens": best.context_tokens,
            "decode": best.decode and best.decode.document(), "prefill": best.prefill and best.prefill.document(),
            "util": best.util,
            "split": {"kind": placed.kind, "layers": list(placed.layers), "ranks": placed.ranks, "offloaded_bytes": placed.offloaded_bytes},
            "log": {"num_blocks": best.pool.pool_blocks, "kv_cache_tokens": best.pool.printed_tokens, "max_concurrency": best.pool.concurrency},
            "compared": [way.row() for way in self.tried], "crossover": self.crossover, "command": self.command,
            "link": self.machine.link.key, "other_links": list(self.machine.other_links),
            "verdict": self.verdict, "refused": list(self.refused), "assumptions": list(self.assumptions),
        }

