"""The built pages in Chromium: every control moves the geometry to where matplotlib draws it."""

import random
import re
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import pytest

from tpmodel.book import figures
from tpmodel.book.live import drawing

FIGURES = {make().name: make() for make in figures.ALL}
CHAPTER = {name: f"book/{stem}.html" for name, stem in figures.CHAPTERS.items()}


def open_page(browser, address, path, **options):
    """A page that keeps its requests and complaints, but not a browser's own information, as on a missing network."""
    page = browser.new_page(**options)
    page.seen, page.said = [], []
    page.on("request", lambda request: page.seen.append(request.url))
    told = ("error", "warning", "assert")
    page.on("console", lambda message: message.type in told and page.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: page.said.append(f"error: {error}"))
    page.goto(f"{address}/{path}")
    if path == "index.html":  # it goes on to the first chapter
        page.wait_for_url("**/book/index.html")
    page.evaluate("document.querySelectorAll('.tp-more').forEach(fold => { fold.open = true; })")
    return page


@pytest.fixture(scope="module")
def opened(browser, book):
    """A figure's chapter, loaded once in a module; every time the figure starts from its defaults, light and wide."""
    pages = {}

    def reopened(name, width=1280, height=900, theme="light"):
        path = CHAPTER[name]
        page = pages.get(path) or pages.setdefault(path, open_page(browser, book.as_uri(), path))
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        page.click(f"#{name} .tp-reset")
        return page

    yield reopened
    for page in pages.values():
        page.close()


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


def matplotlib_geometry(figure, texts):
    """Mark -> numbers of its path, or its place, from matplotlib's own SVG."""
    tree = ElementTree.fromstring(drawing.svg(figure, texts)[0])
    groups = {group.get("id"): group for group in tree.iter() if group.get("id")}
    found = {}
    for mark in figure.marks:
        group = groups[f"{figure.name}-{mark.name}"]
        if mark.kind in ("marker", "label"):
            tag = "use" if mark.kind == "marker" else "text"
            target = next(node for node in group.iter() if node.tag.endswith(tag))
            found[mark.name] = [float(target.get("x")), float(target.get("y"))]
        else:
            path = next(node for node in group.iter() if node.tag.endswith("path"))
            found[mark.name] = numbers(path.get("d"))
    return found


READ = """([name, marks]) => Object.fromEntries(marks.map(([mark, kind]) => {
  const group = document.getElementById(`${name}-${mark}`);
  if (kind === "marker" || kind === "label") {
    const target = group.querySelector(kind === "marker" ? "use" : "text");
    return [mark, `${target.getAttribute("x")} ${target.getAttribute("y")}`];
  }
  return [mark, group.querySelector("path").getAttribute("d")];
}))"""


def page_geometry(page, figure):
    read = page.evaluate(READ, [figure.name, [[mark.name, mark.kind] for mark in figure.marks]])
    return {mark: numbers(text) for mark, text in read.items()}


def page_texts(page, figure):
    return page.evaluate("""name => {
      const places = [...document.querySelectorAll(`#${name} :is(.tp-readouts, .tp-table, svg)`)];
      return places.map(place => place.textContent);
    }""", figure.name)


def same(page, figure, texts):
    theirs, ours = page_geometry(page, figure), matplotlib_geometry(figure, texts)
    for mark in ours:
        assert len(theirs[mark]) == len(ours[mark]), f"{mark} at {texts}"
        worst = max(abs(a - b) for a, b in zip(theirs[mark], ours[mark]))
        assert worst < 0.02, f"{mark} is off by {worst} at {texts}"
    for name, text in figure.shown_texts(texts).items():
        place = f"#{figure.name}-{name.removeprefix('label-')}" + (" text" if name.startswith("label-") else "")
        assert page.text_content(place) == text, f"{name} at {texts}"
    return theirs


def move(page, figure, control, text):
    """Set a control as a reader would: choose, or slide."""
    identity = f"#{figure.name}-set-{control.name}"
    if control.kind == "choice":
        page.select_option(identity, label=text)
    else:
        page.evaluate("""([identity, index]) => {
          const input = document.querySelector(identity);
          input.value = index;
          input.dispatchEvent(new Event("input", { bubbles: true }));
          input.dispatchEvent(new Event("change", { bubbles: true }));
        }""", [identity, control.texts.index(text)])


