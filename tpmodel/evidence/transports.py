"""The link of the catalog that a row of measured data names, by transport, slot and cards; and how its cards share a model."""

import re

from ..catalog.gpus import by_name, gpu
from ..catalog.links import LANES, TRANSFERS, capped, link, links
from .checks import Unusable

SLOTS = {"p2p": "p2p", "p2p-oneshot": "oneshot", "mailbox": "mailbox", "staged": "staged"}
SERVERS = {"MI100": "shm-mi100", "H100": "shm-h200", "H200": "shm-h200", "H20": "shm-h200", "A100": "shm-h200", "B200": "shm-h200"}
BRIDGED = re.compile("3090|A6000|2080")  # cards that an NVLink bridge joins; others have a switch or a mesh
USUAL = 4, 16  # generation and lanes of a card that the catalog does not have
MOST_RANKS = 1024


def of(line):
    """The link of a row with the columns link, gpu, pcie_gen, lanes; a single card needs none and is given the unknown one."""
    name, card = line.text("link", "none"), line.text("gpu")
    slot = line.text("pcie_gen") and line.text("lanes") and _slot(line, card)
    if name in ("none", "pcie-unknown"):
        return capped(link("pcie-unknown"), *slot) if slot else link("pcie-unknown")
    if name == "shm":
        return link(next((key for part, key in SERVERS.items() if part in card), "shm"))
    if name == "nvlink":
        return link("nvlink-bridge" if BRIDGED.search(card) else "nvlink-h200")
    if name not in SLOTS:
        raise Unusable(f"link = {name[:40]!r} is not accepted: it must be one of none, pcie-unknown, shm, nvlink, {', '.join(SLOTS)}")
    if name in links() and not slot:
        return link(name)
    return link("{}-pcie{}-x{}".format(SLOTS[name], *(slot or _slot(line, card))))


def _slot(line, card):
    """(generation, lanes) as the row says, or as the card has at best."""
    generation, lanes = (line.number(name, best) for name, best in zip(("pcie_gen", "lanes"), _best(card)))
    if generation not in TRANSFERS or lanes not in LANES:
        raise Unusable(f"PCIe {generation}.0 x{lanes} is not accepted: pcie_gen must be one of {', '.join(map(str, TRANSFERS))}, "
                       f"lanes one of {', '.join(map(str, LANES))}")
    return generation, lanes


def _best(card):
    """(generation, lanes) of the slot that a card can use at best."""
    try:
        found = gpu(by_name(card))
        return int(found.pcie_generation), int(found.pcie_lanes)
    except (ValueError, AttributeError):
        return USUAL


def split_of(line):
    """(tensor-parallel ranks, pipeline stages) of a row with the columns tp, pp and, where given, gpus."""
    ranks, stages = (line.number(name, 1, least=1, most=MOST_RANKS) for name in ("tp", "pp"))
    cards = line.number("gpus", ranks * stages, least=1, most=MOST_RANKS)
    if ranks * stages != cards:
        raise Unusable(f"tp x pp = {ranks * stages} is not accepted: it must be gpus = {cards}")
    return ranks, stages
