"""Where the cards of a group sit, and the link that makes: the host's chip and sockets first, the slower slot next."""

from dataclasses import dataclass, replace

from ... import inputs
from ...catalog import hosts
from ...catalog.gpus import gpus
from ...catalog.links import LANES, NAMES, TRANSFERS, line_bytes_per_s, link, links
from ...formula.units import GB
from ...formulas.collectives import place_bytes_per_s

NOT_SAID = ("not-said", "not-said-pcie5")  # the hosts of older slots, of newer ones
PEERS = ("p2p", "oneshot")  # transports by which a card reaches another's memory


@dataclass(frozen=True)
class Place:
    """What is known of it: a class of host or None; the slower card's slot, and whether it was said or is the best
    that card has; sockets between the cards; whether two cards share one slot's way up, or one root complex."""

    host: object = None
    slot: tuple = None
    said: bool = False
    sockets: int = 1
    shared: bool = False
    root: bool = False

    @property
    def peers(self):
        """Whether cards may reach each other's memory there, for all that is known."""
        return not (self.host and self.host.said.get("peer") == "none")

    @property
    def where(self):
        """In words."""
        slot = f"PCIe {self.slot[0]}.0 x{self.slot[1]}" if self.slot else "slot not said"
        shared = ", shared by two cards" if self.shared else ", one root complex" if self.root else ""
        sockets = " across sockets" if self.sockets > 1 else ""
        return f"{self.host.name if self.host else 'host not said'}{sockets}, {slot}{shared}"


def place(host, slot, cards):
    """The Place of cards whose `--host` and `--slot` were said, or not (None)."""
    known = cards and all("pcie_lanes" in card.numbers for card in cards)
    best = tuple(int(min(getattr(card, name) for card in cards)) for name in ("pcie_generation", "pcie_lanes")
                 ) if known else None
    words = (slot or "").split()
    there = best if slot is None else hosts.slot(" ".join(word for word in words if word != "shared") or slot)
    names = [] if host is None else inputs.counted([host]) if host.strip() else [host]
    where = hosts.host(names[0]) if names else None
    if len(names) > 2:
        raise inputs.refused("host", host, "it must be one host, or 2x NAME where the cards sit on both of its sockets")
    where = None if where in map(hosts.hosts().get, NOT_SAID) else where
    newest = int(where.pcie_generation) if where else max(TRANSFERS)
    if slot is not None and there[0] > newest:
        raise inputs.refused("slot", slot, f"{where.name} has PCIe {newest}.0 at most")
    narrower = tuple(map(min, there, best or there, (newest, max(LANES)))) if there else None
    return Place(where, narrower, slot is not None, max(1, len(names)), "shared" in words)


def own(cards, field):
    """The key of the link that the cards, all of one kind, say as their `host_link` or `nvlink`; None without one."""
    said = {card.said.get(field) for card in cards}
    return said.pop() if len(said) == 1 else None


def board(cards):
    """The key of the link of the board that several such cards come on, or of their network; None in slots."""
    whole = len(cards) > 1 and all("joined" in card.said for card in cards)
    return own(cards, "nvlink") if whole else None


def peer(cards):
    """How these cards reach each other's memory, by name: over the link of their board, or over PCIe."""
    return board(cards) or "p2p"


def reach(link, count):
    """How far NCCL lets peer access go among so many cards, in words; empty where that is no question."""
    asked = count > 2 and link.said.get("transport") == "p2p"
    return "NCCL uses peer access between cards on different switches only with NCCL_P2P_LEVEL=SYS" if asked else ""


def chosen(name, here, cards, find):
    """The link that was said by the name of a transport, or by a key that `find` knows; None: that of the cards' own
    board, else no peer access."""
    if name is None and board(cards) and not (here.host or here.said):
        return link(board(cards))
    if name == "pcie-unknown":
        return unknown(here)
    if name in (None, "shm") and own(cards, "host_link") and not (here.host or here.said):
        return link(own(cards, "host_link"))
    _connected(name, here, cards)
    if name in (None, "shm") or name in NAMES and (here.said or here.host or name not in links()):
        return link_at(name or "shm", here)
    found = find(name)
    rate = found.values().get("link_bytes_per_s", 0)
    if here.said and rate > line_bytes_per_s(*here.slot):
        raise inputs.refused("link", name, f"its {rate / GB:,.1f} GB/s are more than a slot of PCIe {here.slot[0]}.0 "
                             f"x{here.slot[1]} can carry, {line_bytes_per_s(*here.slot) / GB:,.1f}")
    if here.host:
        raise inputs.refused("link", name, f"with --host it must be one of shm, {', '.join(NAMES)}")
    return found