def type_in(page, figure, control, text):
    """Type a control's number as a reader would."""
    field = page.locator(f'#{figure.name} [data-typed="{control.name}"]')
    field.fill(text)
    field.press("Enter")


OVER_HTTP = ("decode-time", "context-budget", "unequal-speeds")  # the same page and script: a few suffice


@pytest.mark.parametrize("name, way", [(name, "file") for name in FIGURES] + [(name, "http") for name in OVER_HTTP])
def test_every_control_moves_the_page_to_matplotlibs_drawing(name, way, browser, served, opened):
    """From the defaults, slid, chosen and typed; no move is silent: the page changes, or the control's note shows."""
    figure = FIGURES[name]
    page = opened(name) if way == "file" else open_page(browser, served, CHAPTER[name])
    rng = random.Random(7)
    start = same(page, figure, {})
    for control in figure.controls:
        before = page_geometry(page, figure), page_texts(page, figure)
        slider = control.kind == "slider"
        options = [text for text in (control.texts if slider else control.options) if text != control.start]
        note = f"#{name}-silent-{control.name}"
        for text, how in ((rng.choice((options[0], options[-1])), move),
                          (rng.choice(options), type_in if slider else move)):
            how(page, figure, control, text)
            after = same(page, figure, {control.name: text}), page_texts(page, figure)
            noted = control.silent and page.is_visible(note) and page.text_content(note)
            assert after != before or noted, f"{control.label} = {text} changes nothing and says nothing"
        page.click(f"#{name} .tp-reset")
        assert page_geometry(page, figure) == start
    assert page.said == []


@pytest.mark.parametrize("name", FIGURES)
def test_random_settings_of_all_controls(name, opened):
    figure = FIGURES[name]
    page = opened(name)
    rng = random.Random(11)
    for _ in range(3):
        texts = {}
        for control in figure.controls:
            texts[control.name] = rng.choice(control.texts if control.kind == "slider" else tuple(control.options))
            move(page, figure, control, texts[control.name])
        same(page, figure, texts)


def test_keyboard_typing_link_and_reset(browser, book):
    figure = FIGURES["decode-time"]
    page = open_page(browser, book.as_uri(), CHAPTER["decode-time"])
    slider = page.locator("#decode-time-set-allreduce_latency_s")
    slider.focus()
    page.keyboard.press("ArrowRight")
    control = figure.controls[0]
    following = control.texts[control.texts.index("20") + 1]
    same(page, figure, {"allreduce_latency_s": following})
    assert slider.get_attribute("aria-valuetext") == f"{following} µs"
    typed = page.locator('[data-typed="allreduce_latency_s"]')
    typed.fill("33.3")
    typed.press("Enter")
    same(page, figure, {"allreduce_latency_s": "33.3"})
    assert page.url.endswith("#decode-time.allreduce_latency_s=33.3")
    again = open_page(browser, page.url.rsplit("/", 1)[0], page.url.rsplit("/", 1)[1])
    same(again, figure, {"allreduce_latency_s": "33.3"})
    typed.fill("500")
    typed.press("Enter")
    assert "must be a number from 1 to 200 µs" in page.text_content("#decode-time .tp-note")
    same(page, figure, {"allreduce_latency_s": "33.3"})
    page.click("#decode-time .tp-reset")
    same(page, figure, {})
    assert "#" not in page.url
    page.close()
    again.close()


@pytest.mark.parametrize("hash", [
    "decode-time.allreduce_latency_s=-5", "decode-time.allreduce_latency_s=1e99", "decode-time.allreduce_latency_s=",
    "decode-time.allreduce_latency_s=NaN", "decode-time.__proto__=1", "decode-time.kv_dtype=__proto__",
    "decode-time.tp=toString", "decode-time.kv_dtype=%E0%A4%A", "decode-time.allreduce_latency_s=<img src=x>",
    "nonsense=1", "=", "decode-time.=", "decode-time.read_bytes=50&decode-time.tp=3 GPUs"])
