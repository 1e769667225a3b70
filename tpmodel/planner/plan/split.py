"""The layers of each GPU that make a long run of documents or prompts fastest within the memory of all."""

from dataclasses import replace

from ... import inputs
from ...catalog.gpus import gpu
from ...catalog.links import link as find_link
from ...formula.units import many
from ...formula.vocabulary import check
from ..engine.takes import Stage
from ..engine.versions import Setting
from ..shapes.layers import Module
from ..shapes.models import find_config
from . import assume, one_pass, overhead, placement
from .machine import CARD_NEEDS, LINK_NEEDS, needed
from .partition import fastest, parse_reserves

MOST_TOKENS = 1e9
QUEUE = 16  # passes of a long run; fill and drain are shared among them


def documents(setting, tokens, batch_tokens, **more):
    """The Job of a long queue of documents of so many tokens: full passes; each token meets all of its own document."""
    return one_pass.Job(setting, batch_tokens, tokens / 2, batch_tokens / tokens, QUEUE, waits=False, **more)


def split(model, gpus, layers=None, util=0.9, reserve_gib="0", link="nccl-shm-wsl2", sequence_tokens=510,
          batch_tokens=8448, head=False):
    """The fastest partition of `model` over `gpus` (first stage first), or the given one, as plain values."""
    if len(gpus) < 2:
        raise ValueError(f"gpu = {', '.join(gpus) or 'none'} is not accepted: a split needs at least 2 GPUs")
    config, cards, wire = find_config(model), tuple(map(gpu, gpus)), find_link(link)
    if head and not any(module.name == "head" for module in config.modules):
        own = Module("head", config.vocabulary * config.hidden, "bf16", 16, 1.0)
        config = replace(config, modules=(*config.modules, own))
    for entry in (*cards, wire):
        needed(entry, LINK_NEEDS if entry is wire else CARD_NEEDS, "split")
    for name, value in (("tokens", sequence_tokens), ("batch-tokens", batch_tokens)):
        if not 1 <= value <= MOST_TOKENS:
            raise inputs.refused(name, value, f"it must be a number of tokens from 1 to {MOST_TOKENS:,.0f}")
    count, total, pace = len(cards), len(config.order), [card.bf16_flop_per_s for card in cards]
    _, budget = placement.budgets(cards, check("utilisation_frac", util), parse_reserves(reserve_gib, count))
    rooms = []
    for i, (card, taken) in enumerate(zip(cards, budget)):
        one, two = (placement.stage_bytes(config, count, i, n) for n in (1, 2))
        layer = two - one  # what is left of a stage of one layer, it holds whatever its layers
        stage = Stage(config.order[:-(-total // count)], i == 0, i == count - 1, 1)
        free = taken - overhead.of(config, card, Setting(batch_tokens=int(batch_tokens)), stage).ends[1] - (one - layer)
        rooms.append(max(0, int(free // layer)))
    found = fastest(total, pace, rooms) if layers is None else inputs.layers(layers, "layers", count, total)
    placed = placement.place(config, cards, "pp", found)
    job = documents(Setting(), sequence_tokens, batch_tokens)
    busy = [v.busy_s for v in one_pass.stages(config, placed, wire, job, assume.MID)]
    stages = [{"name": card.key, "layers": n, "room_layers": room, "weights_bytes": held, "stage_s": seconds}
              for card, n, room, held, seconds in zip(cards, found, rooms, placed.weights_bytes, busy)]
    fits = all(n <= room for n, room in zip(found, rooms))
    speeds = one_pass.rates(one_pass.terms(config, placed, wire, job), (job.passes * job.tokens if fits else 0.0,) * 3)
    return {"layers": list(found), "tokens_per_s": dict(zip(assume.ENDS, speeds)),
            "limited_by": _limit(stages, pace, total, layers),
            "env": {"VLLM_PP_LAYER_PARTITION": ",".join(map(str, found)), "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                    "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(count)))},
            "fits": fits, "gpus": stages}


def _limit(stages, pace, total, given):
    """What a faster run would need, in words."""
    for stage in stages:
        if stage["layers"] > stage["room_layers"]:
            return f"memory of {stage['name']}: room for {many(stage['room_layers'], 'layer')}"
    if given is None and [stage["layers"] for stage in stages] != fastest(total, pace, [total] * len(pace)):
        return f"memory of {next(stage['name'] for stage in stages if stage['layers'] == stage['room_layers'])}"
    return f"arithmetic of {max(stages, key=lambda stage: stage['stage_s'])['name']}"
