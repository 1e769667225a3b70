"""Exercises: each answer names settings of figures, and the figures say its numbers there, to the digit."""

import json
import re
from pathlib import Path

import pytest

from tpmodel.book import figures
from tpmodel.book.pages.at import setting

ROOT = Path(__file__).resolve().parents[1]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
ITEM = re.compile(r"^ *\d+\. +(.*?)(?=^ *\d+\. |^ *:::|\Z)", re.M | re.S)


def section(stem):
    """The exercises of a chapter, "" where it has none."""
    return (ROOT / "book" / f"{stem}.md").read_text().partition("\n## Exercises\n")[2]


def answers(text):
    """The folded answers, whether they stand in one fold or each in its own."""
    return [item for fold in re.findall(r"^ *:::\{dropdown\}[^\n]*\n(.*?)^ *:::$", text, re.M | re.S)
            for item in (ITEM.findall(fold) or [fold])]


def questions(text):
    return ITEM.findall(re.sub(r"^ *:::\{dropdown\}.*?^ *:::$", "", text, flags=re.M | re.S).split("\n[^")[0])


def told(stem):
    """What the chapter's notebook told: name -> text."""
    cells = json.loads((ROOT / "notebooks" / f"{stem}.ipynb").read_text())["cells"]
    printed = "\n".join("".join(output.get("text", "")) for cell in cells for output in cell.get("outputs", ()))
    return dict(re.findall(r"^(\w+) = (.+)$", printed, re.M))


def told_numbers(answer):
    """Every number that an answer passes on from a notebook, as it is printed."""
    return [number for stem, name in re.findall(r"\{n\}`(\w+)\.(\w+)`", answer)
            for number in NUMBER.findall(told(stem)[name])]


def shown_numbers(target):
    """Every number of a figure at a setting: its controls, readouts, labels, and the cells of its table."""
    figure, state = setting(target)
    return set(NUMBER.findall(" ".join((*figure.shown_texts(state).values(), *state.values()))))


def targets(answer):
    return [said.rpartition("<")[2].removesuffix(">") for said in re.findall(r"\{at\}`([^`]+)`", answer)]


def unconfirmed(answer):
    """The numbers of an answer that no figure which it names shows at the setting that it names."""
    shown = set().union(*map(shown_numbers, targets(answer)))
    return [number for number in told_numbers(answer) if number not in shown]


WITH = [path.stem for path in sorted((ROOT / "book").glob("*.md")) if section(path.stem)]
EACH = [pytest.param(answer, id=f"{stem}-{number}")
        for stem in WITH for number, answer in enumerate(answers(section(stem)), 1)]


def test_every_chapter_with_a_figure_has_exercises():
    assert set(figures.CHAPTERS.values()) <= set(WITH)


@pytest.mark.parametrize("stem", WITH)
def test_each_exercise_has_its_answer_and_one_asks_to_predict(stem):
    text = section(stem)
    assert len(questions(text)) == len(answers(text)) > 0
    assert "redict" in text.split(":::")[0], "one exercise at least asks to predict before moving"


@pytest.mark.parametrize("answer", EACH)
def test_the_figure_confirms_the_answer_to_the_digit(answer):
    assert targets(answer), f"names no figure: {answer}"
    assert told_numbers(answer), f"has no number that a figure could confirm: {answer}"
    assert unconfirmed(answer) == [], answer


@pytest.mark.parametrize("answer", EACH)
def test_the_figure_says_it_only_when_it_is_moved(answer):
    before = set().union(*(shown_numbers(f"{target.partition(':')[0]}:") for target in targets(answer)))
    assert set(told_numbers(answer)) - before, "a reader sees every number without a move"


def test_an_answer_that_is_off_in_its_last_digit_is_found():
    right = "{n}`decode.one_card` tokens/s. {at}`decode-time: tp=1 GPU`"
    assert told_numbers(right) == ["22.4"] and unconfirmed(right) == []
    assert unconfirmed(right.replace("1 GPU", "2 GPUs")) == ["22.4"]
    fold = ":::{dropdown} Answers\n1. So.\n   More.\n2. Or so.\n:::\n"
    assert answers(f"1. *Why?*\n2. *Or why?*\n\n{fold}") == ["So.\n   More.\n", "Or so.\n"]
    assert len(questions(f"1. *Why?*\n2. *Or why?*\n\n{fold}")) == 2


@pytest.mark.parametrize("target, names", [
    ("decode-tim: tp=1 GPU", "no figure is called 'decode-tim'"), ("decode-time: gpus=1", "no control 'gpus'"),
    ("decode-time: tp=3 GPUs", "it must be one of"), ("decode-time: as measured", "no preset 'as measured'")])
def test_a_setting_that_a_figure_has_not_is_named(target, names):
    with pytest.raises(ValueError, match=names):
        setting(target)


def test_a_click_in_the_answer_moves_the_figure_there(browser, book):
    page = browser.new_page()
    page.goto((book / "book" / "decode.html").as_uri())
    page.locator("#exercises details summary").click()
    page.locator("#exercises a[href*='context_tokens=131072']").click()
    page.wait_for_function("document.querySelector('#decode-time-set-context_tokens').getAttribute('aria-valuetext')"
                           " === '131072 tokens'")
    assert page.text_content("#decode-time .tp-readouts").startswith(f"{told('decode')['rate_131k']} tokens/s")
    page.close()