def test_nonsense_in_the_link_shows_the_defaults_and_a_note(hash, browser, book):
    page = open_page(browser, book.as_uri(), CHAPTER["decode-time"] + "#" + hash)
    same(page, FIGURES["decode-time"], {})
    assert "defaults are shown" in page.text_content("#decode-time .tp-note")
    assert not [message for message in page.said if message.startswith("error")]
    page.close()


def test_a_heading_in_the_link_is_no_setting(browser, book):
    page = open_page(browser, book.as_uri(), CHAPTER["decode-time"] + "#where-it-breaks")
    same(page, FIGURES["decode-time"], {})
    assert page.text_content("#decode-time .tp-note") == ""
    page.close()


def test_without_javascript_the_default_figure_is_there(browser, book):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{book.as_uri()}/{CHAPTER['context-budget']}")
    assert page.locator("#context-budget svg path").count() > 10
    assert "Without JavaScript" in page.text_content("#context-budget .tp-note:visible")
    context.close()


@pytest.mark.parametrize("width", [360, 1366])
@pytest.mark.parametrize("name", FIGURES)
def test_the_picture_stands_still_while_a_readout_grows(name, width, opened):
    page, figure = opened(name, width), FIGURES[name]
    top = lambda: page.evaluate("""name => {
      const top = part => document.querySelector(`#${name} ${part}`).getBoundingClientRect().top;
      return top("svg") - top(".tp-readouts");
    }""", name)
    start = top()
    for control in figure.controls:
        ends = (control.texts[0], control.texts[-1]) if control.kind == "slider" else control.options
        for text in ends:
            move(page, figure, control, text)
            assert abs(top() - start) < 1, f"{control.label} = {text}"
        move(page, figure, control, control.start)


def test_on_a_laptop_the_picture_and_the_first_controls_fit(opened):
    """Readouts, picture and first controls, in 768 pixels without the header of 56, of all figures but one."""
    heights = {}
    for name, figure in FIGURES.items():
        heights[name] = opened(name, 1366, 768).evaluate("""([name, first]) => {
          const folds = document.querySelectorAll(".tp-more");
          folds.forEach(fold => { fold.open = false; });
          window.scrollTo({ top: 0, behavior: "instant" });
          const all = [...document.querySelectorAll(`#${name} .tp-control`)].slice(0, first);
          const boxes = [document.querySelector(`#${name} .tp-seen`), ...all].map(e => e.getBoundingClientRect());
          folds.forEach(fold => { fold.open = true; });
          return Math.max(...boxes.map(b => b.bottom)) - Math.min(...boxes.map(b => b.top));
        }""", [name, figure.first])
    assert sum(height > 768 - 56 for height in heights.values()) <= 1, heights


def test_a_hidden_control_is_shown_where_a_link_moves_it(browser, book):
    page = browser.new_page()
    page.goto(f"{book.as_uri()}/{CHAPTER['decode-time']}")
    assert not page.is_visible("#decode-time-set-context_tokens")
    page.goto(f"{book.as_uri()}/{CHAPTER['decode-time']}#decode-time.context_tokens=8192")
    page.wait_for_selector("#decode-time-set-context_tokens", state="visible")
    page.close()


def test_a_number_of_a_readout_says_why(browser, book):
    """By Enter and by a click; Escape closes and gives the focus back; the values are those of now."""
    page = open_page(browser, book.as_uri(), CHAPTER["decode-time"], viewport={"width": 360, "height": 740})
    figure = FIGURES["decode-time"]
    move(page, figure, figure.controls[1], "50")
    number = page.locator("#decode-time .tp-ask").first
    number.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=f"Why {number.text_content()}")
    view = figure.view({"read_bytes": "50"})
    assert f"{view.decode_tokens_per_s:.2f} token/s decode rate of one stream" in dialog.inner_text()
    dialog.locator("summary", has_text="one pass").first.click()
    assert dialog.locator("var", has=page.locator("sub", has_text="comm")).inner_text() == "tcomm"
    assert f"{view.pass_s * 1e3:.2f} ms" in dialog.inner_text() and "pass_s = " in dialog.inner_text()
    assert dialog.bounding_box()["width"] <= 360
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert number.evaluate("e => e === document.activeElement")
    number.click()
    dialog.get_by_role("button", name="Close").click()
    dialog.wait_for(state="hidden")
    assert page.said == []
    page.close()


