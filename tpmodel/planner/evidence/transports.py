"""The link of the catalog that a row of measured data names by transport, slot and cards; how cards share its model."""

from ...catalog.assumptions import assumed
from ...catalog.gpus import by_name, gpu
from ...catalog.links import LANES, TRANSFERS, capped, link, links

SLOTS = {"p2p": "p2p", "p2p-oneshot": "oneshot", "mailbox": "mailbox", "staged": "staged"}
BETWEEN = {"shm": "host_link", "nvlink": "nvlink"}  # what the cards say of their own link
NAMES = ("none", "pcie-unknown", *BETWEEN, *SLOTS)
MOST_RANKS = 1024


def of(line):
    """The link of a row with the columns link, gpu, pcie_gen, lanes; a single card needs none: it gets the unknown."""
    name, cards = line.text("link", "none"), [_card(name) for name in line.text("gpu").split("+")]
    slot = line.text("pcie_gen") and line.text("lanes") and _slot(line, cards)
    if name in ("none", "pcie-unknown"):
        return capped(link("pcie-unknown"), *slot) if slot else link("pcie-unknown")
    if name in BETWEEN:
        said = {card.said.get(BETWEEN[name]) for card in cards}
        return link(len(said) == 1 and said.pop() or assumed("card").said[BETWEEN[name]])
    if name not in SLOTS:
        raise ValueError(f"link = {name[:40]!r} is not accepted: "
                       f"it must be one of {', '.join(NAMES)}")
    if name in links() and not slot:
        return link(name)
    return link("{}-pcie{}-x{}".format(SLOTS[name], *(slot or _slot(line, cards))))


def _card(name):
    """The card of a name; one that the catalog does not hold is any card."""
    try:
        return gpu(by_name(name))
    except ValueError:
        return assumed("card")


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
