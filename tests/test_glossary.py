"""The glossary: words that the book uses, quantities of the vocabulary with the place that first shows them."""

import re
from pathlib import Path

import pytest

from tpmodel.book.pages.glossary import CHAPTER, quantities, slug, words
from tpmodel.book.pages.legend import letters
from tpmodel.formula.view import formula_of
from tpmodel.formula.vocabulary import NAMES

ROOT = Path(__file__).resolve().parents[1]
STEMS = CHAPTER.findall((ROOT / "_toc.yml").read_text())
TEXTS = {stem: (ROOT / "book" / f"{stem}.md").read_text() for stem in STEMS}
FOUND = quantities(ROOT)


def headings(text):
    return re.findall(r"^#+ (.+)$", text, re.M)


def test_words_stand_in_order_and_once():
    names = [word.lower() for word, _ in words()]
    assert names == sorted(set(names))


@pytest.mark.parametrize("word, meaning", words())
def test_a_word_is_used_in_a_chapter_and_what_it_says_leads_there(word, meaning):
    chapters = " ".join(text for stem, text in TEXTS.items() if stem != "glossary").lower()
    assert all(one.lower() in re.sub(r"\s+", " ", chapters) for one in word.split(", ")), f"{word} is not in the book"
    for stem, anchor in re.findall(r"\]\((\w+)\.md#?([\w-]*)\)", meaning):
        assert not anchor or anchor in map(slug, headings(TEXTS[stem])), f"{word}: {stem}.md#{anchor}"


def test_no_word_is_a_symbol_of_the_vocabulary():
    assert not {word for word, _ in words()} & {term.symbol for term in NAMES.values()}


@pytest.mark.parametrize("name", FOUND)
def test_a_quantity_is_shown_where_the_glossary_sends_you_and_in_no_chapter_before(name):
    stem, title, heading = FOUND[name]
    assert name in NAMES and title == headings(TEXTS[stem])[0]
    section = TEXTS[stem].split(f" {heading}\n", 1)[1].split("\n#")[0]
    shown = lambda text: {letter for key in re.findall(r"\{glue\} (\w+)\n", text) if formula_of(key)
                          for letter in letters(key, "")}
    assert name in shown(section)
    assert not any(name in shown(TEXTS[before]) for before in STEMS[: STEMS.index(stem)])


def test_every_letter_of_every_formula_is_there():
    keys = {key for text in TEXTS.values() for key in re.findall(r"\{glue\} (\w+)\n", text) if formula_of(key)}
    assert {name for key in keys for name in letters(key, "")} == set(FOUND)


def test_the_built_page_has_all_of_it(book):
    page = (book / "book" / "glossary.html").read_text()
    assert all(f'id="term-{word.split(",")[0].replace(" ", "-")}' in page for word, _ in words())
    rows = page.split('id="quantities"')[1].split("</table>")[0].count("<tr")
    assert rows == len(FOUND) + 1
