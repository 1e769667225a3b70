"""How GPUs share a model, by name; which layers go to which stage; what is taken of each GPU before the start."""

import re
from dataclasses import dataclass

from ... import inputs
from ...formula.units import GIB

MOST_GIB = 1e6
WAYS = ("auto, one, offload, tp, pp, replicas, or mixed with numbers, such as tp2xpp2, replicas2xtp2, pp3[18,9,9], "
        "tp2+offload")
PART = re.compile(r"(one|tp|pp|replicas)([1-9][0-9]{0,2})?(?:\[([0-9,]+)\])?")


@dataclass(frozen=True)
class Split:
    """`ranks` GPUs share each of the `stages` of each of the `replicas`; `layers` of each stage, if said."""

    ranks: int = 1
    stages: int = 1
    replicas: int = 1
    layers: tuple = None
    offload: bool = False

    gpus = property(lambda self: self.ranks * self.stages * self.replicas, doc="How many there are of them.")

    @property
    def kind(self):
        """In one word."""
        mixed = "tp-pp" if self.ranks > 1 and self.stages > 1 else "tp" if self.ranks > 1 else "pp"
        return "replicas" if self.replicas > 1 else "one" if self.gpus == 1 else mixed


def split(name, count, layers=None):
    """The Split of a name on `count` GPUs: tp, pp or replicas without a number take the GPUs that are left.

    >>> split("tp2xpp", 4), split("pp3[18,9,9]", 3).layers, split("replicas", 2).kind
    (Split(ranks=2, stages=2, replicas=1, layers=None, offload=False), (18, 9, 9), 'replicas')
    """
    text, _, more = name.partition("+")
    text, more = ("one", text) if text == "offload" and not more else (text, more)
    found, free = {}, []
    for part in map(PART.fullmatch, text.split("x")):
        if not part or part[1] in found or more not in ("", "offload") or part[3] and part[1] != "pp":
            raise inputs.refused("parallel", name, f"it must be {WAYS}")
        found[part[1]] = 1 if part[1] == "one" else int(part[2] or 1)
        free += [part[1]] * (part[1] != "one" and not part[2])
        layers = inputs.layers(part[3]) if part[3] else layers
    taken = found.get("tp", 1) * found.get("pp", 1) * found.get("replicas", 1)
    if free:
        found[free[0]] = count // taken
    made = Split(found.get("tp", 1), found.get("pp", 1), found.get("replicas", 1), layers and tuple(layers),
                 more == "offload")
    if len(free) > 1 or not 1 <= made.gpus <= count or free and found[free[0]] < 2:
        raise inputs.refused("parallel", name, f"it must be {WAYS}, for {count} GPU{'s' * (count > 1)}")
    return made


def fastest(layers, rates, rooms):
    """Layers of each stage so that the slowest stage is fastest; at least one, at most its room, on each.

    >>> fastest(34, (112.6, 47.4), (27, 30))
    [24, 10]
    """
    if len(rates) > layers or sum(rooms) < layers or min(rooms) < 1:
        room = ", ".join(map(str, rooms))
        raise ValueError(f"no split fits: {layers} layers, at least one on each GPU, and room for {room}")
    found = [1] * len(rates)
    for _ in range(layers - len(rates)):  # each next layer goes to the GPU that would finish it first
        free = [i for i, (held, room) in enumerate(zip(found, rooms)) if held < room]
        found[min(free, key=lambda i: (found[i] + 1) / rates[i])] += 1
    return found


def parse_reserves(text, count):
    """Bytes taken before the engine starts on each of `count` GPUs, from GiB like "1.4,0"; "0" stands for all."""
    found = [inputs.as_real(part) for part in text.split(",")]
    found = found * count if len(found) == 1 else found
    if len(found) != count or not all(number is not None and 0 <= number < MOST_GIB for number in found):
        more = f", or {count} with commas between" if count > 1 else ""
        raise inputs.refused("reserve-gib", text, f"it must be one number of GiB >= 0{more}")
    return tuple(number * GIB for number in found)
