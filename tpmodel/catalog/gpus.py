"""Graphics cards by name."""

from .sourced import load, pick

FILE = "gpus.toml"


def gpu(key):
    """The GPU `key`.

    >>> gpu("rtx-5060-ti-16gb").memory_bytes_per_s
    448000000000.0
    """
    return pick(FILE, key)


def gpus():
    """Every GPU by key."""
    return load(FILE)