def _connected(name, here, cards):
    """Refuse a link that the cards have no connector for, or the host no access."""
    mine, many = own(cards, "nvlink"), len(cards) > 2 and not board(cards)
    others = f"it must be one of shm, {', '.join(NAMES)}"
    kinds = ", ".join(dict.fromkeys(card.key for card in cards))
    if name and name in {card.said.get("nvlink") for card in gpus().values()} and (name != mine or many):
        if name == mine:
            raise inputs.refused("link", name, f"a bridge joins two cards, and these are {len(cards)}: {others}")
        own_too = f", {mine}" if mine and not many else ""
        raise inputs.refused("link", name, f"{kinds} has no connector for it: {others}{own_too}")
    known = links().get(name)
    transport = name if name in NAMES else known and known.said.get("transport")
    if not here.peers and transport in PEERS:
        said = ", ".join(["shm", *(kind for kind in NAMES if kind not in PEERS)])
        raise inputs.refused("link", name, f"{here.host.name} gives cards no peer access: it must be one of {said}")


def link_at(kind, here):
    """The link of a transport (shm, p2p, oneshot, mailbox, staged) between cards at a Place.

    Limits : a slot that was not said is the card's best at the fast end and in the middle, half its lanes at the slow.

    >>> zen2, zen4 = (place(name, "pcie4-x16", ()) for name in ("epyc-zen2", "epyc-zen4"))
    >>> [round(link_at("shm", here).link_bytes_per_s / 1e9, 1) for here in (zen2, zen4)]
    [3.5, 18.9]
    >>> link_at("p2p", zen2).link_bytes_per_s
    24800000000.0
    """
    if kind == "shm":
        return _through_host(link("shm"), here)
    if here.slot is None:
        raise ValueError(f"{NAMES[kind]}: the slot is not known: say --slot, such as pcie4-x8")
    found = link("{}-pcie{}-x{}".format(kind, *here.slot))
    rate = found.numbers["link_bytes_per_s"]
    halved = here.shared and kind != "p2p"  # peers of one switch pass its way up by
    ends = [end / (1 + halved) for end in rate.base_range]
    if kind == "p2p" and here.sockets > 1 and here.host and "peer_across_bytes_per_s" in here.host.numbers:
        ends = list(map(min, ends, here.host.numbers["peer_across_bytes_per_s"].base_range))
    return _with_rate(found, ends, rate.source, here) if ends != list(rate.base_range) else found


def _through_host(shm, here):
    """NCCL through host memory at a Place: of several limits the smallest, at each end of their ranges."""
    if here == Place():
        return shm
    said = hosts.hosts()[NOT_SAID[here.said and here.slot[0] > hosts.hosts()[NOT_SAID[0]].pcie_generation]]
    host = (here.host or said).numbers
    ends = []
    for end in range(3):
        limits = [host[name].base_range[end] for name in ("host_bytes_per_s",) if name in host]
        limits = [limit * host["root_frac"].base_range[end] if "root_frac" in host and (here.shared or here.root)
                  else limit for limit in limits]
        if here.sockets > 1 and "across_bytes_per_s" in host:
            limits.append(host["across_bytes_per_s"].base_range[end])
        half = 2 ** (here.shared + (not here.said and end == 0))
        line = line_bytes_per_s(*here.slot) / half if here.slot else inputs.MOST
        ends.append(place_bytes_per_s(host["line_frac"].base_range[end], line, min(limits, default=line)))
    source = host["host_bytes_per_s" if "host_bytes_per_s" in host else "line_frac"].source
    start = {name: host[name] for name in ("allreduce_latency_s", "bulk_latency_s") if name in host}
    copies = {"exchange_latency_s": link("staged").numbers["allreduce_latency_s"]}
    if here.said:
        copies["copy_bytes_per_s"] = link("staged-pcie{}-x{}".format(*here.slot)).numbers["link_bytes_per_s"]
    return _with_rate(replace(shm, numbers=shm.numbers | start | copies), ends, source, here)


def unknown(here):
    """Between cards of which nobody said how they talk: through host memory, in the middle of a host as new as the slot
    may be; at the fast end as peers; at the slow end through an old host."""
    found = link("pcie-unknown")
    if here.slot is None:
        return found
    shm, slow, peers = (link_at(kind, where).numbers for kind, where in (
        ("shm", replace(here, said=True)), ("shm", here), ("p2p", here)))
    low, mid, fast = (numbers["link_bytes_per_s"].base_range[end] for end, numbers in enumerate((slow, shm, peers)))
    numbers = (shm if here.said else slow) | found.numbers
    source = f"{found.numbers['link_bytes_per_s'].source}; {shm['link_bytes_per_s'].source}"
    fast = max(fast, shm["link_bytes_per_s"].base_range[2])
    return _with_rate(replace(found, numbers=numbers), (low, mid, fast), source, here)


def _with_rate(entry, ends, source, here):
    """The link with its bandwidth as a Place allows it."""
    low, mid, high = ends
    rate = replace(entry.numbers["link_bytes_per_s"], low=low, value=mid, high=high, unit="byte/s", kind="computed",
                   source=source, where=f"for {here.where}", note="")
    return replace(entry, name=f"{entry.name.split(',')[0]}: {here.where}",
                   numbers=entry.numbers | {"link_bytes_per_s": rate})
