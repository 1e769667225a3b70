"""README's picture of a live figure, from the built book: `python benchmarks/picture.py` after `make book`."""

import io
import json
import shutil
import sys
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import sync_playwright

from tpmodel.book import figures

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "benchmarks" / "picture.png"
FLAGS = "--no-sandbox --disable-gpu --hide-scrollbars --no-first-run --disable-background-networking".split()
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
# Readout, picture and controls: neither the theme's bars over the page nor what stands below them.
HIDDEN = ".skip-link, .bd-header, .bd-header-article, .tp-table, .tp-foot { display: none !important; }"


def main():
    figure = figures.decode_time()
    page_address = (ROOT / "_build" / "html" / "book" / f"{figures.CHAPTERS[figure.name]}.html").as_uri()
    path = (next(filter(None, map(shutil.which, CHROMIUM)), None)
            or sys.exit("no Chromium (Debian: apt install chromium)"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 2000}, device_scale_factor=2, color_scheme="light")
        page.goto(page_address)
        page.add_style_tag(content=HIDDEN)
        page.wait_for_load_state("networkidle")
        png = page.locator(f"#{figure.name}").screenshot()
        browser.close()
    about = PngInfo()  # what the picture shows, so that a test sees when the figure has moved on
    about.add_text("shown", json.dumps(figure.shown_texts({})))
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    image.save(PICTURE, optimize=True, pnginfo=about)
    print(f"{PICTURE.relative_to(ROOT)}: {image.width} x {image.height}, {PICTURE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
