"""The link that a row of measured data names: its transport, its slot, its host; how cards share its model."""

import re

from ...catalog import hosts
from ...catalog.assumptions import assumed
from ...catalog.gpus import by_name, gpu
from ...catalog.links import LANES, TRANSFERS, link, links
from ..plan.places import Place, link_at, own, unknown

SLOTS = {"p2p": "p2p", "p2p-oneshot": "oneshot", "mailbox": "mailbox", "staged": "staged"}
NAMES = ("none", "pcie-unknown", "shm", "nvlink", *SLOTS)
ACROSS = re.compile(r"across sockets|both sockets|two sockets|\bSYS\b", re.I)
WAYS_UP = re.compile(r"\b(one|two|three|four|[1-8]) (?:switch|root complex)(?:es)?\b", re.I)
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4}
SWITCH, BEHIND_ONE = re.compile(r"\bswitch(?:es)?\b|\bP(?:IX|XB)\b", re.I), re.compile(r"\bP(?:IX|XB)\b")
MOST_RANKS = 1024


def of(line):
    """The link of a row with the columns link, gpu, pcie_gen, lanes and, where known, slots, host_cpu and path; a
    single card needs none: it gets the unknown."""
    name, cards = line.text("link", "none"), [_card(name) for name in line.text("gpu").split("+")]
    slot, known = _said_slot(line, cards), any(card != assumed("card") for card in cards)
    here = _place(line, slot or (_slot(line, cards) if known else None), bool(slot))
    if name in ("none", "pcie-unknown"):
        return unknown(here)
    if name == "nvlink":
        return link(_own(cards, "nvlink"))
    if name == "shm":
        return _through_host(here, _own(cards, "host_link"))
    if name not in SLOTS:
        raise ValueError(f"link = {name[:40]!r} is not accepted: "
                       f"it must be one of {', '.join(NAMES)}")
    if name in links() and not slot:
        return link(name)
    return link_at(SLOTS[name], _place(line, slot or _slot(line, cards)))


def _own(cards, field):
    """What the cards say of their own link, or what is taken of any card."""
    return own(cards, field) or assumed("card").said[field]


def _through_host(here, own):
    """Through the memory of the row's host; of one that is not said, what was measured of these cards where it was."""
    told = here.host or here.sockets > 1 or here.shared or own == assumed("card").said["host_link"]
    return link_at("shm", here) if told else link(own)


def host_of(line):
    """The class of the row's host, or None where it is not told or is none that was measured."""
    try:
        return hosts.host(line.text("host_cpu"))
    except ValueError:
        return None


def place_of(line):
    """The Place of a row, with the slot where the row says it."""
    return _place(line, _said_slot(line, [_card(name) for name in line.text("gpu").split("+")]))


def _place(line, slot, said=True):
    """The same with a slot: the words of its host and its path name sockets, switches and root complexes."""
    path, host = f"{line.text('path')} {line.text('host_cpu')}", host_of(line)
    ways, ranks = WAYS_UP.search(path), line.number("ranks", line.number("tp", 2, least=1), least=1)
    fewer = bool(BEHIND_ONE.search(path)) or bool(ways) and NUMBERS.get(ways[1].lower(), 0) < ranks
    return Place(host, slot, said and bool(slot), 1 + bool(ACROSS.search(line.text("path") or path)),
                 fewer and bool(SWITCH.search(path)), fewer)


def _card(name):
    """The card of a name; one that the catalog does not hold is any card."""
    try:
        return gpu(by_name(name))
    except ValueError:
        return assumed("card")


def _said_slot(line, cards):
    """(generation, lanes) where the row says it, the slower of several; None where not."""
    if line.text("pcie_gen") and line.text("lanes"):
        return _slot(line, cards)
    return hosts.slot(line.text("slots")) if line.text("slots") else None


def _slot(line, cards):
    """(generation, lanes) as the row says, or as the cards have at best, the narrowest of several."""
    generation = line.number("pcie_gen", min(int(card.pcie_generation) for card in cards))
    lanes = line.number("lanes", min(int(card.pcie_lanes) for card in cards))
    if generation not in TRANSFERS or lanes not in LANES:
        listed = lambda numbers: f"one of {', '.join(map(str, numbers))}"
        raise ValueError(f"PCIe {generation}.0 x{lanes} is not accepted: "
                         f"pcie_gen must be {listed(TRANSFERS)}, lanes {listed(LANES)}")
    return generation, lanes


def split_of(line):
    """(tensor-parallel ranks, pipeline stages) of a row with the columns tp, pp and, where given, gpus."""
    ranks, stages = (line.number(name, 1, least=1, most=MOST_RANKS) for name in ("tp", "pp"))
    cards = line.number("gpus", ranks * stages, least=1, most=MOST_RANKS)
    if ranks * stages != cards:
        raise ValueError(f"tp x pp = {ranks * stages} is not accepted: it must be gpus = {cards}")
    return ranks, stages
