"""A number that says where it comes from, and the reader of `data/*.toml`."""

import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources

from .. import units
from ..vocabulary import check, term

KINDS = ("official", "computed", "measured", "community", "estimate")
TO_BASE = {
    "": 1.0, "byte": 1.0, "token": 1.0, "s": 1.0, "byte/s": 1.0, "FLOP/s": 1.0,
    "KiB": units.KIB, "MiB": units.MIB, "GiB": units.GIB, "MB": units.MB, "GB": units.GB, "TB": units.TB,
    "us": units.US, "ms": units.MS, "MB/s": units.MB, "GB/s": units.GB, "TB/s": units.TB, "TFLOP/s": units.TFLOP,
}


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
        for name in ("unit", "kind", "source", "date"):
            if not isinstance(getattr(self, name), str) or name != "unit" and not getattr(self, name):
                raise ValueError(f"a catalog number needs {name}, got {getattr(self, name)!r}")
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r} is not accepted: it must be one of {', '.join(KINDS)}")
        if self.unit not in TO_BASE:
            raise ValueError(f"unit {self.unit!r} is not accepted: it must be one of {', '.join(filter(None, TO_BASE))}")
        if self.kind == "estimate" and (self.low is None or self.high is None):
            raise ValueError(f"an estimate needs low and high ({self.value} {self.unit}, {self.source})")
        if not self.base_range[0] <= self.base_range[1] <= self.base_range[2]:
            raise ValueError(f"low <= value <= high does not hold: {self.low}, {self.value}, {self.high}")

    @property
    def base(self):
        """The value in base units."""
        return self.value * TO_BASE[self.unit]

    @property
    def base_range(self):
        """(low, value, high) in base units; all the same where no range is given."""
        scale = TO_BASE[self.unit]
        low, high = (self.value if end is None else end for end in (self.low, self.high))
        return low * scale, self.value * scale, high * scale


@dataclass(frozen=True)
class Entry:
    """One thing of the catalog: its key, its printed name, and its numbers by vocabulary name."""

    key: str
    name: str
    numbers: dict = field(repr=False)

    def __getattr__(self, name):
        numbers = object.__getattribute__(self, "numbers")
        if name not in numbers:
            raise AttributeError(f"{self.key} has no {name}; it has {', '.join(numbers)}")
        return numbers[name].base

    def values(self):
        """Every number in base units, by name."""
        return {name: number.base for name, number in self.numbers.items()}


def read(text, where):
    """{key: Entry} from TOML text; a number without unit, kind, source or date is refused."""
    found = {}
    for key, table in tomllib.loads(text).items():
        numbers = {}
        for name, entry in table.items():
            if name == "name":
                continue
            term(name)
            try:
                numbers[name] = Sourced(**entry)
                check(name, numbers[name].base)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{where}: {key}.{name}: {error}") from None
        if "name" not in table:
            raise ValueError(f"{where}: {key} has no name")
        found[key] = Entry(key, table["name"], numbers)
    return found


@lru_cache(maxsize=None)
def load(file):
    """{key: Entry} of one file of the catalog's data folder."""
    return read((resources.files(__package__) / "data" / file).read_text(encoding="utf-8"), file)


def pick(file, key):
    """One entry; an unknown key is an error that lists what exists."""
    entries = load(file)
    if key not in entries:
        raise ValueError(f"{key!r} is not in {file}: it must be one of {', '.join(entries)}")
    return entries[key]
