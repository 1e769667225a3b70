"""Models by name: sourced numbers (models.toml), and shapes (shapes.toml), read like a user's own config.json."""

import re
import tomllib
from dataclasses import replace
from functools import lru_cache
from importlib import resources

from ... import inputs
from ...catalog.sourced import Sourced, load, pick
from ...formula.units import GIB
from ...formula.vocabulary import NAMES
from .configs import parse_config, read_config, read_fields

FILE, SHAPES, QUANTS = "models.toml", "shapes.toml", "quants.toml"
ABOUT = ("like", "source", "repository", "text_part")  # keys of a shape that no config.json has


@lru_cache(maxsize=None)
def model(key):
    """The numbers of the model `key`: those of its shape, and what no config says.

    >>> model("qwen3.8-27b-nvfp4").layers
    64.0
    """
    found, source = pick(FILE, key, __package__), f"the shape {key}: {_tables()[key]['source']}"
    shape = {name: Sourced(number, NAMES[name].unit, "computed", source, "today")
             for name, number in find_config(key).numbers.items() if number}
    return replace(found, numbers=shape | found.numbers)


def models():
    """Every model with numbers, by key."""
    return load(FILE, __package__)


@lru_cache(maxsize=None)
def _tables():
    return tomllib.loads((resources.files(__package__) / "data" / SHAPES).read_text(encoding="utf-8"))


@lru_cache(maxsize=None)
def shapes():
    """Every named shape, as the fields of a config.json."""
    tables = _tables()
    whole = {key: tables.get(table.get("like"), {}) | table for key, table in tables.items() if "source" in table}
    return {key: {name: value for name, value in table.items() if name not in ABOUT} for key, table in whole.items()}


def repository(name):
    """The repository on the Hub that a named shape describes; None where it has none.

    >>> repository("qwen3-32b"), repository("qwen3.8-27b-nvfp4")
    ('Qwen/Qwen3-32B', None)
    """
    return _tables().get(name, {}).get("repository")


def text_part(name):
    """Whether a named shape is that of a model that also sees, without its vision tower.

    >>> text_part("qwen3-vl-8b"), text_part("qwen3-8b")
    (True, False)
    """
    own = _tables().get(name, {})
    return own.get("text_part", _tables().get(own.get("like"), {}).get("text_part", False))


def quants():
    """The formats that an unquantised shape can be given, by name: quantization_config, source, and vLLM's own word."""
    return tomllib.loads((resources.files(__package__) / "data" / QUANTS).read_text(encoding="utf-8"))


def quantised(name, quant):
    """The ModelConfig of an unquantised shape or config.json, as public builds in the format `quant` have it.

    >>> round(quantised("qwen3-32b", "awq").weights_bytes / 1e9, 1)
    19.3
    """
    if find_config(name).quantised:
        raise inputs.refused("quant", quant, f"{name} is quantised already")
    known = name in shapes()
    fields, _, folder = (shapes()[name], None, name) if known else read_fields(name)
    return parse_config(fields, quants()[quant]["quantization_config"], f"{folder} in {quant}")


def sized(config, weights_bytes):
    """The same build with its quantised weights scaled so that all weigh so many bytes."""
    own = sum(module.bytes for module in config.quantised)
    rest, most = config.weights_bytes - own, sum(module.parameters for module in config.quantised)
    low, high = ((rest + most * bits / 8) / GIB for bits in (1, 16))
    if not config.quantised:
        raise inputs.refused("weights_gib", weights_bytes / GIB, f"{config.name} is not quantised: say --quant too")
    if not low <= weights_bytes / GIB <= high:
        wanted = f"it must be from {low:.1f} to {high:.1f} GiB, 1 to 16 bits for each quantised weight of {config.name}"
        raise inputs.refused("weights_gib", weights_bytes / GIB, wanted)
    scaled = lambda module: replace(module, bits=module.bits * (weights_bytes - rest) / own)
    return replace(config, modules=tuple(scaled(m) if m in config.quantised else m for m in config.modules))


def find_config(name):
    """The ModelConfig of a catalog name, or of a path to a config.json or its folder.

    >>> round(find_config("qwen3.8-27b-nvfp4").weights_bytes / 1e9, 1)
    20.6
    """
    if name in shapes():
        return _named(name)
    if name and inputs.exists(name, "model"):
        return read_config(name)
    raise ValueError(f"model {inputs.shown(name)} is neither a path to a config.json nor in the catalog: "
                     f"{inputs.among(list(shapes()), name)}")


def named(text):
    """The key of a shape by key or repository, whatever its case, spaces and hyphens; else the text itself, a path.

    >>> named("Qwen/Qwen3-8B"), named("Qwen 3 8B"), named("./mine")
    ('qwen3-8b', 'qwen3-8b', './mine')
    """
    if text in shapes() or inputs.exists(text, "model"):
        return text
    plain = lambda name: "-".join(name.lower().replace("-", " ").replace("_", " ").split())
    known = {plain(name): key for key in shapes() for name in (key, repository(key) or key)}
    joined = {key.replace("-", ""): key for key in shapes()}
    return known.get(plain(text), joined.get(plain(text).replace("-", ""), text))


@lru_cache(maxsize=None)
def _named(name):
    return parse_config(shapes()[name], None, name)


def by_name(text):
    """The ModelConfig of a printed name: of a config.json's path or key, of the shortest catalog name that begins with
    it, or of the longest that it begins with.

    >>> by_name("Qwen3.6-27B").name, by_name("Qwen/Qwen3-8B-AWQ").name, by_name("Meta Llama 3.1 8B Instruct").name
    ('qwen3.6-27b-nvfp4', 'qwen3-8b', 'llama-3.1-8b')
    """
    key = named(text) if text else text
    if key not in shapes() and not (text and inputs.exists(text, "model")):
        plain = re.sub("[ _-]+", "-", text.rsplit("/", 1)[-1].lower()).removeprefix("meta-").removeprefix("nvidia-")
        longer = [name for name in shapes() if plain and name.startswith(plain)]
        shorter = [name for name in shapes() if plain.startswith(name + "-")]
        key = min(longer, key=len) if longer else max(shorter, key=len, default=None)
    if key is None:
        raise ValueError(f"model = {text[:60]!r} is not in {SHAPES}: {inputs.among(list(shapes()), text[:60])}")
    return find_config(key)
