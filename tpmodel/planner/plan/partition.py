"""Which layers go to which stage, and what is taken of each GPU before the start."""

from ... import inputs
from ...formula.units import GIB

MOST_GIB = 1e6


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
