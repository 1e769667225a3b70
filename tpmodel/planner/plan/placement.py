"""Where the weights go, and what that leaves for the cache on each GPU."""

import math
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace

from ...catalog.gpus import memory
from ...formula.units import GIB
from ...formulas.memory import kv_pool_bytes
from ...formulas.weights import usable_bytes
from ..engine import starts
from ..engine.memory import FULL, RECENT, plan_model, state_bytes, token_bytes
from ..engine.versions import Refused, split_layers
from . import partition
from .assume import ENDS, MID, of_model
from .overhead import overheads, stage_layers

MOST_SEQUENCES = 4096  # that a plan looks for together
FIRST, LAST = ("embedding", "vision"), ("head", "mtp")  # modules of the first and of the last pipeline stage


@dataclass(frozen=True)
class Placement:
    """One way to put a model on GPUs. `layers` has one entry a pipeline stage; `ranks` GPUs share each stage of each
    of the `replicas`. GPUs stand replica by replica, in each stage by stage."""

    kind: str  # one, tp, pp, tp-pp, replicas, offload
    cards: tuple
    layers: tuple
    ranks: int
    weights_bytes: tuple
    replicas: int = 1
    offloaded: tuple = (0.0,)  # bytes in main memory, of each GPU
    idle: int = 0  # GPUs that hold nothing

    together = property(lambda self: len(self.cards) // self.replicas, doc="GPUs that serve one copy of the model.")
    offloaded_bytes = property(lambda self: sum(self.offloaded), doc="In main memory, of all GPUs together.")

    def stage(self, gpu):
        """The pipeline stage that a GPU holds, by its number."""
        return gpu // self.ranks % len(self.layers)

    def document(self):
        """As JSON has it."""
        return {"layers": list(self.layers), "ranks": self.ranks, "replicas": self.replicas}

    def share(self, batch):
        """The sequences of a batch that the fullest replica takes."""
        return -(-batch // self.replicas)


def bytes_of(config, names=(), tokens=None):
    """Bytes of the modules of these names, or of all layers; with `tokens`, those that a pass of so many reads."""
    found = [m for m in config.modules if (m.name in names if names else m.name not in FIRST + LAST)]
    return sum(m.bytes if tokens is None else touched(m, tokens) for m in found)


def touched(module, tokens):
    """Bytes of a module that so many tokens read: each draws its experts evenly, on its own; of a dense one, all."""
    return module.bytes * (1 - (1 - module.read) ** tokens)


def _extra(config):
    """What this model's loading takes beside its weights, on each GPU."""
    return (of_model(config.name, "loaded_extra_bytes") or (0.0, 0.0, 0.0))[MID]


def stage_bytes(config, count, i, layers, tokens=None):
    """Bytes that stage i of `count` with so many layers holds once loaded; with `tokens`, those that a pass reads."""
    loaded, last = tokens is None, i == count - 1
    table = i == 0 and loaded or last and _tied(config)  # the last stage needs a copy as its head
    beside = (("vision",), i == 0), (LAST, last), (("embedding",), table)
    body = bytes_of(config, tokens=tokens) * layers / len(config.order)
    ends = sum(bytes_of(config, names, tokens) for names, here in beside if here)
    return body + ends + (_extra(config) if loaded else 0)


def _tied(config):
    return any(m.name == "embedding" and m.read for m in config.modules)


def head_bytes(config):
    """The output head, which is the embedding table where the two are tied."""
    return bytes_of(config, ("embedding" if _tied(config) else "head",))


def place(config, cards, kind, layers=None):
    """The Placement of a model by a way's name, as partition.split has it. Layers of stages are vLLM's own if None."""
    way = partition.split(kind, len(cards), layers)
    no = f"ranks = {way.ranks} is not accepted: it must divide"
    if config.heads % way.ranks:
        raise Refused(f"{no} the {config.heads} attention heads of {config.name}")
    for kv in {layer.kv_heads for layer in config.order if layer.kv_heads}:
        if kv % way.ranks and way.ranks % kv:
            raise Refused(f"{no} the {kv} key/value heads of {config.name}, or be a multiple of them")
    stages, extra = split_layers(len(config.order), way.stages, way.layers), _extra(config)
    held = [(stage_bytes(config, way.stages, i, n) - extra) / way.ranks + extra for i, n in enumerate(stages)]
    each = tuple(one for one in held for _ in range(way.ranks)) * way.replicas
    return Placement(way.kind, cards[:way.gpus], stages, way.ranks, each, way.replicas, idle=len(cards) - way.gpus)


def reads(config, placement, tokens):
    """(bytes that each GPU reads of its weights in one pass of `tokens` tokens, bytes each copies in from main memory).
    """
    count, found = len(placement.layers), []
    for gpu, held in enumerate(placement.weights_bytes):
        stage = placement.stage(gpu)
        read = stage_bytes(config, count, stage, placement.layers[stage], tokens) / placement.ranks
        moved = placement.offloaded[gpu % len(placement.offloaded)]
        copied = read * moved / (held + moved)
        found.append((read - copied, copied))
    return tuple(zip(*found))


def budgets(cards, util, reserves, gpus=0):
    """(the one fraction of all memories that the fullest GPU has free, what the engine then takes of each GPU); where
    something is reserved, CUDA's context stands beside it, if so many GPUs that serve together are told."""
    sizes = [memory(card).base for card in cards]
    context = [starts.context(card, gpus).base if gpus else 0 for card in cards]
    for card, size, reserve, own in zip(cards, sizes, reserves, context):
        if reserve and reserve + own >= size:
            said = f"reserve-gib = {reserve / GIB:g} is not accepted: {card.key} has"
            before = f", and CUDA's context takes {own / GIB:.2f}" if own else ""
            raise ValueError(f"{said} {size / GIB:.2f} GiB in all{before}")
    beside = [reserve and reserve + own for reserve, own in zip(reserves, context)]
    free = min(usable_bytes(size, util, taken) / size for size, taken in zip(sizes, beside))
    used = util if math.isclose(free, util) else math.floor(free * 1000) / 1000
    return used, [used * size for size in sizes]


def with_offload(config, placement, setting, budget, batch, asked=None):
    """The same with in main memory as many bytes of each GPU as were asked for; or what, on the fullest GPU, does not
    fit beside the high overhead and the cache: vLLM takes one number for all. Only layers and the vision tower
    can be moved."""
    body, tower, stages = bytes_of(config), bytes_of(config, ("vision",)), map(placement.stage, range(len(budget)))
    movable = [(body * placement.layers[i] / len(config.order) + tower * (i == 0)) / placement.ranks for i in stages]
    if asked and asked > max(movable):
        said = f"at most {max(movable) / GIB:.1f} GiB, the layers of a GPU: embedding and head stay on it"
        raise Refused(f"cpu_offload_gib = {asked / GIB:g} is not accepted: {said}")
    if asked is None:
        pool = plan_model(config, on(placement, setting), 0.0)
        cache = placement.share(batch) * (pool.needed_bytes + pool.block_bytes)
        most = [one.ends[-1] for one in overheads(config, placement, setting, stage_layers(config, placement))]
        asked = max(held - math.floor(have - overhead - cache - 1)  # a byte: sums round
                    for overhead, have, held in zip(most, budget, placement.weights_bytes))
    moved = tuple(min(max(0.0, asked), most) for most in movable)
    return replace(placement, kind="offload", offloaded=moved,
                   weights_bytes=tuple(held - off for held, off in zip(placement.weights_bytes, moved)))


def on(placement, setting):
    """The engine's setting for GPUs that stand so."""
    return replace(setting, ranks=placement.ranks, stages=placement.layers if len(placement.layers) > 1 else ())


def cache_bytes(config, setting, context_tokens, layers=None):
    """(per token, of all tokens, states) of one sequence on one GPU: the cache that `context_tokens` leave there."""
    per_token = total = states = 0.0
    for layer, count in (config.alike if layers is None else Counter(layers)).items():
        if layer.state:
            states += count * state_bytes(layer.state, setting)
        elif layer.kind != "none":
            one = count * token_bytes(layer, setting)
            per_token += one if layer.kind in FULL else 0
            total += one * (min(context_tokens, layer.window_tokens) if layer.kind in RECENT else context_tokens)
    return per_token, total, states


def memories(config, placement, setting, budget, end):
    """{what: bytes} that each GPU holds, and what is left, with the overhead of one end."""
    found, orders = [], stage_layers(config, placement)
    taken = overheads(config, placement, setting, orders)
    for card, held, room, order, one in zip(placement.cards, placement.weights_bytes, budget, orders, taken):
        per_token, _, states = cache_bytes(config, setting, 0, order)
        overhead = one.ends[-1 - end]  # the most of it at the low end
        found.append({"name": card.key, "weights_bytes": held, "kv_bytes_per_token": per_token, "state_bytes": states,
                      "overhead_bytes": overhead, "budget_bytes": room,
                      "overhead_range": dict(zip(ENDS, one.ends)), "parts": list(one.parts),
                      "kv_pool_bytes": kv_pool_bytes(room, 1, held, overhead, ranks=1)})
    return tuple(found)


def longest(config, placement, setting, found, batch=1):
    """Tokens that each of `batch` sequences may have at once, by the engine's own block rules; 0 without room."""
    room = all(gpu["kv_pool_bytes"] > 0 for gpu in found)
    return int(pool(config, placement, setting, found, batch).fitting_tokens) if room else 0


def most(config, placement, setting, budget, tokens, asked=None):
    """The largest batch of so many tokens each that fits, started for as many (or as asked); 0 if not one sequence."""
    def started(batch):
        at_once = replace(setting, sequences=asked or placement.share(batch), context_tokens=tokens,
                          batch_tokens=max(setting.batch_tokens, asked or batch))
        return at_once, memories(config, placement, at_once, budget, MID)

    top, at = (asked or MOST_SEQUENCES) * placement.replicas, 1
    for _ in range(2):  # a guess by blocks, first as if started for one
        one = pool(config, placement, *started(at))
        at = min(top, max(1, placement.replicas * int(one.pool_blocks // (one.request_blocks + 1))))
    low, high, step = 0, top + 1, 1  # low fits, high does not
    while high - low > 1:
        fits = longest(config, placement, *started(at), at) >= tokens
        low, high = (at, high) if fits else (low, at)
        at = high - step if low == 0 else low + step if high > top else (low + high) // 2
        at, step = min(max(at, low + 1), high - 1), 2 * step
    return low


def at_once(config, placement, setting, found, tokens):
    """The largest batch of so many tokens each that fits an engine started with this setting, whose memories are
    `found`; 0 if not one sequence."""
    fits = lambda batch: longest(config, placement, setting, found, batch) >= tokens
    return bisect_right(range(1, setting.sequences * placement.replicas + 1), False, key=lambda batch: not fits(batch))


def pool(config, placement, setting, found, batch=1):
    """The engine's own plan for what each of `batch` sequences has of the cache on the fullest GPU."""
    room = max(0.0, min(gpu["kv_pool_bytes"] for gpu in found)) / placement.share(batch)
    return plan_model(config, on(placement, setting), room)
