"""Models by name."""

from .sourced import load, pick

FILE = "models.toml"


def model(key):
    """The model `key`.

    >>> model("qwen3.8-27b-nvfp4").layers
    64.0
    """
    return pick(FILE, key)


def models():
    """Every model by key."""
    return load(FILE)
