"""A number that says where it comes from, and the reader of `data/*.toml`."""

import tomllib
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from importlib import resources

from .. import inputs
from ..formula import units
from ..formula.vocabulary import NAMES, check

KINDS = ("official", "computed", "measured", "community", "estimate")
TO_BASE = {
    "": 1.0, "byte": 1.0, "token": 1.0, "s": 1.0, "byte/s": 1.0, "FLOP/s": 1.0, "token/s": 1.0,
    "KiB": units.KIB, "MiB": units.MIB, "GiB": units.GIB, "MB": units.MB, "GB": units.GB, "TB": units.TB,
    "us": units.US, "ms": units.MS, "MB/s": units.MB, "GB/s": units.GB, "TB/s": units.TB, "TFLOP/s": units.TFLOP,
    "Hz": 1.0, "GHz": units.GHZ,
}
BASE = {"KiB": "byte", "MiB": "byte", "GiB": "byte", "MB": "byte", "GB": "byte", "TB": "byte", "us": "s", "ms": "s",
        "MB/s": "byte/s", "GB/s": "byte/s", "TB/s": "byte/s", "TFLOP/s": "FLOP/s", "GHz": "Hz"}
LARGEST_FILE = 2_000_000
PROTOCOLS = {"ring": "from GPU to GPU and round again, as NCCL does it",
             "oneshot": "every GPU to every other at once, one kernel"}
WORDS = ("protocol", "transport", "runtime", "host_link", "nvlink", "aliases", "pipeline", "allreduce", "memory", "of",
         "since", "before", "multiplied", "adds", "joined", "peer")  # beside numbers


@dataclass(frozen=True)
class Sourced:
    """One number as its source prints it. An estimate has a range."""

    value: float
    unit: str
    kind: str
    source: str
    date: str
    where: str = ""
    note: str = ""
    low: float = None
    high: float = None

    def __post_init__(self):
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            real = isinstance(number, (int, float)) and not isinstance(number, bool)
            if not (real and -inputs.MOST < number < inputs.MOST or number is None and name != "value"):
                raise inputs.refused(name, number, "it must be a finite number")
        for name in ("unit", "kind", "source", "date"):
            said = getattr(self, name)
            if not isinstance(said, str) or not said and name != "unit":
                raise ValueError(f"a catalog number needs {name}, a text in quotes, got {said!r}")
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r} is not accepted: it must be one of {', '.join(KINDS)}")
        if self.unit not in TO_BASE:
            known = ", ".join(filter(None, TO_BASE))
            raise ValueError(f"unit {self.unit!r} is not accepted: it must be one of {known}")
        if self.kind == "estimate" and (self.low is None or self.high is None):
            raise ValueError(f"an estimate needs low and high ({self.value} {self.unit}, {self.source})")
        low, value, high = self.base_range
        if not low <= value <= high:
            raise ValueError(f"low <= value <= high does not hold: {self.low}, {self.value}, {self.high}")

    @property
    def base(self):
        """The value in base units."""
        return self.value * TO_BASE[self.unit]

    @cached_property
    def base_range(self):
        """(low, value, high) in base units; all the same where no range is given."""
        ends = (self.low, self.value, self.high)
        return tuple((self.value if end is None else end) * TO_BASE[self.unit] for end in ends)


@dataclass(frozen=True)
class Entry:
    """One thing of the catalog: its key, its printed name, its numbers by name, and what it says in words."""

    key: str
    name: str
    numbers: dict = field(repr=False)
    said: dict = field(default_factory=dict, repr=False)

    def __getattr__(self, name):
        numbers = object.__getattribute__(self, "numbers")
        if name not in numbers:
            raise AttributeError(f"{self.key} has no {name}; it has {', '.join(numbers)}")
        return numbers[name].base

    def values(self):
        """Every number in base units, by name."""
        return {name: number.base for name, number in self.numbers.items()}


def _number(name, entry):
    """The Sourced of one line: known name, known fields, a unit of the name's kind, a value in its domain."""
    if name not in NAMES:
        raise ValueError(f"{name!r} is not in tpmodel/formula/terms.csv: it must be a name of the vocabulary, "
                         "such as vram_bytes or link_bytes_per_s")
    known = [f.name for f in fields(Sourced)]
    if not isinstance(entry, dict) or not set(known[:5]) <= set(entry) <= set(known):
        raise ValueError(f"it must be a table with {', '.join(known[:5])}, and may have {', '.join(known[5:])}")
    found = Sourced(**entry)
    accepted = [unit for unit in TO_BASE if BASE.get(unit, unit) == NAMES[name].unit]
    if found.unit not in accepted:
        raise ValueError(f"unit {found.unit!r} is not accepted: it must be one of {', '.join(map(repr, accepted))}")
    for number in found.base_range:
        check(name, number)
    return found


def _words(name, value):
    """A field of words as it stands; what it may say is checked."""
    if name == "aliases":
        if not isinstance(value, list) or not value or not all(isinstance(one, str) and one.strip() for one in value):
            raise ValueError("it must be a list of names in quotes")
    elif name == "protocol" and (not isinstance(value, str) or value not in PROTOCOLS):
        accepted = " or ".join(f'"{key}" ({what})' for key, what in PROTOCOLS.items())
        raise ValueError(f"{inputs.shown(value)} is not accepted: it must be {accepted}")
    elif not isinstance(value, str) or not value:
        raise ValueError(f"{inputs.shown(value)} is not accepted: it must be a text in quotes")
    return value


def read(text, where):
    """{key: Entry} from TOML text; a number without unit, kind, source or date is refused."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits is a plain ValueError
        raise ValueError(f"{where} is not TOML: {error}") from None
    if not tables:
        raise ValueError(f"{where} holds no entries: it must have tables such as [my-card]")
    found = {}
    for key, table in tables.items():
        if not isinstance(table, dict) or not isinstance(table.get("name"), str):
            raise ValueError(f"{where}: {key} has no name: it must be a table with a name in quotes and numbers")
        entry = found[key] = Entry(key, table.pop("name"), {}, {})
        for name, value in table.items():
            part, checked = (entry.said, _words) if name in WORDS else (entry.numbers, _number)
            try:
                part[name] = checked(name, value)
            except ValueError as error:
                raise ValueError(f"{where}: {key}.{name}: {error}") from None
    return found


def read_file(path):
    """{key: Entry} of a user's own file."""
    return read(inputs.read_text(path, "catalog", LARGEST_FILE, "a TOML file with entries of a catalog"), str(path))


def load(file, package=__package__):
    """{key: Entry} of one file of the catalog's data folder."""
    return _loaded(file, package)


@cache
def _loaded(file, package):
    return read((resources.files(package) / "data" / file).read_text(encoding="utf-8"), file)


def pick(file, key, package=__package__):
    """One entry; an unknown key is an error that lists what exists."""
    entries = load(file, package)
    if key not in entries:
        raise ValueError(f"{key!r} is not in {file}: {inputs.among(list(entries), key)}")
    return entries[key]
