"""What is taken where nothing better is known, by name: the entries of assumptions.toml, sourced like any number."""

from .sourced import load, pick

FILE = "assumptions.toml"


def assumed(key):
    """The assumption `key`.
    >>> assumed("drafts").acceptance_frac
    0.75
    """
    return pick(FILE, key)


def assumptions():
    """Every assumption by key."""
    return load(FILE)


def ends(key, name):
    """(low, middle, high) of one assumption, in base units.
    >>> ends("card", "achieved_frac")
    (0.72, 0.83, 0.93)
    """
    return assumed(key).numbers[name].base_range
