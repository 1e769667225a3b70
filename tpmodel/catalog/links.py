"""Links between GPUs by name. Transports that use the lanes are measured once, and scaled to other slots by the line rate."""

from dataclasses import replace
from functools import lru_cache

from .sourced import Entry, load

FILE = "links.toml"
TRANSFERS = {3: 8, 4: 16, 5: 32}  # GT/s and lane of each PCIe generation
LANES = (4, 8, 16)
MEASURED = {"p2p": ("p2p-pcie5-x16", 5, 16), "oneshot": ("oneshot-pcie5-x16", 5, 16), "mailbox": ("mailbox", 5, 8), "staged": ("staged", 5, 8)}
NAMES = {"p2p": "NCCL with peer access", "oneshot": "One-shot kernel over peer access", "mailbox": "Mailbox in host memory",
         "staged": "Copies staged in host memory"}
UNKNOWN_FRACS = (0.36, 0.36, 0.8)  # of the line rate, at most, where only the slot is known: staged copies, staged copies, peer access


def listed():
    """The links that have numbers of their own, by key."""
    return load(FILE)


@lru_cache(maxsize=None)
def links():
    """Every link by key, those of other slots too."""
    found = dict(listed())
    for kind, (anchor, generation, lanes) in MEASURED.items():
        for other in TRANSFERS:
            for width in LANES:
                key = f"{kind}-pcie{other}-x{width}"
                name = f"{NAMES[kind]}, PCIe {other}.0 x{width}"
                found.setdefault(key, _scaled(found[anchor], key, name, TRANSFERS[other] * width / TRANSFERS[generation] / lanes))
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
    ends = [min(end, frac * line) for end, frac in zip(rate.base_range, UNKNOWN_FRACS)]
    said = replace(rate, low=ends[0], value=ends[1], high=ends[2], unit="byte/s")
    return Entry(entry.key, f"{entry.name}, PCIe {generation}.0 x{lanes}", entry.numbers | {"link_bytes_per_s": said})


def _scaled(entry, key, name, factor):
    """The link at another line rate: its bandwidth in proportion, its latencies as they are."""
    rate = entry.numbers["link_bytes_per_s"]
    said = replace(rate, value=rate.value * factor, low=rate.low * factor, high=rate.high * factor, kind="computed",
                   source=f"{entry.key} x {factor:g}, the ratio of the line rates", where="", note="")
    return Entry(key, name, entry.numbers | {"link_bytes_per_s": said})


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
