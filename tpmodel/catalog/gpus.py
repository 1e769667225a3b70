"""Graphics cards by name."""

import re
from functools import cache

from .sourced import load, pick

FILE = "gpus.toml"
ASIDE = re.compile(r"nvidia|geforce|instinct|intel|gb10|blackwell|ws|workstation|server|edition|"
                   r"sxm[0-9]?|hbm[0-9]e?|[0-9]+gb")


def gpu(key):
    """The GPU `key`.
    >>> gpu("rtx-5060-ti-16gb").memory_bytes_per_s
    448000000000.0
    """
    return pick(FILE, key)


def gpus():
    """Every GPU by key."""
    return load(FILE)


@cache
def by_name(text):
    """The key of a printed name, which may say more or less than an alias about memory size, board and edition.
    >>> by_name("NVIDIA GeForce RTX 5060 Ti"), by_name("A100 80GB SXM"), by_name("RTX 3090 Ti")
    ('rtx-5060-ti-16gb', 'a100-80gb', 'rtx-3090-ti')
    """
    words = lambda name: set(re.findall("[a-z0-9]+", name.lower()))
    for card in gpus().values():
        for alias in card.said["aliases"]:
            differs = words(text) ^ words(alias)
            sizes = sum(word[0].isdigit() for word in differs)
            if sizes < 2 and all(map(ASIDE.fullmatch, differs)):  # two sizes are two cards
                return card.key
    raise ValueError(f"gpu = {text[:60]!r} is not in {FILE}: it must be one of {', '.join(gpus())}")