def test_claims_are_filtered_by_verdict_and_searched(browser, book):
    page = open_page(browser, book.as_uri(), "book/claims.html", viewport={"width": 360, "height": 740})
    bar, rows = page.get_by_role("search"), page.locator(".tp-words tbody tr:visible")
    every = rows.count()
    assert bar.locator("output").text_content() == f"{every} of {every}"
    bar.locator("select").select_option("wrong")
    wrong = rows.count()
    assert 0 < wrong < every and set(rows.locator("[data-verdict]").all_text_contents()) == {"wrong"}
    mark = rows.locator("[data-verdict]").first.evaluate("e => getComputedStyle(e, '::after').content")
    assert "✗" in mark
    ours = rows.first.locator("td").nth(2)
    assert ours.bounding_box()["width"] > 200, "ours stands on a line of its own"
    assert ours.evaluate("e => getComputedStyle(e, '::before').content") == '"ours: "'
    bar.locator("input").fill("nothing holds these words")
    assert rows.count() == 0 and bar.locator("output").text_content() == f"0 of {every}"
    page.close()


BROKEN = r"""() => {  // \p{Lo}, letters without case: Japanese breaks between any two
  const found = [], texts = [];
  for (const table of document.querySelectorAll(".bd-article table")) {
    const walk = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
    const skipped = ".katex, a, code";
    while (walk.nextNode()) if (!walk.currentNode.parentElement.closest(skipped)) texts.push(walk.currentNode);
  }
  for (const text of texts) {
    for (const word of text.data.matchAll(/[\p{LC}\p{N}][\p{LC}\p{N},.%]*[\p{LC}\p{N}%]/gu)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) found.push(word[0]);
    }
  }
  return found;
}"""


def test_on_a_phone_no_word_and_no_number_of_a_table_is_broken(browser, book):
    for path in pages(book):
        if path.startswith("book/"):
            page = open_page(browser, book.as_uri(), path, viewport={"width": 360, "height": 740})
            assert page.evaluate(BROKEN) == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
            page.close()


def test_printed_from_the_dark_a_figure_is_black_on_white(browser, book):
    page = open_page(browser, book.as_uri(), CHAPTER["decode-time"])
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    color = "getComputedStyle(document.querySelector('#decode-time .tp-readouts')).color"
    light = lambda: sum(map(int, re.findall(r"\d+", page.evaluate(color))[:3]))
    assert light() > 450
    page.emulate_media(media="print")
    assert light() < 150
    page.close()


def pages(book):
    return sorted(str(path.relative_to(book)) for path in book.rglob("*.html") if "_static" not in path.parts)


def test_no_page_asks_another_origin_or_complains(browser, book, served):
    for address in (book.as_uri(), served):
        origin = re.match(r"(file:/|https?://[^/]+)", address).group()
        for path in pages(book):
            page = open_page(browser, address, path)
            page.wait_for_load_state("load")
            strangers = [url for url in page.seen if not url.startswith((origin, "data:", "blob:"))]
            assert strangers == [], path
            assert page.said == [], path
            page.close()


def test_a_page_is_light_and_every_icon_is_drawn(browser, book):
    """At most 1.5 MB, uncompressed, without fonts; no search index where none is used, no font of icons."""
    for path in set(pages(book)) - {"index.html"}:
        page = open_page(browser, book.as_uri(), path)
        page.wait_for_load_state("load")
        files = {Path(unquote(urlparse(url).path)) for url in page.seen if url.startswith("file:")}
        heavy = [file.name for file in files if "fontawesome" in str(file)]
        assert heavy == [] and ("searchindex.js" in {f.name for f in files}) == (path == "search.html"), path
        assert sum(file.stat().st_size for file in files if file.suffix != ".woff2") <= 1.5e6, path
        bare = page.evaluate("""() => [...document.querySelectorAll(".fa-solid, .fas")].filter(icon =>
          !getComputedStyle(icon, "::before").maskImage.startsWith("url(")).map(icon => icon.className)""")
        assert bare == [], path
        page.close()


