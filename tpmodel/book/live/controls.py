"""Controls of a figure. A control's state is a text, as typed, slid, or read from a link.

`silent` is a live text that stands beside the control, empty but where another setting takes the control's effect away.
"""

import math
import re
from dataclasses import dataclass

from ...formula.units import GIB

NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")
SCALES = {"µs": ("e-6", 1.0), "ms": ("e-3", 1.0), "GB": ("e9", 1.0), "GB/s": ("e9", 1.0), "TFLOP/s": ("e12", 1.0),
          "GiB": ("", GIB)}  # unit -> suffix and factor of a slider


@dataclass(frozen=True)
class Control:
    """What a slider and a choice have in common."""

    name: str
    label: str

    def refused(self, given):
        """The ValueError of bad input: it names the control, what was given and what is accepted."""
        return ValueError(f"{self.label} ({self.name}) = {given!r} is not accepted: it must be {self.accepted()}")

    def spec(self):
        """What the page needs to know."""
        return {key: getattr(self, key) for key in ("name", "label", "kind", *self.told)}


@dataclass(frozen=True)
class Slider(Control):
    """A number that slides over `texts` or is typed between the ends: float(text + suffix) * factor in base units."""

    texts: tuple
    start: str
    unit: str = ""
    suffix: str = ""
    factor: float = 1.0
    whole: bool = False
    silent: tuple = ()
    stepped: bool = False  # moved by two buttons too: what happens in order
    kind, told = "slider", ("texts", "start", "unit", "suffix", "factor", "whole")

    def __post_init__(self):
        if self.start not in self.texts:
            raise ValueError(f"{self.name}: start {self.start!r} is not among the slider's texts")

    def accepted(self):
        """What may be typed, in words."""
        return f"a {'whole ' if self.whole else ''}number from {self.texts[0]} to {self.shown(self.texts[-1])}"

    def value(self, text):
        """{name: number} for a text."""
        if isinstance(text, str) and NUMBER.fullmatch(text) and not (self.whole and "." in text):
            if float(self.texts[0]) <= float(text) <= float(self.texts[-1]):
                return {self.name: float(text + self.suffix) * self.factor}
        raise self.refused(text)

    def text(self, number):
        """The shown text of a number in the base unit; a text is its own.

        >>> Slider("link_latency_s", "Latency", ("1", "20"), "20", "µs", "e-6").text(2e-5)
        '20'
        """
        if isinstance(number, str):
            return number
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise self.refused(number)
        return f"{number / float('1' + self.suffix) / self.factor:.10g}"

    def shown(self, text):
        """The text with its unit."""
        return f"{text} {self.unit}".rstrip()


def slider(name, label, lo, hi, start, unit="", also=None, step=None, per_decade=20, **more):
    """A slider from `lo` to `hi` by `step`, else over round numbers of two digits, evenly spaced on a log scale.

    `start` and `also` are among its texts.

    >>> slider("achieved_frac", "Fraction", 0.8, 1, 0.8, also=0.95, step=0.1).texts
    ('0.8', '0.9', '0.95', '1')
    >>> slider("ratio", "Ratio", 1, 10, 1, per_decade=4).texts
    ('1', '1.8', '3.2', '5.6', '10')
    """
    if step:
        numbers = [f"{lo + i * step:.10g}" for i in range(int((hi - lo) / step + 1e-9) + 1)]
    else:
        count = round(per_decade * math.log10(hi / lo))
        numbers = [f"{lo * (hi / lo) ** (i / count):.2g}" for i in range(count + 1)]
    start, also = (f"{float(number):.10g}" for number in (start, start if also is None else also))
    found = sorted({float(number) for number in (*numbers, lo, hi, start, also)})
    texts = tuple(f"{number:.10g}" for number in found)
    return Slider(name, label, texts, start, unit, *SCALES.get(unit, ("", 1.0)), **more)


def steps(name, last, start=0, label="Step", **more):
    """A slider over the steps of what happens in order, moved by buttons and arrow keys too.

    >>> steps("hop", 2).texts
    ('0', '1', '2')
    """
    return Slider(name, label, tuple(map(str, range(last + 1))), str(start), whole=True, stepped=True, **more)


@dataclass(frozen=True)
class Choice(Control):
    """One of several options, each of which sets one or more names: `{"BF16": {"kv_element_bytes": 2}}`."""

    options: dict
    start: str
    silent: tuple = ()
    kind, told = "choice", ("options", "start")

    def __post_init__(self):
        if self.start not in self.options:
            raise ValueError(f"{self.name}: start {self.start!r} is not among {', '.join(self.options)}")
        if len({tuple(sorted(option)) for option in self.options.values()}) != 1:
            raise ValueError(f"{self.name}: every option must set the same names")

    def accepted(self):
        """What may be chosen, in words."""
        return f"one of {', '.join(self.options)}"

    def value(self, text):
        """{name: number, ...} of an option."""
        if not isinstance(text, str) or text not in self.options:
            raise self.refused(text)
        return {name: float(number) for name, number in self.options[text].items()}

    def text(self, option):
        """An option is its own text, also as it is shown."""
        return option

    shown = text
