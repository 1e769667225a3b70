"""Where the weights go, and what that leaves for the cache on each GPU."""

import math
from collections import Counter
from dataclasses import dataclass, replace

from ...formula.units import GIB
from ...formulas import memory, weights
from ..engine.memory import plan_model, state_bytes, token_bytes
from ..engine.versions import Refused, Setting, split_layers
from .assume import CHUNK_TOKENS, of_model, overhead_bytes

FIRST, LAST = ("embedding", "vision"), ("head", "mtp")  # modules of the first and of the last pipeline stage


@dataclass(frozen=True)
class Placement:
    """One way to put a model on GPUs. `layers` has one entry a pipeline stage; `ranks` GPUs share each."""

    kind: str  # one, tp, pp, offload
    cards: tuple
    layers: tuple
    ranks: int
    weights_bytes: tuple
    offloaded_bytes: float = 0.0  # in main memory, of all GPUs together


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


def whole(module):
    """All bytes of a module."""
    return module.bytes


def touched(tokens):
    """Of each module, the bytes that one pass of `tokens` tokens reads: each token draws its experts evenly, on its own.

    With one token the active experts, with many all of them; a dense module is read once, whatever the batch.
    """
    return lambda module: module.bytes * (1 - (1 - module.read) ** tokens)


def _sum(config, names, size):
    return sum(size(m) for m in config.modules if m.name in names)


def body_bytes(config, size=whole):
    """Bytes of all layers."""
    return sum(size(m) for m in config.modules if m.name not in FIRST + LAST)


def _stage(config, size, stages, i, tables):
    """Bytes of stage i: its layers, and what a stage at its place holds beside them."""
    return body_bytes(config, size) * stages[i] / sum(stages) + _ends_bytes(config, size, len(stages), i, tables)


def _ends_bytes(config, size, count, i, tables):
    """What only the first or the last of `count` stages holds, and the embedding table on the stages in `tables`."""
    here = _sum(config, ["vision"], size) if i == 0 else 0
    here += _sum(config, LAST, size) if i == count - 1 else 0
    return here + (_sum(config, ["embedding"], size) if i in tables else 0)


def stage_bytes(config, count, i, layers):
    """As loaded, of stage i of `count` with so many layers: its weights, and what this model's loading takes beside them."""
    extra = of_model(config.name, "loaded_extra_bytes")
    here = body_bytes(config, whole) * layers / len(config.order)
    tables = {0, count - 1} if _tied(config) else {0}  # the last stage needs a copy as its head
    return here + _ends_bytes(config, whole, count, i, tables) + (extra[1] if extra else 0.0)


def _tied(config):
    return any(m.name == "embedding" and m.read for m in config.modules)


def head_bytes(config):
    """The output head, which is the embedding table where the two are tied."""
    return _sum(config, ["embedding" if _tied(config) else "head"], whole)


def place(config, cards, kind, layers=None):
    """The Placement of a model. `layers` are those of each pipeline stage, or None for the engine's own split."""
    n, count = len(cards), len(config.order)
    if kind == "pp":
        stages = split_layers(count, n, layers)
        return Placement("pp", cards, stages, 1, tuple(stage_bytes(config, n, i, stages[i]) for i in range(n)))
    if kind == "tp":
        if config.heads % n:
            raise Refused(f"ranks = {n} is not accepted: it must divide the {config.heads} attention heads of {config.name}")
        for kv in {layer.kv_heads for layer in config.order if layer.kv_heads}:
            if kv % n and n % kv:
                raise Refused(f"ranks = {n} is not accepted: it must divide the {kv} key/value heads of {config.name}, or be a multiple of them")
    share = n if kind == "tp" else 1
    extra = of_model(config.name, "loaded_extra_bytes")
    return Placement(kind, cards if kind == "tp" else cards[:1], (count,), share, (config.weights_bytes / share + (extra[1] if extra else 0.0),) * share)


def reads(config, placement, tokens):
    """(bytes that each GPU reads of its weights in one pass of `tokens` tokens, bytes that are copied in from main memory)."""
    size = touched(tokens)
    if placement.kind == "pp":
        last = len(placement.layers) - 1
        return tuple(_stage(config, size, placement.layers, i, {last}) for i in range(last + 1)), 0.0
    total = sum(map(size, config.modules))
    copied = total * placement.offloaded_bytes / config.weights_bytes
    return ((total - copied) / placement.ranks,) * placement.ranks, copied


