"""Hosts and slots by name: what decides an all-reduce between cards without a link of their own."""

import re
from fnmatch import fnmatch
from functools import cache

from .. import inputs
from .links import LANES, TRANSFERS, line_bytes_per_s
from .sourced import load

FILE, SLOTS = "hosts.toml", "slots.toml"
SLOT = re.compile(r"(?:pcie|pci-e|gen)?[ -]*([1-9])(?:\.0)?[ -]*x ?([0-9]{1,2})")


def hosts():
    """Every class of host by key."""
    return load(FILE)


def _named(entries, text):
    """The first entry with an alias of which the words stand side by side in the text; None without one."""
    said = re.findall("[a-z0-9]+", re.sub(r"\((?:r|tm)\)", " ", text.lower()))
    for entry in entries.values():
        for alias in (entry.key.replace("-", " "), *entry.said.get("aliases", ())):
            wanted = alias.split()
            if any(all(map(fnmatch, said[at:], wanted)) for at in range(len(said) - len(wanted) + 1)):
                return entry
    return None


@cache
def host(text):
    """The class of a host, by its key or as a machine prints its processor.
    >>> host("EPYC 7302 (Zen 2), 2 sockets").key, host("Xeon Gold 6430").key, host("AMD Ryzen 9 7950X").key
    ('epyc-zen2', 'sapphire-rapids', 'desktop')
    """
    found = hosts().get(text) or _named(hosts(), text)
    if found is None:
        raise inputs.refused("host", text, inputs.among(list(hosts()), text[:60]))
    return found


@cache
def slot(text):
    """(generation, lanes) of a slot by name; of several with / or a comma between, the slowest.
    >>> slot("pcie4-x8"), slot("PCIe 3.0 x16"), slot("OCuLink"), slot("5.0 x16 / 4.0 x4")
    ((4, 8), (3, 16), (4, 4), (4, 4))
    """
    found = []
    for part in re.split("[,/]", text):
        said, named = SLOT.fullmatch(part.strip().lower()), _named(load(SLOTS), part)
        one = tuple(map(int, said.groups())) if said else named and (int(named.pcie_generation), int(named.pcie_lanes))
        if not one or one[0] not in TRANSFERS or one[1] not in LANES:
            raise inputs.refused("slot", text, f"it must be a generation from {min(TRANSFERS)} to {max(TRANSFERS)} and "
                                 f"{', '.join(map(str, LANES))} lanes, such as pcie4-x8, or {', '.join(load(SLOTS))}")
        found.append(one)
    return min(found, key=lambda one: line_bytes_per_s(*one))
