"""What a slider costs in the built book, in Chromium: `python benchmarks/page.py` after `make book`."""

import re
import shutil
import statistics
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tpmodel.book import figures

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
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    frame.push(performance.now() - start);
  }
  return [handler, frame];
}"""


def p95(numbers):
    return statistics.quantiles(numbers, n=20)[-1]


def main():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        print(f"{'figure':18} {'html':>8} {'script':>8} {'handler p50':>12} {'p95':>8} {'frame p95':>10}"
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
