"""`Figure`: controls, axes, marks and a table, declared once: matplotlib, the page and a kernel show the same marks."""

import os
from dataclasses import dataclass, field
from functools import cached_property, reduce

from ...formula import ops
from ...formula.tree import Node, as_node
from ...formula.view import View
from . import marks as m
from .page import fragment
from .why import derivations

PAGE_VARIABLE = "TPMODEL_LIVE"  # "page" while the book is built; "still" for pictures without widgets


@dataclass(frozen=True)
class Figure:
    """A figure of the book."""

    name: str  # id on the page, words joined by hyphens
    title: str
    caption: str
    controls: tuple  # Slider and Choice; each sets one or more names of the view
    axes: tuple
    marks: tuple
    table: m.Table  # below the drawing
    constants: dict = field(default_factory=dict)  # names that no control sets
    recipes: dict = field(default_factory=dict)  # name -> function of the view, or another name: what no formula gives
    sources: dict = field(default_factory=dict)  # name of a constant -> the number of the catalog that it is
    given: tuple = ()  # names of formulas whose values the figure holds
    presets: dict = field(default_factory=dict)  # words -> texts that differ from the start; the first is the start
    readouts: dict = field(default_factory=dict)  # name -> parts of a line of text above the drawing
    size: tuple = (4.6, 2.8)
    first: int = 3  # controls that are shown at once; the others stand folded under "more"

    def texts(self, values=None):
        """The text state of every control: the defaults, replaced by `values` (texts, or numbers in base units)."""
        state = {control.name: control.start for control in self.controls}
        for name in values or {}:
            if name not in state:
                raise ValueError(f"figure {self.name} has no control {name!r}; it has {', '.join(state)}")
        for control in self.controls:
            if values and control.name in values:
                state[control.name] = control.text(values[control.name])
                control.value(state[control.name])
        return state

    def preset(self, name):
        """The values of a preset, for `view`, `draw` and `describe`; a name that the figure has not is refused."""
        if name not in self.presets:
            raise ValueError(f"figure {self.name} has no preset {name!r}; it has {', '.join(self.presets) or 'none'}")
        return self.presets[name]

    def shown_preset(self, values=None):
        """The preset that these values are, "yours" if none; "" where the figure has no presets."""
        state = self.texts(values)
        found = (name for name, texts in self.presets.items() if state == self.texts(texts))
        return next(found, "yours") if self.presets else ""

    def view(self, values=None):
        """The view of numbers for these values of the controls."""
        numbers = {name: float(number) for name, number in self.constants.items()}
        state = self.texts(values)
        for control in self.controls:
            given = (values or {}).get(control.name)
            exact = isinstance(given, (int, float))
            numbers |= {control.name: float(given)} if exact else control.value(state[control.name])
        return View(numbers, self.recipes, self.given)

    @property
    def symbols(self):
        """The view of the figure's names as Nodes, which records what is asked of it."""
        names = {name: Node("name", name) for name in self.view().names()}
        return View(names, self.recipes, self.given, self.sources)

    @cached_property
    def recorded(self):
        """The same figure as trees: name of a mark or text -> its Nodes; unknown names fail here."""
        view, found = self.symbols, {}
        for mark in self.marks:
            here = view.extended(**{mark.over: Node("name", mark.over)}) if mark.kind == "curve" else view
            found[mark.name] = [as_node(m.place(part, here)) for part in mark.parts()]
        for name, parts in self.all_texts.items():
            found[name] = [as_node(part[0](view)) for part in parts if not isinstance(part, str)]
        return found

    @cached_property
    def derivations(self):
        """What stands behind the numbers of the readouts: see `why.derivations`."""
        return derivations(self)

    @cached_property
    def all_texts(self):
        """Every live text by name: readouts, notes beside controls, labels, table cells."""
        found = {f"readout-{name}": parts for name, parts in self.readouts.items()}
        found |= {f"silent-{control.name}": control.silent for control in self.controls if control.silent}
        found |= {f"label-{mark.name}": mark.text for mark in self.marks if mark.kind == "label"}
        found |= {f"beyond-{number}": self._beyond(number) for number, axes in enumerate(self.axes) if axes.beyond}
        for row, cells in enumerate(self.table.rows):
            found |= {f"cell-{row}-{column}": cell for column, cell in enumerate(cells)}
        return {name: m.pieces(parts) for name, parts in found.items()}

    def _beyond(self, number):
        """The words of an axis, shown where a mark ends right of it."""
        axes = self.axes[number]
        marks = [mark for mark in self.marks if mark.axes == number and mark.kind != "curve"]
        ends = [part for mark in marks for part in mark.parts()[::2]]
        outside = lambda v: ops.where(reduce(ops.maximum, (m.place(end, v) for end in ends)) > axes.xlim[1], 1, 0)
        return ((outside, ("", axes.beyond)),)

    def shown_texts(self, values=None):
        """Every text of the figure for these values."""
        view = self.view(values)
        return {name: m.text(parts, view) for name, parts in self.all_texts.items()}

    def cells(self, shown):
        """The names and texts of the table's cells, row by row."""
        names = ([f"cell-{row}-{column}" for column in range(len(cells))] for row, cells in enumerate(self.table.rows))
        return [[(name, shown[name]) for name in row] for row in names]

    def cell(self, row, column, values=None):
        """The text of the table's cell under `column`, in the row that begins with `row`."""
        number = [cells[0] for cells in self.table.rows].index(row)
        return self.shown_texts(values)[f"cell-{number}-{self.table.head.index(column)}"]

    def draw(self, values=None):
        """The matplotlib figure for these values of the controls; marks carry ids, readouts stand above."""
        from . import drawing
        return drawing.draw(self, values)

    def page(self):
        """The live HTML: inputs, readouts, the SVG, the table, and the marks as JavaScript."""
        return fragment(self)

    def describe(self, values=None):
        """The figure as plain text: settings, readouts, table. The same in every run."""
        state, shown = self.texts(values), self.shown_texts(values)
        notes = {c.name: f" ({note})" for c in self.controls if (note := shown.get(f"silent-{c.name}"))}
        return "\n".join([
            self.title,
            *([f"  shown: {self.shown_preset(values)}"] if self.presets else []),
            *(f"  {c.label} = {c.shown(state[c.name])}{notes.get(c.name, '')}" for c in self.controls),
            *(shown[f"readout-{name}"] for name in self.readouts),
            " | ".join(self.table.head),
            *(" | ".join(text for _, text in row) for row in self.cells(shown))])

    __repr__ = describe

    def _repr_mimebundle_(self, include=None, exclude=None):
        wanted = os.environ.get(PAGE_VARIABLE)
        if wanted == "page":
            return {"text/html": self.page(), "text/plain": self.describe()}
        from . import kernel
        return kernel.bundle(self, widgets=wanted != "still")