def budgets(cards, util, reserves):
    """(the fraction of the memory that can be asked for, what the engine then takes of each GPU).

    vLLM has one fraction for all GPUs and refuses to start where less than that is free: the fullest GPU decides.
    """
    sizes = [card.values().get("reported_bytes", card.vram_bytes) for card in cards]
    for card, size, reserve in zip(cards, sizes, reserves):
        if reserve >= size:
            raise ValueError(f"reserve-gib = {reserve / GIB:g} is not accepted: {card.key} has {size / GIB:.2f} GiB in all")
    free = min(weights.usable_bytes(size, util, reserve) / size for size, reserve in zip(sizes, reserves))
    used = util if math.isclose(free, util) else math.floor(free * 1000) / 1000
    return used, [used * size for size in sizes]


def with_offload(config, placement, setting, budget, batch):
    """The same with as many weights in main memory as do not fit beside the high overhead and the cache of the setting's context.

    The fullest GPU decides for all, as the engine's one number does.
    """
    pool = plan_model(config, setting, 0.0)
    room = min(have - overhead_bytes(config, card, 0) for card, have in zip(placement.cards, budget)) - batch * (pool.needed_bytes + pool.block_bytes)
    whole_bytes = placement.weights_bytes[0]
    held = max(1.0, min(whole_bytes, math.floor(room - 1)))  # a byte to spare: sums of fractions round, and the context must fit
    return replace(placement, kind="offload", weights_bytes=(held,) * placement.ranks, offloaded_bytes=(whole_bytes - held) * placement.ranks)


def cache_bytes(config, setting, context_tokens, layers=None):
    """(per token, of all tokens, states) of one sequence on one GPU: the cache that `context_tokens` leave there."""
    per_token = total = states = 0.0
    for layer, count in Counter(config.order if layers is None else layers).items():
        if layer.state:
            states += count * state_bytes(layer.state, setting)
        elif layer.kind != "none":
            one = count * token_bytes(layer, setting)
            per_token += one if layer.kind in ("full", "latent") else 0
            total += one * (min(context_tokens, layer.window_tokens) if layer.kind in ("window", "chunk") else context_tokens)
    return per_token, total, states


def stage_layers(config, placement):
    """The Layers that each GPU of the placement holds."""
    if placement.kind != "pp":
        return [config.order] * len(placement.cards)
    ends = [sum(placement.layers[: i + 1]) for i in range(len(placement.layers))]
    return [config.order[end - n : end] for end, n in zip(ends, placement.layers)]


def loads(config, placement, tokens):
    """(card, layers, bytes read in a pass of `tokens` tokens) of each GPU; of GPUs that do the same, of one."""
    rows = zip(placement.cards, stage_layers(config, placement), reads(config, placement, tokens)[0])
    return list(rows) if placement.kind == "pp" else list({row[0].key: row for row in rows}.values())


def memories(config, placement, setting, budget, end):
    """The Memory of each GPU, with the overhead of one end."""
    found = []
    for card, held, room, order in zip(placement.cards, placement.weights_bytes, budget, stage_layers(config, placement)):
        per_token, _, states = cache_bytes(config, setting, 0, order)
        overhead = overhead_bytes(config, card, end)
        pool = memory.kv_pool_bytes(vram_bytes=room, utilisation_frac=1, weights_bytes=held, overhead_bytes=overhead, ranks=1)
        found.append(Memory(card.key, held, per_token, states, overhead, room, pool))
    return tuple(found)


def longest(config, placement, setting, found, batch=1):
    """Tokens that each of `batch` sequences may have at once, by the engine's own block rules; 0 when the weights leave no room."""
    room = min(gpu.kv_pool_bytes for gpu in found)
    return int(pool(config, placement, setting, room / batch).fitting_tokens) if room > 0 else 0


def pool(config, placement, setting, pool_bytes):
    """The engine's own plan for so many bytes of cache on the fullest GPU."""
    stages = placement.layers if placement.kind == "pp" else ()
    return plan_model(config, replace(setting, ranks=placement.ranks, stages=stages), pool_bytes)


def engine_setting(rules, kv_dtype, context_tokens, drafts, ranks=1):
    """The Setting of vLLM for one sequence of `context_tokens`."""
    return Setting(rules=rules, ranks=ranks, kv_dtype=kv_dtype, context_tokens=context_tokens, drafts=drafts, batch_tokens=CHUNK_TOKENS)
