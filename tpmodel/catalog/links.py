"""Links between GPUs by name."""

from .sourced import load, pick

FILE = "links.toml"


def link(key):
    """The link `key`.

    >>> link("pcie5-x8-line-rate").link_bytes_per_s
    31500000000.0
    """
    return pick(FILE, key)


def links():
    """Every link by key."""
    return load(FILE)
