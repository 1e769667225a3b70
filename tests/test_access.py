"""Everyone can use the pages: axe-core finds nothing serious, the keyboard reaches every control."""

import pytest
from test_page import FIGURES, opened  # noqa: F401

SEVERAL = ("decode", "symbols", "unequal")  # notebooks' pages are all made alike


def pages(book):
    """Every page of the book, and some of its notebooks'; not the redirect to the first page."""
    return sorted(path.relative_to(book).as_posix() for path in book.rglob("*.html") if "_static" not in path.parts
                  and path != book / "index.html" and (path.parent.name != "notebooks" or path.stem in SEVERAL))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(theme, browser, book):
    from axe_playwright_python.sync_playwright import Axe

    found = []
    for path in pages(book):
        page = browser.new_page()
        page.add_init_script(f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}');")
        page.goto(f"{book.as_uri()}/{path}")
        page.wait_for_load_state("load")
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        result = Axe().run(page)
        for violation in result.response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                where = "; ".join(node["html"][:100] for node in violation["nodes"][:3])
                found.append(f"{path}: {violation['id']}: {violation['help']}: {where}")
        page.close()
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("name", FIGURES)
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(name, opened):  # noqa: F811
    page = opened(name)
    expected = page.evaluate(
        "name => [...document.querySelectorAll(`#${name} :is(input, select, button, a[href])`)].length", name)
    page.locator(f"#{name} :is(input, select, button)").first.focus()
    seen = []
    for _ in range(expected + 2):
        focus = page.evaluate("""name => {
          const here = document.activeElement;
          if (!here.closest(`#${name}`)) return null;
          return [here.outerHTML.slice(0, 120), getComputedStyle(here).outlineStyle];
        }""", name)
        if focus:
            seen.append(focus)
        page.keyboard.press("Tab")
    assert len({html for html, _ in seen}) >= expected
    assert all(outline != "none" for _, outline in seen[1:])


@pytest.mark.parametrize("name", FIGURES)
def test_every_control_has_a_name_and_is_large_enough_to_touch(name, opened):  # noqa: F811
    page = opened(name, 360, 740)
    boxes = page.evaluate("""name => {
      const controls = [...document.querySelectorAll(`#${name} :is(input, select, button:not(.tp-ask))`)];
      return controls.map(element => {
        const box = element.getBoundingClientRect();
        const label = element.getAttribute("aria-label") || element.labels?.[0]?.textContent || element.textContent;
        return [label.trim(), box.width, box.height];
      });
    }""", name)
    for label, width, height in boxes:
        assert label
        assert width >= 40 and height >= 40, f"{label}: {width:.0f} x {height:.0f}"
