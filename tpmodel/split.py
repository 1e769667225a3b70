"""The layers of each GPU: the partition that is fastest within the memory of all, and how fast a given one is.

For batches of documents or prompts (arithmetic, not decode): a long run is paced by its slowest stage.
"""

from . import inputs
from .catalog.gpus import gpu
from .catalog.links import link as find_link
from .catalog.models import model as find_model
from .formula import View
from .formulas import collectives, memory, pipeline, weights
from .units import GIB

MOST_GIB, MOST_TOKENS = 1e6, 1e9
BATCHES = 16  # of a run; fill and drain are shared among them
SHAPE = ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_elements", "vocabulary", "element_bytes",
         "loaded_extra_bytes", "overhead_bytes", "mfu_frac")


def fastest(layers, rates, rooms):
    """Layers of each stage so that the slowest stage is fastest; at least one, at most its room, on each.

    Each next layer goes to the GPU that would finish it first.

    >>> fastest(34, (112.6, 47.4), (27, 30))
    [24, 10]
    """
    if len(rates) > layers or sum(rooms) < layers or min(rooms) < 1:
        raise ValueError(f"no split fits: {layers} layers, at least one on each GPU, and room for {', '.join(map(str, rooms))}")
    found = [1] * len(rates)
    for _ in range(layers - len(rates)):
        free = [i for i in range(len(rates)) if found[i] < rooms[i]]
        found[min(free, key=lambda i: ((found[i] + 1) / rates[i], i))] += 1
    return found


def parse_reserves(text, count):
    """GiB taken before the engine starts on each of `count` GPUs, from a text like "1.4,0"; "0" stands for all."""
    found = [inputs.as_real(part) for part in text.split(",")]
    found = found * count if len(found) == 1 else found
    if len(found) != count or not all(number is not None and 0 <= number < MOST_GIB for number in found):
        raise inputs.refused("reserve-gib", text, f"it must be one number of GiB >= 0{f', or {count} with commas between' if count > 1 else ''}")
    return found


def _needs(entry, names):
    missing = [name for name in names if name not in entry.numbers]
    if missing:
        raise ValueError(f"{entry.key} has no {', '.join(missing)} in the catalog: a split needs its {', '.join(names)}")
    return entry


def _stage(v, card, layers, tables, room):
    here = v.extended(tables=tables, stage_layers=layers, flop_per_s=card.bf16_flop_per_s)
    return {"name": card.key, "layers": layers, "room_layers": room, "weights_bytes": here(weights.stage_bytes),
            "stage_s": here(pipeline.stage_s)}


def batch_s(stages, transfer_s, batches, overlapped=False):
    """Time of one batch through any number of stages: the slowest, the hand-over, a share of fill and drain.

    >>> batch_s([3.0, 4.0], 1.0, 3) == pipeline.pipeline_s(first_s=3, last_s=4, transfer_s=1, batches=3)
    True
    """
    longest = max(stages)
    handed = transfer_s if len(stages) > 1 else 0
    pace = max(longest, handed) if overlapped else longest + handed
    return pace + (sum(stages) - longest) / batches


def split(model, gpus, layers=None, util=0.9, reserve_gib="0", link="nccl-shm-wsl2", sequence_tokens=510, batch_tokens=8448,
          head=False):
    """The fastest partition of `model` over `gpus` (catalog names, first stage first), or the given one, as plain values."""
    if len(gpus) < 2:
        raise ValueError(f"gpu = {', '.join(gpus) or 'none'} is not accepted: a split needs at least 2 GPUs")
    for name, value in (("tokens", sequence_tokens), ("batch-tokens", batch_tokens)):
        if not 1 <= value <= MOST_TOKENS:
            raise inputs.refused(name, value, f"it must be a number of tokens from 1 to {MOST_TOKENS:,.0f}")
    entry, cards = _needs(find_model(model), SHAPE), [_needs(gpu(name), ("vram_bytes", "bf16_flop_per_s")) for name in gpus]
    wire = _needs(find_link(link), ("link_bytes_per_s",))
    count, total = len(cards), int(entry.layers)
    reserves = parse_reserves(reserve_gib, count)
    v = View({**entry.values(), **wire.values(), "sequence_tokens": sequence_tokens, "tokens": batch_tokens,
              "utilisation_frac": util}).derived({
        "layer_parameters": lambda v: v(weights.layer_parameters),
        "layer_bytes": lambda v: v(weights.layer_bytes),
        "embedding_bytes": lambda v: v(memory.embedding_bytes),
        "layer_flop": lambda v: v(pipeline.layer_flop),
        "message_bytes": lambda v: v(collectives.allreduce_payload_bytes)})
    tables = [int(i == 0) + int(head and i == count - 1) for i in range(count)]
    rooms = [int(v(weights.room_layers, tables=held, usable_bytes=v(
        weights.usable_bytes, reported_bytes=card.values().get("reported_bytes", card.vram_bytes), reserve_bytes=reserve * GIB)))
        for card, held, reserve in zip(cards, tables, reserves)]
    rates = [card.bf16_flop_per_s for card in cards]
    found = list(inputs.layers(layers, "layers", count, total)) if layers is not None else fastest(total, rates, rooms)
    stages = [_stage(v, *row) for row in zip(cards, found, tables, rooms)]
    fits = all(n <= room for n, room in zip(found, rooms))
    mfu, wires = (e.numbers[n].base_range for e, n in ((entry, "mfu_frac"), (wire, "link_bytes_per_s")))
    fast = [card.numbers["bf16_flop_per_s"].base_range[2] for card in cards]
    speeds = {}
    for end, fraction, bandwidth, at in (("low", mfu[0], wires[0], rates), ("mid", mfu[1], wires[1], rates),
                                         ("high", mfu[1], wires[2], fast)):
        seconds = [v(pipeline.stage_s, stage_layers=n, flop_per_s=r, mfu_frac=fraction) for n, r in zip(found, at)]
        handed = v(pipeline.transfer_s, link_bytes_per_s=bandwidth)
        speeds[end] = v(pipeline.tokens_per_s, pass_s=batch_s(seconds, handed, BATCHES, end == "high")) if fits else 0.0
    return {"layers": found, "tokens_per_s": speeds, "limited_by": _limit(v, found, stages, rates, total, layers),
            "env": {"VLLM_PP_LAYER_PARTITION": ",".join(map(str, found)), "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                    "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(count)))},
            "fits": fits, "gpus": stages}


def _limit(v, found, stages, rates, total, given):
    """What a faster run would need, in words."""
    for stage in stages:
        if stage["layers"] > stage["room_layers"]:
            return f"memory of {stage['name']}: room for {stage['room_layers']} layers"
    if given is None and found != fastest(total, rates, [total] * len(rates)):
        full = [stage["name"] for stage in stages if stage["layers"] == stage["room_layers"]]
        return f"memory of {full[0]}"
    slowest = max(stages, key=lambda stage: stage["stage_s"])
    if v(pipeline.transfer_s) > slowest["stage_s"]:
        return "the link between the GPUs"
    return f"arithmetic of {slowest['name']}"
