"""Below each formula of a chapter stand its letters, all of them, with the values of the chapter's figure."""

import re
from pathlib import Path

import pytest

from tpmodel.book.pages.legend import amount, legend, letters
from tpmodel.formula import REGISTRY, printers
from tpmodel.formula.view import formula_of
from tpmodel.formula.vocabulary import NAMES

ROOT = Path(__file__).resolve().parents[1]
SHOWN = [(path.stem, key) for path in sorted((ROOT / "book").glob("*.md"))
         for key in re.findall(r"```\{glue\} (\w+)\n", path.read_text()) if formula_of(key)]


@pytest.mark.parametrize("stem, key", SHOWN)
def test_every_symbol_of_a_formula_is_in_its_legend(stem, key):
    left = REGISTRY[key].latex()
    for symbol in sorted((NAMES[name].symbol for name in letters(key, "")), key=len, reverse=True):
        left = re.sub(r"(?<![A-Za-z\\])" + re.escape(symbol), " ", left)
    left = re.sub(r"\\(mathrm|text)\{\w*\}|\\[a-zA-Z]+", " ", left)
    assert not re.search(r"[A-Za-z]", left), f"without a legend: {left}"


@pytest.mark.parametrize("stem, key", SHOWN)
def test_a_value_of_a_legend_is_its_formulas_result(stem, key):
    title, rows = legend(stem, key, "")
    assert [symbol for symbol, *_ in rows] == [NAMES[name].symbol for name in letters(key, "")]
    assert bool(title) == bool(rows[0][2]), "values and where they are from come together"


def test_the_values_are_those_of_the_figure():
    title, rows = legend("decode", "weight_read_s", "")
    assert title == "Decode: where one token's time goes."
    assert [row[2] for row in rows] == ["22.32 ms", "20 GB", "2", "1", "448 GB/s"]


def test_amounts():
    assert amount(10240, "byte") == "10,240 B" and amount(17e9, "byte") == "17 GB"
    assert amount(2.07e-9, "s") == "2.07 ns" and amount(1, "token") == "1 token" and amount(64, "") == "64"


def test_no_guard_of_a_program_is_printed():
    for stem, key in SHOWN:
        text = REGISTRY[key].latex()
        assert "otherwise" not in text and r"\max\left(2" not in text, f"{stem}: {text}"
    tree, held = printers.unguarded(REGISTRY["even_message_bytes"].tree)
    assert printers.latex(tree) == r"\frac{N}{2 \, \left(N - 1\right)} \, \alpha_N \, B" and list(held) == [r"N \ge 2"]
