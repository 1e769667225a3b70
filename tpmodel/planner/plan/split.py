"""The layers of each GPU: the partition that is fastest within the memory of all, and how fast a given one is.

For batches of documents or prompts (arithmetic, not decode): a long run is paced by its slowest stage.
"""

from dataclasses import replace

from ... import inputs
from ...catalog.gpus import gpu
from ...catalog.links import link as find_link
from ...formula.units import GIB
from ...formula.vocabulary import check
from ..engine.versions import Setting
from ..shapes.layers import Module
from ..shapes.models import find_config
from . import assume, one_pass, placement
from .partition import fastest, parse_reserves

MOST_TOKENS = 1e9
BATCHES = 16  # of a run; fill and drain are shared among them
MID = assume.ENDS.index("mid")


def split(model, gpus, layers=None, util=0.9, reserve_gib="0", link="nccl-shm-wsl2", sequence_tokens=510, batch_tokens=8448,
          head=False):
    """The fastest partition of `model` over `gpus` (catalog names, first stage first), or the given one, as plain values.

    It is the planner's pipeline, asked for a long run of `sequence_tokens`-long documents in batches of `batch_tokens`.
    """
    if len(gpus) < 2:
        raise ValueError(f"gpu = {', '.join(gpus) or 'none'} is not accepted: a split needs at least 2 GPUs")
    config, cards, wire = _with_head(find_config(model), head), tuple(map(gpu, gpus)), find_link(link)
    for entry, names in [*((card, ("vram_bytes", "memory_bytes_per_s", "bf16_flop_per_s")) for card in cards),
                         (wire, ("link_bytes_per_s", "allreduce_latency_s"))]:
        missing = [name for name in names if name not in entry.numbers]
        if missing:
            raise ValueError(f"{entry.key} has no {', '.join(missing)} in the catalog: a split needs it")
    for name, value in (("tokens", sequence_tokens), ("batch-tokens", batch_tokens)):
        if not 1 <= value <= MOST_TOKENS:
            raise inputs.refused(name, value, f"it must be a number of tokens from 1 to {MOST_TOKENS:,.0f}")
    count, total = len(cards), len(config.order)
    _, budget = placement.budgets(cards, check("utilisation_frac", util), [gib * GIB for gib in parse_reserves(reserve_gib, count)])
    rooms = [_room(config, cards, budget, i) for i in range(count)]
    pace = [card.bf16_flop_per_s for card in cards]
    found = inputs.layers(layers, "layers", count, total) if layers is not None else fastest(total, pace, rooms)
    placed = placement.place(config, cards, "pp", found)
    job = one_pass.long_run(Setting(), sequence_tokens, batch_tokens, BATCHES)
    stages = [{"name": card.key, "layers": n, "room_layers": room, "weights_bytes": held, "stage_s": seconds} for card, n, room, held, seconds
              in zip(cards, found, rooms, placed.weights_bytes, one_pass.busy_s(config, placed, wire, job, MID))]
    fits = all(n <= room for n, room in zip(found, rooms))
    speeds = one_pass.rates(one_pass.terms(config, placed, wire, job), (BATCHES * batch_tokens if fits else 0.0,) * 3)
    return {"layers": list(found), "tokens_per_s": dict(zip(assume.ENDS, speeds)), "limited_by": _limit(stages, pace, total, layers),
            "env": {"VLLM_PP_LAYER_PARTITION": ",".join(map(str, found)), "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                    "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(count)))},
            "fits": fits, "gpus": stages}


def _with_head(config, head):
    """The model with an output head of its own, if asked for and not there."""
    if not head or any(module.name == "head" for module in config.modules):
        return config
    return replace(config, modules=(*config.modules, Module("head", config.vocabulary * config.hidden, "bf16", 16, 1.0)))


def _room(config, cards, budget, i):
    """Layers that fit on card i beside what a stage at its place holds whatever its layers, and the middle overhead."""
    one, two = (placement.stage_bytes(config, len(cards), i, n) for n in (1, 2))
    free = budget[i] - assume.overhead_bytes(config, cards[i], MID) - (one - (two - one))
    return max(0, int(free // (two - one)))


def _limit(stages, pace, total, given):
    """What a faster run would need, in words."""
    for stage in stages:
        if stage["layers"] > stage["room_layers"]:
            return f"memory of {stage['name']}: room for {stage['room_layers']} layers"
    if given is None and [stage["layers"] for stage in stages] != fastest(total, pace, [total] * len(pace)):
        return f"memory of {next(stage['name'] for stage in stages if stage['layers'] == stage['room_layers'])}"
    return f"arithmetic of {max(stages, key=lambda stage: stage['stage_s'])['name']}"
