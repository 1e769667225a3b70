"""Graphics cards by name."""

import re
from dataclasses import replace
from functools import cache

from .. import inputs
from .assumptions import ends
from .sourced import load, pick

FILE = "gpus.toml"
ASIDE = re.compile(r"nvidia|geforce|rtx|tesla|quadro|instinct|intel|gb10|blackwell|ws|workstation|server|edition|"
                   r"sxm[0-9]?|hbm[0-9]e?|[0-9]+gb")
SOLD = re.compile(r"sxm[0-9]?|pcie|nvl|[0-9]+gb")  # what tells cards of one name apart


def gpu(key):
    """The GPU `key`, or of a printed name.
    >>> gpu("rtx-5060-ti-16gb").memory_bytes_per_s, gpu("GeForce RTX 3090").key, gpu("rtx4070ti").key
    (448000000000.0, 'rtx-3090', 'rtx-4070-ti')
    """
    try:
        return pick(FILE, key)
    except ValueError:
        known = _named(key)
        if known is None:
            raise
        return known


def memory(card):
    """What the driver gives an engine of a card, as a number of the catalog; estimated where the card has no report.
    >>> memory(gpu("h200")).kind, round(memory(gpu("rtx-3090")).base / 2**30, 2)
    ('measured', 23.56)
    """
    if "reported_bytes" in card.numbers:
        return card.numbers["reported_bytes"]
    nominal = card.numbers["vram_bytes"]
    low, mid, high = (frac * nominal.value for frac in ends("card", "reported_frac"))
    return replace(nominal, value=mid, low=low, high=high, kind="estimate",
                   source="of its nominal size, as the cards with a report")


def gpus():
    """Every GPU by key."""
    return load(FILE)


@cache
def by_name(text):
    """The key of a printed name, which may say more or less than an alias about memory size, board and edition.
    >>> by_name("NVIDIA GeForce RTX 5060 Ti"), by_name("A100 80GB SXM"), by_name("RTX 3090 Ti")
    ('rtx-5060-ti-16gb', 'a100-80gb', 'rtx-3090-ti')
    """
    found = _named(text)
    if found is None:
        raise ValueError(f"gpu = {text[:60]!r} is not in {FILE}: {inputs.among(list(gpus()), text[:60])}")
    return found.key


def _words(name):
    """Of a printed name; a size is one of them."""
    found = re.findall("[a-z0-9]+", name.lower().replace("gib", "gb"))
    return {word + "gb" * (after == "gb") for word, after in zip(found, [*found[1:], ""]) if word != "gb"}


def namesakes(text, card):
    """Other cards that a name could mean, which says less than their size and board; it is taken for this card.
    >>> namesakes("RTX 5060 Ti", gpu("rtx-5060-ti-16gb")), namesakes("A100 SXM 80GB", gpu("a100-80gb"))
    (['rtx-5060-ti-8gb'], [])
    """
    said = {word for word in _words(text) if SOLD.fullmatch(word)}
    sizes = lambda one: {f"{one.numbers['vram_bytes'].value:g}gb"}
    told = lambda one: _words(" ".join((one.key, one.name, *one.said["aliases"]))) | sizes(one)
    mine = _bare(card)
    others = [one for one in gpus().values() if one.key != card.key and any(name in mine for name in _bare(one))]
    return [one.key for one in others if said <= told(one)]


def _bare(card):
    """Its names without size, board and maker."""
    aside = lambda word: ASIDE.fullmatch(word) or SOLD.fullmatch(word)
    return [" ".join(sorted(word for word in _words(alias) if not aside(word))) for alias in card.said["aliases"]]


def _joined(text):
    """A name without spaces, hyphens and maker: rtx4090 and RTX 4090 are one."""
    bare = text.lower().replace("nvidia", "").replace("geforce", "").replace("rtx", "")
    return "".join(re.findall("[a-z0-9]+", bare))


def _named(text):
    found = []
    for card in gpus().values():
        for alias in card.said["aliases"]:
            differs = _words(text) ^ _words(alias)
            sizes = sum(word[0].isdigit() for word in differs)
            if sizes < 2 and all(map(ASIDE.fullmatch, differs)):  # two sizes are two cards
                found.append((len(differs), card))
    if not found:
        sizeless = lambda alias: " ".join(word for word in alias.split() if not SOLD.fullmatch(word.lower()))
        found = [(0, card) for card in gpus().values() for alias in card.said["aliases"]
                 if _joined(text) in (_joined(alias), _joined(sizeless(alias)))]
    return min(found, key=lambda pair: pair[0], default=(0, None))[1]  # the first of those that differ least
