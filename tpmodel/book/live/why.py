"""Why a number of a readout is what it is: the quantities under it, for the page to show with the values of now."""

import re

from ...formula import printers
from ...formula.tree import as_node
from ...formula.view import formula_of
from ...formula.vocabulary import NAMES
from .marks import asked

GREEK = dict(zip("alpha varepsilon nu mu eta lambda sigma varphi chi ell sum".split(), "αενμηλσφχℓ∑"))

UNITS = {"_bytes_per_s": "byte/s", "_tokens_per_s": "token/s", "_flop_per_s": "FLOP/s", "_bytes": "byte",
         "_tokens": "token", "_s": "s"}  # of a figure's own names, by how they end


def derivations(figure):
    """({(readout, piece): row}, rows, the Nodes of their values).

    A row: name, symbol, unit, meaning, where it is from, the rows under it.
    """
    pieces = {(name, place): asked(part) for name in figure.readouts
              for place, part in enumerate(figure.all_texts[f"readout-{name}"])}
    roots = {piece: figure.symbols.why(name) for piece, name in pieces.items() if name}
    every = [why for root in roots.values() for why in _walk(root)]
    values = dict(zip(map(id, every), printers.interned([as_node(why.value) for why in every])))
    rows, nodes, known = [], [], {}

    def row(why):
        node, under = values[id(why)], [row(part) for part in why.parts]
        key = why.name, why.how, id(node), *under
        if key not in known:
            known[key] = len(rows)
            rows.append((*_told(figure, why), under))
            nodes.append(node)
        return known[key]

    return {place: row(root) for place, root in roots.items()}, rows, nodes


def _walk(why):
    yield why
    for part in why.parts:
        yield from _walk(part)


def _told(figure, why):
    """Name, symbol, unit and meaning of a quantity, and where its value is from."""
    term = NAMES.get(why.name)
    known = (symbol(term.symbol), term.unit, term.meaning) if term else ("", *_unit_and_words(why.name))
    control = next((c.label for c in figure.controls if why.name in c.value(c.start)), None)
    if why.how == "formula":
        how = re.sub(r"\b(Math|F)\.", "", printers.javascript_expression(formula_of(why.name).tree))
    elif why.parts:
        how = f"the same as {why.source}" if why.how == "same as" else "made of what stands below"
    elif control:
        how = f"set by you: {control}"
    else:
        how = f"{why.how}: {why.source}" if why.how != "given" else "given by this figure"
    return why.name, *known, how


def _unit_and_words(name):
    end = next((end for end in UNITS if re.search(rf"{end}(_\d)?$", name)), "")
    return UNITS.get(end, ""), name.replace(end, "", 1).replace("_", " ")


def symbol(latex):
    r"""A symbol of the vocabulary as HTML.

    >>> symbol(r"\alpha_N^{\mathrm{tree}}"), symbol("F")
    ('α<sub>N</sub><sup>tree</sup>', 'F')
    """
    text = re.sub(r"\\(?:mathrm|bar)\{(\w+)\}", r"\1", latex)
    text = re.sub(r"\\([a-z]+)", lambda word: GREEK.get(word[1], word[1]), text)
    tags = {"_": "sub", "^": "sup"}
    return re.sub(r"([_^])(?:\{([^{}]*)\}|(.))",
                  lambda at: f"<{tags[at[1]]}>{at[2] or at[3]}</{tags[at[1]]}>", text)
