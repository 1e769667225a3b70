"""How GPUs share a model, by name; which layers go to which stage; what is taken of each GPU before the start."""

import re
from dataclasses import dataclass
from itertools import product

from ... import inputs
from ...formula.units import GIB, many

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
        raise inputs.refused("parallel", name, f"it must be {WAYS}, for {many(count, 'GPU')}")
    return made


def fastest(layers, rates, rooms):
    """Layers of each stage so that the slowest stage is fastest; at least one, at most its room, on each.

    >>> fastest(34, (112.6, 47.4), (27, 30))
    [24, 10]
    """
    return cheapest(layers, rooms, lambda i, held: held / rates[i])


def cheapest(layers, rooms, cost):
    """Layers of each stage: each next layer goes where `cost(stage, its layers then)` is least, and room is.

    >>> cheapest(34, (27, 30), lambda i, held: 2 * held if i else held)
    [23, 11]
    """
    if len(rooms) > layers or sum(rooms) < layers or min(rooms) < 1:
        room = ", ".join(map(str, rooms))
        raise ValueError(f"no split fits: {many(layers, 'layer')}, at least one on each GPU, and room for {room}")
    found = [1] * len(rooms)
    for _ in range(layers - len(rooms)):
        free = [i for i, (held, room) in enumerate(zip(found, rooms)) if held < room]
        found[min(free, key=lambda i: cost(i, found[i] + 1))] += 1
    return found


def quickest(layers, rates, rooms, seconds):
    """Layers of each stage for which `seconds(slowest stage, all stages together)` is least; None where no split fits.

    Of all splits whose slowest stage takes no longer than a pace, that with most on the fastest GPUs has the least sum.

    >>> quickest(34, (2, 1), (27, 30), lambda slowest, together: together)  # one pass: all that fit, on the faster
    [27, 7]
    >>> quickest(34, (2, 1), (27, 30), lambda slowest, together: 100 * slowest + together)  # a hundred behind it
    [23, 11]
    """
    found, by_rate = [], sorted(range(len(rates)), key=lambda i: -rates[i])
    for pace, held in product(rates, range(1, layers + 1)):
        most = [min(room, int(held * (rate / pace))) for rate, room in zip(rates, rooms)]
        if min(most) >= 1 and sum(most) >= layers:
            left, split = layers - len(rates), [1] * len(rates)
            for i in by_rate:
                split[i] += min(left, most[i] - 1)
                left -= split[i] - 1
            times = [held / rate for held, rate in zip(split, rates)]
            found.append((seconds(max(times), sum(times)), max(times), split))
    return min(found)[-1] if found else None


def parse_reserves(text, count):
    """Bytes taken before the engine starts on each of `count` GPUs, from GiB like "1.4,0"; "0" stands for all."""
    found = [inputs.as_real(part) for part in text.split(",")]
    found = found * count if len(found) == 1 else found
    if len(found) != count or not all(number is not None and 0 <= number < MOST_GIB for number in found):
        more = f", or {count} with commas between" if count > 1 else ""
        raise inputs.refused("reserve-gib", text, f"it must be one number of GiB >= 0{more}")
    return tuple(number * GIB for number in found)
