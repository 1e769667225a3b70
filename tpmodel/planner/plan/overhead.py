"""What the engine takes of each GPU beside weights and cache: measured with this card or model, else part by part."""

from dataclasses import dataclass
from itertools import accumulate

from ...formula.view import View
from ..engine import starts
from ..engine.takes import Stage, taken
from ..shapes.models import models


@dataclass(frozen=True)
class Overhead:
    """Of one GPU: (least, middle, most), its parts as rows, and the view behind it, or the number that was measured."""

    ends: tuple
    parts: tuple
    behind: object


def measured(config, card):
    """The number of the card or of the model, where one was measured; None where the parts count."""
    own = (entry.numbers.get("overhead_bytes") for entry in (card, models().get(config.name)) if entry)
    return next(filter(None, own), None)


def of(config, card, setting, stage, gpus=1):
    """The Overhead of one GPU, of so many that serve together."""
    number = measured(config, card)
    if number is None:
        found, before = taken(config, setting, stage), starts.context(card, gpus)
        low, mid, high = before.base_range
        row = {"name": "CUDA's context", "quantity": "context_bytes", "bytes": mid, "low_bytes": low,
               "high_bytes": high, "counted": False, "less_with": "", "kind": before.kind, "source": before.source,
               "apart": "taken before the engine counts, out of what its share leaves"}
        return Overhead(found.ends, (*found.parts, row), found.view)
    low, mid, high = number.base_range
    row = {"name": "as measured", "quantity": "overhead_bytes", "bytes": mid, "low_bytes": low, "high_bytes": high,
           "counted": True, "less_with": "", "apart": "", "kind": number.kind, "source": number.source}
    return Overhead(number.base_range, (row,), View({"overhead_bytes": mid}, sources={"overhead_bytes": number}))


def of_plan(plan):
    """The Overhead behind the GPU of a plan that has least left for the cache."""
    best = plan.best
    least = min(range(len(best.memories)), key=lambda gpu: best.memories[gpu]["kv_pool_bytes"])
    return overheads(plan.config, best.placement, best.setting, stage_layers(plan.config, best.placement))[least]


def stage_layers(config, placement):
    """The Layers that each GPU of the placement holds."""
    ends = zip(accumulate(placement.layers), placement.layers)
    orders = [config.order[end - n : end] for end, n in ends]
    return [orders[placement.stage(gpu)] for gpu in range(len(placement.cards))]


def overheads(config, placement, setting, orders):
    """The Overhead of each GPU of a placement; `orders` are the Layers that each holds."""
    count, known, found = len(placement.layers), {}, []
    for gpu, (card, order) in enumerate(zip(placement.cards, orders)):
        at = placement.stage(gpu)
        alike = f"{card.key} {at}"  # cards of one kind that share a stage
        if alike not in known:
            stage = Stage(tuple(order), at == 0, at == count - 1, placement.ranks)
            known[alike] = of(config, card, setting, stage, count * placement.ranks)
        found.append(known[alike])
    return found
