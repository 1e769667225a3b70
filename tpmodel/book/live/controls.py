"""Controls of a figure. A control's state is a text, as typed, slid, or read from a link.

`silent` is a live text that stands beside the control, empty but where another setting takes the control's effect away.
"""

import math
import re
from dataclasses import dataclass

NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")


def log_texts(lo, hi, per_decade=20, start=None):
    """Round numbers from `lo` to `hi`, evenly spaced on a log scale, two significant digits, as texts; `start` is a number or some that are among them.

    >>> log_texts(1, 10, per_decade=4)
    ('1', '1.8', '3.2', '5.6', '10')
    """
    count = round(per_decade * math.log10(hi / lo))
    numbers = {float(f"{lo * (hi / lo) ** (i / count):.2g}") for i in range(count + 1)} | {float(lo), float(hi)}
    return _texts(numbers, start)


def linear_texts(lo, hi, step, start=None):
    """Numbers from `lo` to `hi` by `step`, as texts.

    >>> linear_texts(0.8, 1, 0.1)
    ('0.8', '0.9', '1')
    """
    numbers = {float(f"{lo + i * step:.10g}") for i in range(int((hi - lo) / step + 1e-9) + 1)} | {float(hi)}
    return _texts(numbers, start)


def _texts(numbers, start):
    numbers |= set() if start is None else set(map(float, start if isinstance(start, tuple) else (start,)))
    return tuple(f"{number:.10g}" for number in sorted(numbers))


@dataclass(frozen=True)
class Slider:
    """A number that slides over `texts` and may be typed between the first and the last.

    The value of a text is float(text + suffix) * factor, in the base unit of the name it sets.
    """

    name: str
    label: str
    texts: tuple
    start: str
    unit: str = ""
    suffix: str = ""
    factor: float = 1.0
    whole: bool = False
    silent: tuple = ()

    kind = "slider"

    def __post_init__(self):
        if self.start not in self.texts:
            raise ValueError(f"{self.name}: start {self.start!r} is not among the slider's texts")

    def accepted(self):
        """What may be typed, in words."""
        return f"a {'whole ' if self.whole else ''}number from {self.texts[0]} to {self.texts[-1]}{' ' + self.unit if self.unit else ''}"

    def value(self, text):
        """{name: number} for a text; ValueError names the control, the text and what is accepted."""
        if isinstance(text, str) and NUMBER.fullmatch(text) and not (self.whole and "." in text):
            if float(self.texts[0]) <= float(text) <= float(self.texts[-1]):
                return {self.name: float(text + self.suffix) * self.factor}
        raise ValueError(f"{self.label} ({self.name}) = {text!r} is not accepted: it must be {self.accepted()}")

    def text(self, number):
        """The shown text of a number in the base unit.

        >>> Slider("link_latency_s", "Latency", ("1", "20"), "20", "µs", "e-6").text(2e-5)
        '20'
        """
        if isinstance(number, str):
            return number
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise ValueError(f"{self.label} ({self.name}) = {number!r} is not accepted: it must be {self.accepted()}")
        return f"{number / float('1' + self.suffix) / self.factor:.10g}"

    def shown(self, text):
        """The text with its unit."""
        return f"{text} {self.unit}".rstrip()

    def spec(self):
        """What the page needs to know."""
        keys = ("name", "label", "kind", "texts", "start", "unit", "suffix", "factor", "whole")
        return {key: getattr(self, key) for key in keys}


@dataclass(frozen=True)
class Choice:
    """One of several options, each of which sets one or more names: `{"BF16": {"kv_element_bytes": 2}}`."""

    name: str
    label: str
    options: dict
    start: str
    silent: tuple = ()

    kind = "choice"

    def __post_init__(self):
        if self.start not in self.options:
            raise ValueError(f"{self.name}: start {self.start!r} is not among {', '.join(self.options)}")
        if len({tuple(sorted(option)) for option in self.options.values()}) != 1:
            raise ValueError(f"{self.name}: every option must set the same names")

    def accepted(self):
        """What may be chosen, in words."""
        return f"one of {', '.join(self.options)}"

    def value(self, text):
        """{name: number, ...} of an option; ValueError names the control, the text and what is accepted."""
        if not isinstance(text, str) or text not in self.options:
            raise ValueError(f"{self.label} ({self.name}) = {text!r} is not accepted: it must be {self.accepted()}")
        return {name: float(number) for name, number in self.options[text].items()}

    def text(self, option):
        """An option is its own text."""
        return option

    def shown(self, text):
        """The option as it stands in the list."""
        return text

    def spec(self):
        """What the page needs to know."""
        return {key: getattr(self, key) for key in ("name", "label", "kind", "options", "start")}
