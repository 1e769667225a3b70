"""Links between GPUs by name. A transport that uses the lanes is measured once, and scaled by the line rate."""

from dataclasses import replace
from functools import cache
from itertools import product

from .assumptions import ends
from .sourced import load

FILE = "links.toml"
TRANSFERS = {3: 8, 4: 16, 5: 32}  # GT/s and lane of each PCIe generation
LANES = (4, 8, 16)
NAMES = {"p2p": "NCCL with peer access", "oneshot": "One-shot kernel over peer access",
         "mailbox": "Mailbox in host memory", "staged": "Copies staged in host memory"}


def listed():
    """The links that have numbers of their own, by key."""
    return load(FILE)


@cache
def links():
    """Every link by key, those of other slots too."""
    found = dict(listed())
    for anchor in listed().values():
        for slot in product(TRANSFERS, LANES) if "transport" in anchor.said else ():
            scaled = _scaled(anchor, *slot)
            found.setdefault(scaled.key, scaled)
    return found


def line_bytes_per_s(generation, lanes):
    """What a PCIe slot moves in one direction at most: 128 bits of 130 are data.
    >>> round(line_bytes_per_s(5, 8) / 1e9, 1)
    31.5
    """
    return TRANSFERS[generation] * 1e9 * lanes * 128 / 130 / 8


def capped(entry, generation, lanes):
    """The link whose transport is not known, held to what a slot can do."""
    rate, line = entry.numbers["link_bytes_per_s"], line_bytes_per_s(generation, lanes)
    low, mid, high = (min(end, frac * line) for end, frac in zip(rate.base_range, ends("slot", "line_frac")))
    said = replace(rate, low=low, value=mid, high=high, unit="byte/s")
    return replace(entry, name=f"{entry.name}, PCIe {generation}.0 x{lanes}",
                   numbers=entry.numbers | {"link_bytes_per_s": said})


def _scaled(entry, generation, lanes):
    """The link in another slot: its bandwidth in proportion to the line rates, its latencies as they are."""
    kind, rate = entry.said["transport"], entry.numbers["link_bytes_per_s"]
    factor = TRANSFERS[generation] * lanes / TRANSFERS[int(entry.pcie_generation)] / entry.pcie_lanes
    said = replace(rate, value=rate.value * factor, low=rate.low * factor, high=rate.high * factor, kind="computed",
                   source=f"{entry.key} x {factor:g}, the ratio of the line rates", where="", note="")
    slot = {name: replace(entry.numbers[name], value=value, kind="computed", source="the slot asked for", where="")
            for name, value in (("pcie_generation", generation), ("pcie_lanes", lanes))}
    return replace(entry, key=f"{kind}-pcie{generation}-x{lanes}", name=f"{NAMES[kind]}, PCIe {generation}.0 x{lanes}",
                   numbers=entry.numbers | {"link_bytes_per_s": said} | slot)


def link(key):
    """The link `key`.
    >>> link("pcie5-x8-line-rate").link_bytes_per_s
    31500000000.0
    >>> link("p2p-pcie5-x16").link_bytes_per_s / link("p2p-pcie4-x8").link_bytes_per_s
    4.0
    """
    if key not in links():
        raise ValueError(f"{key!r} is not in {FILE}: it must be one of {', '.join(links())}")
    return links()[key]
