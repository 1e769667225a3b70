"""A plan and its parts as values: what was asked, the machine, each way to split, and the best of them."""

from dataclasses import dataclass
from functools import cached_property

from . import drafts
from .assume import CHUNK_TOKENS, ENDS, MID

PARTS = ("decode", "prefill")


@dataclass(frozen=True)
class Ask:
    """What `tpmodel plan` is asked; see the command line for what each field is."""

    model: str
    gpus: tuple
    parallel: str = "auto"
    layers: tuple = None
    link: str = None  # not said: through host memory, and with peer access beside it
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
    prompt: int = None
    max_num_seqs: int = None
    max_num_batched_tokens: int = None
    text_only: bool = False
    repository: str = None
    cpu_offload_gib: float = None
    host: str = None
    slot: str = None
    quant: str = None
    weights_gib: float = None
    kernel: str = None
    accepted_per_draft: float = None
    acceptance_length: float = None

    @property
    def batch_tokens(self):
        """Tokens that one pass takes at most: as said, or as a line of ours says; never fewer than sequences."""
        return self.max_num_batched_tokens or max(CHUNK_TOKENS, self.batch, self.max_num_seqs or 0)


@dataclass(frozen=True)
class Machine:
    """Cards, the link between them, what is taken of each before the start, and the names of the user's other links."""

    cards: tuple
    link: object
    reserves_bytes: tuple
    other_links: tuple = ()


@dataclass(frozen=True)
class Speed:
    """Tokens/s at the slow end, in the middle, at the fast end; and the terms of the time in seconds, slow to fast."""

    rates: tuple
    terms: dict
    prompt_tokens: int = None

    @property
    def limited_by(self):
        """The longest term of the middle."""
        return max(self.terms, key=lambda name: self.terms[name][MID])

    def document(self):
        """As JSON has it; terms in ms, the fastest first."""
        terms = {name: {f"{end}_ms": seconds * 1e3 for end, seconds in zip(reversed(ENDS), slow_to_fast)}
                 for name, slow_to_fast in self.terms.items()}
        found = {**dict(zip(ENDS, self.rates)), "unit": "token/s", "limited_by": self.limited_by, "terms": terms}
        return found | ({"prompt_tokens": self.prompt_tokens} if self.prompt_tokens else {})


@dataclass(frozen=True)
class Way:
    """One way to split: where the weights are, what is left on each card, the longest context at each end, how fast."""

    placement: object
    util: float
    memories: tuple
    longest: tuple
    context_tokens: int
    fits: bool
    pool: object  # vLLM's own plan for the cache, in the middle
    at_once: int  # sequences, where the line must say how many
    setting: object  # the engine's, with the sequences that may run at once
    count: object = None  # gives the Users, which take long to count; None of an embedding model
    decode: Speed = None  # None where it does not fit, and of an embedding model
    prefill: Speed = None

    @cached_property
    def users(self):
        """What it gives to many users."""
        return self.count() if self.count else None

    @property
    def holds_tokens(self):
        """The longest context, in the middle."""
        return self.longest[MID]

    @property
    def label(self):
        """In words: one, tp or tp2 of more, tp with offload, pp 20,14, tp2 x pp 20,14, 2 replicas of tp2."""
        placed = self.placement
        mixed = len(placed.layers) > 1 or placed.replicas > 1 or placed.idle
        parts = [f"tp{placed.ranks}" if mixed else "tp"] * (placed.ranks > 1)
        parts += [f"pp {','.join(map(str, placed.layers))}"] * (len(placed.layers) > 1)
        words = " x ".join(parts)
        if placed.replicas > 1:
            words = f"{placed.replicas} replicas{' of ' if words else ''}{words}"
        return " with ".join(filter(None, [words, "offload" * bool(placed.offloaded_bytes)])) or "one"

    def rate(self, part):
        """The middle rate of decode or prefill; 0 where it does not fit."""
        return getattr(self, part).rates[MID] if self.fits else 0.0

    def row(self):
        """As one row of the comparison."""
        speeds = {part: (speed := getattr(self, part)) and dict(zip(ENDS, speed.rates)) for part in PARTS}
        return {"kind": self.placement.kind, "label": self.label, **self.placement.document(),
                "users": self.users and self.users.document(), "fits": self.fits,
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
    refused: dict  # why not: the way that would be refused
    crossover: dict
    verdict: str
    command: str
    assumptions: tuple
    rival: object = None
    with_peer_access: dict = None  # the same of the best way, where the link was not said
    notes: tuple = ()  # what the line does not say of itself

    def log(self):
        """What vLLM of the version asked for prints when it has started so."""
        best, pool = self.best, self.best.pool
        tokens = pool.printed_tokens_old if self.setting.rules.printed == "old" else pool.printed_tokens
        part = lambda gpu, name: sum(row["bytes"] for row in gpu["parts"] if row["quantity"] == name)
        return {"num_blocks": pool.pool_blocks, "kv_cache_tokens": tokens,
                "max_concurrency": pool.concurrency, "max_model_len": self.ask.context or best.holds_tokens,
                "model_loading_bytes": [gpu["weights_bytes"] + part(gpu, "padding_bytes") for gpu in best.memories],
                "graph_bytes": [part(gpu, "graph_bytes") for gpu in best.memories],
                "available_bytes": [gpu["kv_pool_bytes"] for gpu in best.memories]}

    def document(self):
        """The plan as plain values: the one place where its JSON is made."""
        best, placed = self.best, self.best.placement
        return {
            "gpus": [dict(memory) for memory in best.memories],
            "max_context_tokens": best.holds_tokens, "max_context_range": dict(zip(ENDS, best.longest)),
            "fits": best.fits, "context_tokens": best.context_tokens,
            **{part: (speed := getattr(best, part)) and speed.document() for part in PARTS}, "util": best.util,
            "runner": "pooling" if self.setting.pooling else "generate",
            "split": {"kind": placed.kind, "label": best.label, **placed.document(),
                      "offloaded_bytes": placed.offloaded_bytes},
            "log": self.log(),
            "compared": [way.row() for way in self.tried], "users": best.users and best.users.document(),
            "crossover": self.crossover, "next_best": self.rival and self.rival.document(), "command": self.command,
            "notes": list(self.notes),
            "link": self.machine.link.key, "link_name": self.machine.link.name,
            "other_links": list(self.machine.other_links), "with_peer_access": self.with_peer_access,
            "drafts": drafts.document(self.ask), "verdict": self.verdict, "refused": list(self.refused),
            "assumptions": list(self.assumptions)}
