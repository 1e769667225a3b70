"""Why a number of a readout is what it is: the quantities under it, for the page to show with the values of now."""

import re

from ...formula import printers
from ...formula.tree import as_node
from ...formula.view import formula_of
from ...formula.vocabulary import NAMES
from .marks import asked


def derivations(figure):
    """({(readout, piece): row}, rows, the Nodes of their values).

    A row: name, LaTeX of its symbol, unit, meaning, where it is from, the rows under it.
    """
    view, rows, nodes, known = figure.symbols, [], [], {}

    def row(why):
        under = [row(part) for part in why.parts]
        key = (why.name, why.how, why.source, *under) if under else (why.name, id(why.value))
        if key not in known:
            known[key] = len(rows)
            rows.append((*_told(figure, why), under))
            nodes.append(as_node(why.value))
        return known[key]

    pieces = ((name, place, asked(part)) for name in figure.readouts
              for place, part in enumerate(figure.all_texts[f"readout-{name}"]))
    return {(name, place): row(view.why(quantity)) for name, place, quantity in pieces if quantity}, rows, nodes


def _told(figure, why):
    """Name, symbol, unit and meaning of a quantity, and where its value is from."""
    term = NAMES.get(why.name)
    control = next((c.label for c in figure.controls if why.name in c.value(c.start)), None)
    if why.how == "formula":
        how = re.sub(r"\b(Math|F)\.", "", printers.javascript_expression(formula_of(why.name).tree))
    elif why.parts:
        how = f"the same as {why.source}" if why.how == "same as" else "made of what stands below"
    else:
        given = "given by this figure" if why.how == "given" else f"{why.how}: {why.source}"
        how = f"set by you: {control}" if control else given
    return why.name, *((term.symbol, term.unit, term.meaning) if term else ("", "", "")), how
