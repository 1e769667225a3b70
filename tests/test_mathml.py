"""Mathematics without JavaScript: each formula of the book as MathML, and no LaTeX that a reader sees."""

import re
from xml.etree import ElementTree

import pytest

from tpmodel.book.pages.listings import every_formula
from tpmodel.book.pages.mathml import HIDDEN, mathml, readable
from tpmodel.formula.vocabulary import NAMES

SYMBOLS = {term.symbol for term in NAMES.values()}
LATEX = SYMBOLS | {form.latex() for forms in every_formula().values() for form in forms}


@pytest.mark.parametrize("latex", sorted(LATEX))
def test_every_symbol_and_formula_becomes_whole_mathml(latex):
    tree = ElementTree.fromstring(mathml(latex))
    said = "".join(tree.itertext())
    assert not re.search(r"[\\{}_^&]|frac|mathrm", said.replace("{", "", latex.count("cases")))
    for part in tree.iter():  # a fraction without its lower half draws something else
        expected = {"mfrac": 2, "msub": 2, "msup": 2, "mover": 2, "msubsup": 3}.get(part.tag)
        assert expected in (None, len(part)), latex


@pytest.mark.parametrize("latex, tree", [
    (r"L_1^*", "<msubsup><mi>L</mi><mn>1</mn><mo>∗</mo></msubsup>"),
    (r"\left\lfloor x \right\rfloor", "<mrow><mo>⌊</mo><mi>x</mi><mo>⌋</mo></mrow>"),
    (r"N \gt 1", "<mi>N</mi><mo>&gt;</mo><mn>1</mn>"),
    (r"\begin{cases} a & b \\ c & \text{otherwise} \end{cases}",
     "<mrow><mo>{</mo><mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr><mtr><mtd><mi>c</mi></mtd>"
     '<mtd><mi mathvariant="normal">otherwise</mi></mtd></mtr></mtable></mrow>')])
def test_mathml(latex, tree):
    assert mathml(latex) == f"<math>{tree}</math>"


@pytest.mark.parametrize("latex, names", [
    (r"\sqrt{x}", r"'\\\\sqrt' is not understood"), (r"\frac{a}{b", "ends without }"),
    (r"a \right)", "is not understood")])
def test_what_is_not_understood_is_refused(latex, names):
    with pytest.raises(ValueError, match=names):
        mathml(latex)


def test_a_page_keeps_its_code_and_is_made_readable_once():
    page = r"<head></head><body><p>\(x\)</p><pre>\(y\)</pre><script>\(z\)</script></body>"
    made = readable(page)
    assert made.count("<math") == 1 and r"<pre>\(y\)</pre>" in made and r"<script>\(z\)</script>" in made
    assert readable(made) == made and readable("<body>no formula</body>") == "<body>no formula</body>"
    assert made.startswith(f"<head>{HIDDEN}</head>")


@pytest.mark.parametrize("path", ["book/decode.html", "book/symbols.html", "notebooks/decode.html"])
def test_a_page_without_javascript_shows_mathematics_and_no_latex(path, browser, book):
    page = browser.new_page(java_script_enabled=False)
    page.goto((book / path).as_uri())
    text = page.inner_text("article")
    assert not re.search(r"\\[(\[a-zA-Z]", re.sub(r"\\d|\\\\", "", text)), re.search(r".{30}\\[(\[a-zA-Z].{30}", text)
    sizes = page.locator("article math").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => [box.width, box.height])")
    assert sizes and all(width > 0 and height > 0 for width, height in sizes)
    rooms = page.locator("div.math:has(math)").evaluate_all("""all => all.map(one =>
        one.getBoundingClientRect().bottom - one.querySelector("math").getBoundingClientRect().bottom)""")
    assert all(room > -1 for room in rooms), "a formula stands over what follows"
    page.close()


def test_with_javascript_katex_draws_and_no_formula_stands_twice(browser, book):
    page = browser.new_page()
    page.goto((book / "book" / "decode.html").as_uri())
    page.wait_for_selector(".tp-tex .katex")
    assert page.locator("noscript math").count() == 0
    assert page.locator(".tp-tex").count() == page.locator(".tp-tex:has(.katex)").count() > 0
    page.close()
