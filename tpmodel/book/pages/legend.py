"""What the letters of a displayed formula mean, and what they are where a figure of its chapter starts."""

import re
from functools import cache

from ...formula.view import formula_of
from ...formula.vocabulary import NAMES
from .. import figures
from .tables import short

SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
COUNTED = ("byte", "byte/token")  # below a million in full, as the chapters have them
SCALED = {"s": "s", "byte": "B", "byte/s": "B/s", "FLOP": "FLOP", "FLOP/s": "FLOP/s", "byte/token": "B a token"}
NO_LIMIT = 1e15  # what stands for a rate without end


def printed(node):
    """The names whose symbols stand in the LaTeX of a tree, in its order; some twice."""
    if node.kind == "name":
        yield node.value
    elif node.kind == "call":
        yield node.value.__name__
        for name, arg in zip(node.value.parameters, node.args):
            if (arg.kind, arg.value) != ("name", name):
                yield name
                yield from printed(arg)
    else:
        for arg in node.args:
            yield from printed(arg)


def letters(key, said):
    """The names in a glued formula: in that called `key`, or in a solution from its text `name(name, ...)`.

    >>> letters("allreduce_s", "")
    ('allreduce_s', 'ranks', 'allreduce_latency_s', 'allreduce_wire_bytes', 'link_bytes_per_s')
    >>> letters("equal", "intermediate(hidden)")
    ('intermediate', 'hidden')
    """
    form = formula_of(key)
    names = (key, *printed(form.tree)) if form else re.findall(r"\w+", said)
    return tuple(dict.fromkeys(name for name in names if name in NAMES))


def amount(number, unit):
    """A number in base units as the book prints it.

    >>> amount(0.0223, "s"), amount(2e10, "byte"), amount(64, ""), amount(0, "s")
    ('22.3 ms', '20 GB', '64', '0 s')
    >>> amount(2.778e10, "")
    '27,780,000,000'
    """
    if unit not in SCALED:
        text = f"{float(f'{number:.4g}'):,.0f}" if abs(number) >= 1e6 else short(number)
        return f"{text} {unit}{'s' * (unit == 'token' and number != 1)}".rstrip()
    size, prefix = next(((size, prefix) for size, prefix in SCALES if abs(number) >= size), (1, ""))
    if unit in COUNTED and size < 1e6:
        return f"{short(round(number, 1))} {SCALED[unit]}"
    return f"{short(float(f'{number / size:.4g}'))} {prefix}{SCALED[unit]}"


@cache
def _starts(stem):
    """The figures of a chapter, each with the view that it starts from."""
    return tuple((figure, figure.view()) for figure in (make() for make in figures.ALL)
                 if figures.CHAPTERS[figure.name] == stem)


def _value(view, name):
    """The value of a name as text; "" where the view has none."""
    try:
        number = float(getattr(view, name))
    except (AttributeError, ValueError):
        return ""
    return amount(number, NAMES[name].unit) if abs(number) < NO_LIMIT else "no limit"


def legend(stem, key, said):
    """(Title of the figure whose start gives the values, or "", rows of symbol, meaning and value)."""
    names = letters(key, said)
    for figure, view in _starts(stem):
        values = [_value(view, name) for name in names]
        if values and values[0]:
            return figure.title, [(NAMES[n].symbol, NAMES[n].meaning, value) for n, value in zip(names, values)]
    return "", [(NAMES[name].symbol, NAMES[name].meaning, "") for name in names]
