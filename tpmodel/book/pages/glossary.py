"""The glossary, made: words from words.csv, quantities from the vocabulary with the place that first explains each."""

import csv
import re
from importlib import resources
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from ...formula.view import formula_of
from ...formula.vocabulary import NAMES
from .legend import letters

SHOWN = re.compile(r"^(#+) (.+)$|^```\{glue\} (\w+)$", re.M)  # a heading, or something glued
CHAPTER = re.compile(r"- file: book/(\w+)$", re.M)  # of _toc.yml, in its order


def words():
    """((word, what it means), ...): what is no quantity."""
    text = (resources.files(__package__) / "data" / "words.csv").read_text(encoding="utf-8")
    return tuple((row["word"], row["meaning"]) for row in csv.DictReader(text.splitlines()))


def slug(heading):
    """The anchor of a heading.

    >>> slug("Ring, or tree?")
    'ring-or-tree'
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def quantities(folder):
    """{name: (chapter, its title, heading)} of every letter in a formula of the chapters: where it stands first."""
    found = {}
    for stem in CHAPTER.findall((folder / "_toc.yml").read_text(encoding="utf-8")):
        title = heading = ""
        for level, words_of_it, key in SHOWN.findall((folder / "book" / f"{stem}.md").read_text(encoding="utf-8")):
            if level:
                heading, title = words_of_it, title or words_of_it
            elif formula_of(key):
                for name in letters(key, ""):
                    found.setdefault(name, (stem, title, heading))
    return found


def _quantity(name, stem, title, heading):
    """One row of the table: a link leads to the heading, for the first of a chapter to the chapter itself."""
    anchor = f"#{slug(heading)}" * (heading != title)
    term = NAMES[name]
    return f"| ${term.symbol}$ | {term.meaning} | {term.unit} | [{heading}]({stem}.md{anchor}) |"


class Vocabulary(SphinxDirective):
    """```{vocabulary} words``` or ```{vocabulary} quantities```: a part of the glossary."""

    required_arguments = 1

    def run(self):
        """The nodes of the part."""
        parts = {"words": self._words, "quantities": self._quantities}
        if self.arguments[0] not in parts:
            raise self.error(f"vocabulary {self.arguments[0]!r} is not accepted: it must be one of {', '.join(parts)}")
        node = nodes.container()
        self.state.nested_parse(StringList(parts[self.arguments[0]](), source=self.env.docname), 0, node)
        return node.children

    def _words(self):
        return [":::{glossary}", *(line for word, meaning in words() for line in (word, f"  {meaning}", "")), ":::"]

    def _quantities(self):
        rows = quantities(Path(self.env.srcdir)).items()
        return ["| symbol | meaning | unit | first explained |", "| --- | --- | --- | --- |",
                *(_quantity(name, *where) for name, where in rows)]