def test_mathematics_is_drawn(opened):
    page = opened("decode-time")
    page.wait_for_selector(".katex")
    assert page.locator("div.math .katex").count() >= 6
    assert page.locator(".katex-error").count() == 0


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_screenshots_and_no_sideways_scroll(name, width, theme, opened, request):
    page = opened(name, width, theme=theme)
    folder = request.config.rootpath / "tests" / "screenshots"
    folder.mkdir(exist_ok=True)
    page.locator(f"#{name}").screenshot(path=folder / f"{name}-{width}-{theme}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    smallest = page.evaluate("""name => Math.min(...[...document.querySelectorAll(`#${name} svg text`)].map(text =>
      parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getBoundingClientRect().width
      / text.ownerSVGElement.viewBox.baseVal.width))""", name)
    assert smallest >= 11, f"smallest text {smallest:.1f} px"


def test_a_number_is_typed_as_the_page_prints_it(browser, book):
    page = open_page(browser, book.as_uri(), CHAPTER["decode-time"])
    typed = page.locator('[data-typed="context_tokens"]')
    typed.fill("131,072")
    typed.press("Enter")
    same(page, FIGURES["decode-time"], {"context_tokens": "131072"})
    typed.fill("13,10")
    typed.press("Enter")
    assert "“13,10” is not accepted" in page.text_content(".tp-control:has([data-typed=context_tokens]) .tp-note")
    same(page, FIGURES["decode-time"], {"context_tokens": "131072"})
    page.close()


def test_only_a_link_that_names_a_figure_touches_it(browser, book):
    page = open_page(browser, book.as_uri(), CHAPTER["prompt-time"])
    move(page, FIGURES["prompt-time"], FIGURES["prompt-time"].controls[0],
         FIGURES["prompt-time"].controls[0].texts[3])
    moved = page_texts(page, FIGURES["prompt-time"])
    for link in ("#where-it-breaks", "#message-time.tp=4 GPUs", "#"):
        page.evaluate("link => { location.hash = link; }", link)
        page.wait_for_timeout(50)
        assert page_texts(page, FIGURES["prompt-time"]) == moved, link
    same(page, FIGURES["message-time"], {"tp": "4 GPUs"})
    page.close()


def test_the_link_to_a_setting_is_copied(browser, book):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{book.as_uri()}/{CHAPTER['decode-time']}")
    page.locator('[data-typed="allreduce_latency_s"]').fill("33.3")
    page.locator('[data-typed="allreduce_latency_s"]').press("Enter")
    page.click("#decode-time .tp-link")
    page.wait_for_function("document.querySelector('#decode-time .tp-note').textContent === 'The link is copied.'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith("#decode-time.allreduce_latency_s=33.3") and copied.startswith(book.as_uri())
    context.close()


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_on_a_desktop_the_controls_stand_beside_the_picture_and_it_stays_in_view(figure, opened):
    page = opened(figure.name, 1366, 768)
    box = lambda selector: page.locator(f"#{figure.name} {selector}").bounding_box()
    page.locator(f"#{figure.name} .tp-result").evaluate(
        "e => window.scrollBy({top: e.getBoundingClientRect().top - 64, behavior: 'instant'})")
    assert box(".tp-controls")["x"] >= box(".tp-result")["x"] + box(".tp-result")["width"]
    assert abs(box(".tp-controls")["y"] - box(".tp-result")["y"]) < 60
    inside = page.locator(f"#{figure.name}").bounding_box()
    assert box(".tp-controls")["x"] + box(".tp-controls")["width"] <= inside["x"] + inside["width"]
    last = figure.controls[-1].name
    page.locator(f"#{figure.name}-set-{last}").scroll_into_view_if_needed()
    if box(".tp-seen")["height"] < 690:
        assert 0 < box("svg")["y"] and box("svg")["y"] + box("svg")["height"] < 768
