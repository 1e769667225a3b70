"""What the built book costs in Chromium, from file://: `python benchmarks/page.py` after `make book`.

The weight of each page, uncompressed, without fonts and search index; the time from opening it until its figures are
live; and for each figure the time from a slider's input to the painted frame.
"""

import re
import shutil
import statistics
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

from playwright.sync_api import sync_playwright

from tpmodel.book import figures
from tpmodel.book.yours import fields

BOOK = Path(__file__).resolve().parents[1] / "_build" / "html"
FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking".split()

MEASURE = """async identity => {
  const input = document.getElementById(identity), handler = [], frame = [];
  for (let i = 0; i < 120; i += 1) {
    input.value = i % (Number(input.max) + 1);
    await new Promise(requestAnimationFrame);
    const start = performance.now();
    input.dispatchEvent(new Event("input", { bubbles: true }));
    handler.push(performance.now() - start);
    const { port1, port2 } = new MessageChannel();  // its message comes after this frame's styles, layout and paint
    await new Promise(done => { port1.onmessage = done; port2.postMessage(0); });
    frame.push(performance.now() - start);
  }
  return [handler, frame];
}"""

ANSWER = """async ([name, texts]) => {
  const field = document.querySelector("#yours form").elements[name], frame = [];
  for (const text of texts) {
    field.value = text;
    await new Promise(requestAnimationFrame);
    const start = performance.now();
    field.dispatchEvent(new Event("input", { bubbles: true }));
    const { port1, port2 } = new MessageChannel();
    await new Promise(done => { port1.onmessage = done; port2.postMessage(0); });
    frame.push(performance.now() - start);
    await new Promise(done => setTimeout(done, 100));  // what is computed after the frame
  }
  return frame;
}"""

LIVE = """() => {
  const [load] = performance.getEntriesByType("navigation");
  return [load.domContentLoadedEventEnd, load.loadEventEnd];
}"""  # deferred scripts, live.js among them, have run when the content is loaded


def weight(addresses):
    """Bytes of these files on the disk, without fonts and search index."""
    files = {Path(unquote(urlparse(address).path)) for address in addresses if address.startswith("file:")}
    return sum(file.stat().st_size for file in files if file.suffix not in (".woff2", ".woff", ".ttf")
               and file.name != "searchindex.js" and file.is_file())


def weigh(browser):
    """Print weight and times of every page."""
    print(f"{'page':28} {'bytes':>10} {'requests':>9} {'live after':>11} {'loaded after':>13}")
    for path in sorted(path for folder in ("book", "notebooks") for path in (BOOK / folder).glob("*.html")):
        times = []
        for _ in range(3):
            page, asked = browser.new_page(), []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.goto(path.as_uri())
            page.wait_for_load_state("networkidle")
            times.append(page.evaluate(LIVE))
            page.close()
        live, loaded = map(statistics.median, zip(*times))
        print(f"{path.relative_to(BOOK)!s:28} {weight(asked):10,} {len(asked):9} {live:8.0f} ms {loaded:10.0f} ms")


def plan(browser):
    """Print how long the planner's page takes from a field's input to the painted frame."""
    page = browser.new_page()
    page.goto((BOOK / "book" / "yours.html").as_uri())
    listed = {field.name: list(field.options) for field in fields.fields() if field.options}
    moves = {"context": [str(tokens) for tokens in range(1000, 100_000, 1000)], "gpu": listed["gpu"],
             "model": listed["model"], "count": listed["count"] * 8}
    print(f"\n{'field of the planner':22} {'moves':>6} {'frame p50':>10} {'p95':>8}")
    for name, texts in moves.items():
        page.evaluate("document.querySelector('#yours .tp-reset').click()")
        page.evaluate(ANSWER, [name, texts[:20]])  # the browser compiles what is used often
        frame = page.evaluate(ANSWER, [name, texts])
        print(f"{name:22} {len(texts):6} {statistics.median(frame):7.1f} ms {p95(frame):5.1f} ms")
    page.close()


def p95(numbers):
    return statistics.quantiles(numbers, n=20)[-1]


def main():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        weigh(browser)
        plan(browser)
        print(f"\n{'figure':18} {'html':>8} {'script':>8} {'handler p50':>12} {'p95':>8} {'frame p95':>10}"
              "   Python redraw / handler")
        for make in figures.ALL:
            figure = make()
            if not any(control.kind == "slider" for control in figure.controls):
                continue
            page = browser.new_page()
            page.goto(f"{BOOK.as_uri()}/book/{figures.CHAPTERS[figure.name]}.html")
            slider = next(c for c in figure.controls if c.kind == "slider")
            handler, frame = page.evaluate(MEASURE, f"{figure.name}-set-{slider.name}")
            figure.draw()
            start = time.perf_counter()
            figure.draw({slider.name: slider.texts[-1]}).canvas.draw()
            python_s = time.perf_counter() - start
            html = figure.page()
            script = len(re.search(r"<script>.*</script>", html, re.S).group())
            middle = statistics.median(handler)
            print(f"{figure.name:18} {len(html) / 1e3:6.1f}KB {script / 1e3:6.1f}KB {middle:9.2f} ms "
                  f"{p95(handler):5.2f} ms {p95(frame):7.1f} ms   {python_s * 1e3 / middle:7.0f} x")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
