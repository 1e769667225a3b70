"""Links between GPUs by name. A transport that uses the lanes is measured once, and scaled by the line rate."""

from dataclasses import replace
from functools import cache
from itertools import product

from .. import inputs
from .sourced import load

FILE = "links.toml"
TRANSFERS = {1: 2500, 2: 5000, 3: 8000, 4: 16000, 5: 32000}  # MT/s and lane of each PCIe generation
CODED = {1: (8, 10), 2: (8, 10)}  # bits of data in bits sent; later generations: 128 of 130
LANES = (1, 2, 4, 8, 16)
NAMES = {"p2p": "NCCL with peer access", "oneshot": "One-shot kernel over peer access",
         "mailbox": "Mailbox in host memory", "staged": "Copies staged in host memory"}


@cache
def listed():
    """The links that have numbers of their own, by key; through host memory as of a host that is not said."""
    found, rate = dict(load(FILE)), load("hosts.toml")["not-said"].numbers["host_bytes_per_s"]
    found["shm"] = replace(found["shm"], numbers={"link_bytes_per_s": rate} | found["shm"].numbers)
    return found


@cache
def links():
    """Every link by key, those of other slots too: from the newest slot measured that is no newer, or the oldest."""
    found, anchors = dict(listed()), sorted((one for one in listed().values() if one.said.get("transport") in NAMES),
                                            key=lambda one: one.pcie_generation)
    for kind, generation, lanes in product(NAMES, TRANSFERS, LANES):
        mine = [one for one in anchors if one.said["transport"] == kind]
        older = [one for one in mine if one.pcie_generation <= generation]
        scaled = _scaled((older[-1:] or mine)[0], generation, lanes)
        found.setdefault(scaled.key, scaled)
    return found


def line_bytes_per_s(generation, lanes):
    """What a PCIe slot moves in one direction at most: 128 bits of 130 are data, before PCIe 3.0 8 of 10.
    >>> round(line_bytes_per_s(5, 8) / 1e9, 1), line_bytes_per_s(2, 16) / 1e9
    (31.5, 8.0)
    """
    data, sent = CODED.get(generation, (128, 130))
    return TRANSFERS[generation] * 1e6 * lanes * data / sent / 8


def _scaled(entry, generation, lanes):
    """The link in another slot: its bandwidth in proportion to the line rates, its latencies as they are."""
    kind, rate = entry.said["transport"], entry.numbers["link_bytes_per_s"]
    factor = line_bytes_per_s(generation, lanes) / line_bytes_per_s(int(entry.pcie_generation), int(entry.pcie_lanes))
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
    >>> link("p2p-pcie4-x16").link_bytes_per_s / link("p2p-pcie4-x8").link_bytes_per_s
    2.0
    """
    if key not in links():
        raise ValueError(f"{key!r} is not in {FILE}: {inputs.among(list(listed()), key)}, or of another slot: "
                         + ", ".join(f"{kind}-pcie4-x8" for kind in NAMES))
    return links()[key]
