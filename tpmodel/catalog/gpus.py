"""Graphics cards by name."""

import re

from .sourced import load, pick

FILE = "gpus.toml"
ASIDE = re.compile(r"nvidia|geforce|instinct|intel|gb10|blackwell|ws|workstation|server|edition|sxm[0-9]?|hbm[0-9]e?|[0-9]+gb")


def gpu(key):
    """The GPU `key`.

    >>> gpu("rtx-5060-ti-16gb").memory_bytes_per_s
    448000000000.0
    """
    return pick(FILE, key)


def gpus():
    """Every GPU by key."""
    return load(FILE)


def by_name(text):
    """The key of a printed name, which may say more or less than an alias about memory size, board and edition.

    >>> by_name("NVIDIA GeForce RTX 5060 Ti"), by_name("A100 80GB SXM"), by_name("RTX 3090 Ti")
    ('rtx-5060-ti-16gb', 'a100-80gb', 'rtx-3090-ti')
    """
    wanted = _words(text)
    for key, alias in ((card.key, alias) for card in gpus().values() for alias in card.said["aliases"]):
        differs = wanted ^ _words(alias)
        if all(map(ASIDE.fullmatch, differs)) and sum(map(str.isdigit, (word[0] for word in differs))) < 2:  # two sizes are two cards
            return key
    raise ValueError(f"gpu = {text[:60]!r} is not in {FILE}: it must be one of {', '.join(gpus())}")


def _words(text):
    return frozenset(re.findall("[a-z0-9]+", text.lower()))
