"""Layers of each stage of a pipeline, searched within memory: for a step, for a prompt, for the longest context."""

from dataclasses import dataclass

from ..engine.versions import Refused
from . import assume, partition, placement
from .split import QUEUE


@dataclass(frozen=True)
class Stage:
    """What one stage has: bytes free for layers and their cache, and of its slowest GPU the rates."""

    free_bytes: float
    layer_bytes: float
    memory_bytes_per_s: float
    flop_per_s: float


def searched(config, machine, setting, ask, name):
    """The layers of each stage that are best for a step, for a prompt and for the context, without repeats."""
    try:
        placed = placement.place(config, machine.cards, name)
        stages, cache = _stages(config, machine, setting, ask, placed)
    except Refused:
        return []
    total, batch = len(config.order), placed.share(ask.batch)
    rooms = [max(0, int(one.free_bytes // (one.layer_bytes + cache * batch / total))) for one in stages]
    context = lambda i, held: -(stages[i].free_bytes / held - stages[i].layer_bytes)
    groups, chunks = min(batch, len(stages)), -(-(ask.prompt or assume.PROMPT_TOKENS) // ask.batch_tokens)
    chunks = QUEUE if setting.pooling else chunks
    jobs = (("memory_bytes_per_s", lambda slowest, together: max(groups * slowest, together)),
            ("flop_per_s", lambda slowest, together: (chunks - 1) * slowest + together))
    found = [partition.quickest(total, [getattr(one, name) for one in stages], rooms, job) for name, job in jobs]
    found.append(partition.cheapest(total, [total] * len(stages), context))
    return [layers for layers in dict.fromkeys(map(tuple, filter(None, found))) if layers != placed.layers]


def _stages(config, machine, setting, ask, placed):
    """([Stage, ...], bytes that one sequence caches on one GPU if it held all layers)."""
    setting = placement.on(placed, setting)
    _, budget = placement.budgets(placed.cards, ask.util, machine.reserves_bytes, placed.together)
    held = placement.memories(config, placed, setting, budget, assume.MID)
    found, count = [], len(placed.layers)
    for i in range(count):
        one, two = (placement.stage_bytes(config, count, i, n) / placed.ranks for n in (1, 2))
        free = [gpu["budget_bytes"] - gpu["overhead_bytes"] - (2 * one - two)
                for j, gpu in enumerate(held) if placed.stage(j) == i]
        cards = [card for j, card in enumerate(placed.cards) if placed.stage(j) == i]
        slowest = lambda name: min(card.values()[name] for card in cards)
        found.append(Stage(min(free), two - one, slowest("memory_bytes_per_s"), slowest("bf16_flop_per_s")))
    tokens = ask.context or ask.prompt or min(assume.PROMPT_TOKENS, setting.context_tokens)
    _, cached, states = placement.cache_bytes(config, setting, tokens)
    return found, cached + states
