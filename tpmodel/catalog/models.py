"""Models by name: sourced numbers (models.toml), and shapes that are read like a user's own config.json (shapes.toml)."""

import re
import tomllib
from functools import lru_cache
from importlib import resources
from pathlib import Path

from .configs import parse_config, read_config
from .sourced import load, pick

FILE = "models.toml"
SHAPES = "shapes.toml"
ABOUT = ("like", "source")  # keys of a shape that no config.json has
HUB = re.compile(r"https://huggingface\.co/([\w.-]+/[\w.-]+)")


def model(key):
    """The numbers of the model `key`.

    >>> model("qwen3.8-27b-nvfp4").layers
    64.0
    """
    return pick(FILE, key)


def models():
    """Every model with numbers, by key."""
    return load(FILE)


@lru_cache(maxsize=None)
def _tables():
    return tomllib.loads((resources.files(__package__) / "data" / SHAPES).read_text(encoding="utf-8"))


@lru_cache(maxsize=None)
def shapes():
    """Every named shape, as the fields of a config.json."""
    found = {}
    for key, table in _tables().items():
        if "source" in table:
            whole = {**_tables().get(table.get("like"), {}), **table}
            found[key] = {name: value for name, value in whole.items() if name not in ABOUT}
    return found


def repository(name):
    """The repository on the Hub that a named shape describes; None where it has none.

    >>> repository("qwen3-32b"), repository("qwen3.8-27b-nvfp4")
    ('Qwen/Qwen3-32B', None)
    """
    found = HUB.match(_tables().get(name, {}).get("source", ""))
    return found and found[1]


def find_config(name):
    """The ModelConfig of a catalog name, or of a path to a config.json or its folder.

    >>> round(find_config("qwen3.8-27b-nvfp4").weights_bytes / 1e9, 1)
    20.6
    """
    if name in shapes():
        return _named(name)
    if name and Path(name).exists():
        return read_config(name)
    raise ValueError(f"model {name!r} is neither a file nor in the catalog: it must be a path to a config.json or one of {', '.join(shapes())}")


@lru_cache(maxsize=None)
def _named(name):
    return parse_config(shapes()[name], None, name)


def by_name(text):
    """The ModelConfig of a printed name: of the shortest catalog name that begins with it.

    >>> by_name("Qwen3.6-27B").name
    'qwen3.6-27b-nvfp4'
    """
    found = sorted((key for key in shapes() if text and key.startswith(text.lower())), key=len)
    if not found:
        raise ValueError(f"model = {text[:60]!r} is not in {SHAPES}: it must be one of {', '.join(shapes())}")
    return find_config(found[0])
