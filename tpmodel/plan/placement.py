"""Where the weights go, and what that leaves for the cache on each GPU."""

from dataclasses import dataclass, replace

from ..formulas import memory, weights
from ..vllm.engine import Refused, Setting, split_layers
from ..vllm.memory import plan_model, state_bytes, token_bytes
from .assume import OVERHEAD_BYTES

FIRST, LAST = ("embedding", "vision"), ("head", "mtp")  # modules of the first and of the last pipeline stage


@dataclass(frozen=True)
class Placement:
    """One way to put a model on GPUs. `layers` has one entry a pipeline stage; `ranks` GPUs share each."""

    kind: str  # one, tp, pp, offload
    cards: tuple
    layers: tuple
    ranks: int
    weights_bytes: tuple
    read_bytes: tuple  # of these, what one decode step reads on each GPU
    offloaded_bytes: float = 0.0
    copied_bytes: float = 0.0  # of these, what one decode step copies in: of a mixture of experts, the active ones


@dataclass(frozen=True)
class Memory:
    """What one GPU holds, and what is left; bytes. The overhead is the middle estimate."""

    name: str
    weights_bytes: float
    kv_bytes_per_token: float
    state_bytes: float
    overhead_bytes: float
    budget_bytes: float
    kv_pool_bytes: float


def _sum(config, names, size):
    return sum((m.bytes if size == "all" else m.bytes * m.read) for m in config.modules if m.name in names)


def _body(config, size):
    return sum((m.bytes if size == "all" else m.bytes * m.read) for m in config.modules if m.name not in FIRST + LAST)


def _stage(config, size, stages, i):
    """Bytes of stage i: its layers, and what only the first or the last holds."""
    layers = sum(stages)
    here = _body(config, size) * stages[i] / layers
    here += _sum(config, FIRST, size) if i == 0 else 0
    return here + (_sum(config, LAST, size) if i == len(stages) - 1 else 0)


def place(config, cards, kind, layers=None):
    """The Placement of a model. `layers` are those of each pipeline stage, or None for the engine's own split."""
    n, count = len(cards), len(config.order)
    if kind == "pp":
        stages = split_layers(count, n, layers)
        return Placement("pp", cards, stages, 1, *(tuple(_stage(config, size, stages, i) for i in range(n)) for size in ("all", "read")))
    if kind == "tp" and config.heads % n:
        raise Refused(f"ranks = {n} is not accepted: it must divide the {config.heads} attention heads of {config.name}")
    share = n if kind == "tp" else 1
    return Placement(kind, cards if kind == "tp" else cards[:1], (count,), share, (config.weights_bytes / share,) * share,
                     (config.read_bytes / share,) * share)


def budgets(cards, util, reserves):
    """What the engine may take on each GPU: the fraction of the whole card, at most what is free at start."""
    return [weights.usable_bytes(card.values().get("reported_bytes", card.vram_bytes), util, reserve)
            for card, reserve in zip(cards, reserves)]


def with_offload(placement, budget):
    """The same with as many weights in main memory as do not fit beside the high overhead and a small cache."""
    room = max(0.0, budget - max(OVERHEAD_BYTES)) * 0.9
    over = max(0.0, placement.weights_bytes[0] - room)
    whole, read = placement.weights_bytes[0], placement.read_bytes[0]
    return replace(placement, kind="offload", weights_bytes=(whole - over,), read_bytes=(max(1.0, read * (1 - over / whole)),),
                   offloaded_bytes=over, copied_bytes=read * over / whole)


def cache_bytes(config, setting, context_tokens, layers=None):
    """(per token, of all tokens, states) of one sequence on one GPU: the cache that `context_tokens` leave there."""
    per_token = total = states = 0.0
    for layer in (config.order if layers is None else layers):
        if layer.state:
            states += state_bytes(layer.state, setting)
        elif layer.kind != "none":
            one = token_bytes(layer, setting)
            per_token += one if layer.kind in ("full", "latent") else 0
            total += one * (min(context_tokens, layer.window_tokens) if layer.kind in ("window", "chunk") else context_tokens)
    return per_token, total, states


def stage_layers(config, placement):
    """The Layers that each GPU of the placement holds."""
    if placement.kind != "pp":
        return [config.order] * len(placement.cards)
    ends = [sum(placement.layers[: i + 1]) for i in range(len(placement.layers))]
    return [config.order[end - n : end] for end, n in zip(ends, placement.layers)]


def memories(config, placement, setting, budget, overhead_bytes):
    """The Memory of each GPU."""
    found = []
    for card, held, room, order in zip(placement.cards, placement.weights_bytes, budget, stage_layers(config, placement)):
        per_token, _, states = cache_bytes(config, setting, 0, order)
        pool = memory.kv_pool_bytes(vram_bytes=room, utilisation_frac=1, weights_bytes=held, overhead_bytes=overhead_bytes, ranks=1)
        found.append(Memory(card.key, held, per_token, states, overhead_bytes, room, pool))
    return tuple(found)


def longest(config, placement, setting, found):
    """Tokens of one sequence that the engine would accept, by its own block rules; 0 when the weights leave no room."""
    pool = min(gpu.kv_pool_bytes for gpu in found)
    if pool <= 0:
        return 0
    stages = placement.layers if placement.kind == "pp" else ()
    return int(plan_model(config, replace(setting, ranks=placement.ranks, stages=stages), pool).fitting_tokens)


def engine_setting(rules, kv_dtype, context_tokens, drafts, ranks=1):
    """The Setting of vLLM for one sequence of `context_tokens`."""
    return Setting(rules=rules, ranks=ranks, kv_dtype=kv_dtype, context_tokens=context_tokens, drafts=drafts, batch_tokens=2048)
