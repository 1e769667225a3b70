"""An all-reduce through host memory: what the host's chip, its sockets and the slower slot allow."""

from ...catalog.hosts import hosts, slot
from ...catalog.links import line_bytes_per_s
from ...formula import ops
from ...formula.units import GB, MIB, fixed
from ...planner.evidence.allreduces import by_place
from ...planner.plan.places import Place, link_at
from ..live import Axes, Choice, Curve, Figure, Marker, Table, holding, quantity
from .options import NO_BYTES, note

LINES = tuple(2.0 ** (28 + i / 4) for i in range(33))  # from a lane of PCIe 1.0 to beyond 5.0 x16
RATES = (1e8, 8e10)
TICKS = tuple((2 ** n * GB, f"{2 ** n:g}") for n in range(-2, 7))
SLOTS = {"2.0 x1": "", "3.0 x4": ", Thunderbolt 4", "4.0 x4": " or 3.0 x8, OCuLink", "2.0 x16": "",
         "4.0 x8": " or 3.0 x16", "4.0 x16": "", "5.0 x8": "", "5.0 x16": ""}
LOOKS = {"epyc-zen2": ("blue", "Zen 2"), "epyc-zen3": ("purple", "Zen 3"), "epyc-zen4": ("green", "Zen 4"),
         "sapphire-rapids": ("gold", "Xeon"), "wsl2": ("red", "WSL2"), "not-said": ("gray", "not said")}
NAMES = ("line_frac", "host_bytes_per_s", "across_bytes_per_s")
PROMPT = {"message_bytes": 20 * MIB, "layers": 64, "ranks": 2}  # 2,048 tokens of 5,120 elements, 64 layers


def _host(entry):
    """What an option sets: each limit at the three ends; without one of its own a socket more changes nothing."""
    found = {"newest": entry.pcie_generation, "sockets": 1 + ("across_bytes_per_s" in entry.numbers)}
    for end, word in enumerate(("low", "mid", "high")):
        frac, one, across = (entry.numbers[name].base_range[end] if name in entry.numbers else NO_BYTES
                             for name in NAMES)
        found |= {f"frac_{word}": frac, f"one_{word}": one, f"across_{word}": min(one, across)}
    return found


def _slot(text):
    here = slot(text)
    return {"generation": here[0], "line_bytes_per_s": line_bytes_per_s(*here),
            "peer_bytes_per_s": link_at("p2p", Place(slot=here, said=True)).link_bytes_per_s}


def _at(word):
    limit = lambda v: ops.where(v.across > 0, getattr(v, f"across_{word}"), getattr(v, f"one_{word}"))
    return holding(line_frac=f"frac_{word}", host_bytes_per_s=limit)


def _dot(i, where, rate, seen):
    host, line, sockets, shared = where
    shape = "s" if sockets > 1 else "^" if shared else "o"
    first = host not in seen and not seen.add(host)
    return Marker(f"dot-{i}", line, rate, LOOKS[host][0], LOOKS[host][1] if first else "", shape)


def host_path():
    """Rate against slot, for a host, live."""
    seen, dots = set(), by_place()
    rate = {word: quantity("place_bytes_per_s", _at(word)) for word in ("low", "mid", "high")}
    choices = {entry.name: _host(entry) for key, entry in hosts().items()}
    sent = lambda name: lambda v: v.allreduces * v.allreduce_wire_bytes / getattr(v, name)
    row = lambda where, bps: (hosts()[where[0]].name, fixed(where[1] / GB, 1), str(where[2]),
                              "yes" if where[3] else "no", fixed(bps / GB, 1), fixed(bps / where[1], 2))
    return Figure(
        name="host-path", title="Through host memory: the host first, the slot second.", size=(4.6, 4.6),
        caption="Measured all-reduces of 16 MiB and more without peer access: circles on one socket, squares on two, "
                "triangles where two cards share a way up. Lines: the model for your host.",
        controls=(Choice("host", "Host", choices, hosts()["epyc-zen2"].name),
                  Choice("slot", "Slot of the slower card", 
                         {f"PCIe {text}{more}": _slot(text) for text, more in SLOTS.items()}, "PCIe 4.0 x8 or 3.0 x16"),
                  Choice("across", "The cards sit", {"on one socket": {"across": 0}, "on two sockets": {"across": 1}},
                         "on one socket", note(lambda v: v.sockets < 2, "such a board has one socket"))),
        constants=PROMPT,
        recipes={**{f"{word}_bytes_per_s": at for word, at in rate.items()},
                 "mine_s": sent("mid_bytes_per_s"), "peer_s": sent("peer_bytes_per_s"),
                 "missing": lambda v: ops.where(v.generation > v.newest, 1, 0)},
        axes=(Axes("slot, one direction, GB/s", "all-reduce, GB/s", (4e8, 8e10), RATES,
                   True, True, TICKS[1:], TICKS, legend=3),),
        marks=(*(_dot(i, where, bps, seen) for i, (where, bps) in enumerate(dots)),
               Curve("low", "line_bytes_per_s", LINES, "low_bytes_per_s", "gray", "", dashed=True),
               Curve("high", "line_bytes_per_s", LINES, "high_bytes_per_s", "gray", "range", dashed=True),
               Curve("mid", "line_bytes_per_s", LINES, "mid_bytes_per_s", "red", "the model"),
               Marker("yours", "line_bytes_per_s", "mid_bytes_per_s", "red", "yours", "D"),
               Marker("peer", "line_bytes_per_s", "peer_bytes_per_s", "gold", "peer access", "D")),
        readouts={
            "rate": "{mid_bytes_per_s/GB:1} GB/s ({low_bytes_per_s/GB:1} to {high_bytes_per_s/GB:1}) through host "
                    "memory, of the {line_bytes_per_s/GB:1} of the slot; {peer_bytes_per_s/GB:1} with peer access."
                    "{missing?| This host has no such slot.}",
            "prompt": "The bytes of a prompt of 2,048 tokens, 128 times 20 MiB on two cards: {mine_s/MS:0} ms; "
                      "{peer_s/MS:0} with peer access."},
        table=Table("What was measured", ("host", "slot, GB/s", "sockets", "shared", "GB/s", "of the slot"),
                    tuple(row(where, bps) for where, bps in sorted(dots))))
