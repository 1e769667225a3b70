"""CONTRIBUTING.md, followed to the letter on a copy: each recipe's additions, its commands, the tests it promises."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_measure import nccl, rows

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
RECIPES = dict(re.findall(r"^## (.+)\n([^#]+)", (ROOT / "CONTRIBUTING.md").read_text(), re.M))
# recipe -> the notebook whose outputs it changes
STORED = {"A GPU": "specs", "A link": "specs", "A formula": "symbols", "A chapter": "stem"}
FIGURE = '''from dataclasses import replace

from .link import link_protocols


def your_figure():
    """As the one of the protocols, under a name of its own."""
    return replace(link_protocols(), name="your-figure")
'''
FORMULA = '''

@formula
def your_layers(layers):
    """Twice the layers.
    limits : none
    source : a product
    >>> your_layers(layers=3)
    6.0
    """
    return 2 * layers
'''


def cell(source):
    return {"cell_type": "code", "id": f"your-{len(source)}", "metadata": {}, "execution_count": None, "outputs": [],
            "source": source}


def words(source):
    return {"cell_type": "markdown", "id": f"your-words-{len(source)}", "metadata": {}, "source": source}


def run(folder, *command, **options):
    done = subprocess.run(command if len(command) > 1 else command[0], shell=len(command) == 1, cwd=folder,
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(folder)}, **options)
    return done.returncode, done.stdout + done.stderr


def named(recipe, suffix):
    """The file that a recipe names."""
    return re.search(rf"`([\w/.]+{suffix})`", RECIPES[recipe])[1]


def commands(recipe):
    """The recipe's commands for this Python, without make."""
    found = re.findall(r'`((?:\.venv/bin/python -c|tpmodel) [^`]+)`', RECIPES[recipe])
    here = lambda command: command.replace(".venv/bin/python", sys.executable)
    return [re.sub(r"^tpmodel", f"{sys.executable} -m tpmodel", here(command)) for command in found]


def append(path, text):
    path.write_text(path.read_text().rstrip("\n") + "\n" + text)


def copied_line(path, old, new):
    """Write the line that defines `old` once more, for `new`."""
    line = re.search(rf"^\W*{old}\W.*\n", path.read_text(), re.M)[0]
    path.write_text(path.read_text().replace(line, line + line.replace(old, new)))


def add_to_notebook(path, *cells):
    notebook = json.loads(path.read_text())
    notebook["cells"][-2:-2] = cells  # before the sentence above the assertions
    path.write_text(json.dumps(notebook))


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the tree with one of each."""
    folder = tmp_path_factory.mktemp("recipes") / "copy"
    left = shutil.ignore_patterns(".git", ".venv*", "_build", "__pycache__", ".*cache", ".hypothesis", "screenshots",
                                  "*.egg-info")
    shutil.copytree(ROOT, folder, ignore=left)
    cards = folder / named("A GPU", "toml")
    append(cards, re.sub(r"^.*\n", "[your-key]\n", re.split(r"^(?=\[)", cards.read_text(), flags=re.M)[-1]))
    (folder / "nccl.txt").write_text(nccl(rows(2.2e9, 9e-6, 39e-6)))
    status, entry = run(folder, commands("A link")[0])
    assert status == 0, entry
    append(folder / named("A link", "toml"), entry)
    cases = folder / named("A measurement", "csv")
    append(cases, re.sub("^.+?,", "your-row,", cases.read_text().splitlines()[1].replace(",gate,", ",report,")) + "\n")
    append(folder / named("A model", "toml"), '[your-key]\nlike = "qwen3-8b"\nsource = "a page"\n')
    copied_line(folder / re.search(r"`(tpmodel/[\w/]*terms\.\w+)`", RECIPES["A formula"])[1], "layers", "your_layers")
    append(folder / named("A formula", "/") / "linear.py", FORMULA)
    (folder / named("A figure", "/") / "your.py").write_text(FIGURE)
    append(folder / named("A figure", "__init__.py"),
           'from .your import your_figure\nALL = (*ALL, your_figure)\nCHAPTERS = {**CHAPTERS, "your-figure": "link"}\n')
    (folder / "book" / "stem.md").write_text("# Stem\n\nThere are {n}`stem.cards` cards.\n")
    (folder / "notebooks" / "stem.ipynb").write_text(json.dumps({
        "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        words("# Stem, executed\n\nFor [the chapter](../book/stem.md) you import the cards."),
        cell("from tpmodel.catalog.gpus import gpus\nfrom tpmodel.book.pages.tell import tell"),
        words("How many cards are there?"),
        cell("tell(cards=(len(gpus()), 0))"),
        words("What must hold, whatever changes:"),
        cell("assert len(gpus()) > 1, 'more than one card'")]}))
    append(folder / "_toc.yml", "      - file: book/stem\n        sections:\n          - file: notebooks/stem\n")
    return folder


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_short_and_ends_with_the_tests(recipe):
    steps = re.findall(r"^\d\. (?:.+\n?)+?(?=^\d\. |^$|\Z)", RECIPES[recipe], re.M)
    assert 0 < len(steps) <= 6 and "`make test`" in steps[-1]
    assert recipe not in STORED or "`make notebooks`" in RECIPES[recipe]


@pytest.mark.parametrize("recipe, shows", [
    ("A GPU", "memory_bytes_per_s"), ("A measurement", "your-row time_s"), ("A model", "8190726144")])
def test_the_commands_of_a_recipe_show_what_was_added(copy, recipe, shows):
    for command in commands(recipe):
        status, said = run(copy, command)
        assert status < 2 and shows in said, said  # 1: a measured row is missed, by a known amount


def test_a_formula_that_nothing_uses_is_named(copy):
    status, said = run(copy, sys.executable, "-m", "pytest", "tests/test_formula.py",
                       "-k", "formula_is_used", "-p", "no:nbval")
    assert status == 1 and "['your_layers'] == []" in said


def test_the_notebooks_hold_and_the_tests_pass(copy):
    add_to_notebook(copy / "notebooks" / "symbols.ipynb", words("What is twice three?"),
                    cell("from tpmodel.formulas.linear import your_layers\nyour_layers(layers=3)"))
    books = [f"notebooks/{stem}.ipynb" for recipe, stem in STORED.items() if "`make notebooks`" in RECIPES[recipe]]
    status, said = run(copy, "make", "-o", ".venv/installed", f"BIN={BIN}", "notebooks",
                       f"NOTEBOOKS={' '.join(sorted(set(books)))}")
    assert status == 0, said
    pytest_ = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
    status, said = run(copy, *pytest_, "--nbval", *(f"notebooks/{stem}.ipynb" for stem in sorted(set(STORED.values()))))
    assert status == 0, said
    status, said = run(copy, *pytest_, "-m", "not browser and not book", "-k",
                       "your or measured-link or stem or symbols or specs or vocabulary or formula_is_used",
                       "tests/test_catalog.py", "tests/test_formula.py", "tests/test_figures.py", "tests/test_plan.py",
                       "tests/test_book.py")
    assert status == 0, said
