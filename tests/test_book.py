"""The book's rules: same stems, thin notebooks with stored outputs, numbers glued, links that resolve."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = sorted((ROOT / "book").glob("*.md"))
by_stem = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def code_cells(path):
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


@by_stem
def test_a_notebook_has_its_chapter(path):
    assert (ROOT / "book" / path.name).with_suffix(".md").exists()


@by_stem
def test_notebooks_are_thin_and_hold_their_outputs(path):
    cells = code_cells(path)
    assert any(cell["outputs"] for cell in cells), "outputs must be stored: nbval compares nothing else"
    for cell in cells:
        for line in "".join(cell["source"]).splitlines():
            assert not re.match(r"\s*(def|for|while|class|lambda)\b", line), line
        for output in cell["outputs"]:
            assert output["output_type"] != "error"
    assert "".join(cells[-1]["source"]).startswith("assert "), "the last cell asserts"
    assert "widgets" not in json.loads(path.read_text())["metadata"]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_every_chapter_is_in_the_table_of_contents(path):
    assert f"book/{path.stem}\n" in (ROOT / "_toc.yml").read_text() + "\n"


class Anchors(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])


def test_every_internal_link_and_anchor_resolves(book):
    pages = {path: Anchors(path.read_text()) for path in book.rglob("*.html") if "_static" not in path.parts}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            url = urlparse(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            anchor = unquote(url.fragment)
            if not target.exists():
                broken.append(f"{path.relative_to(book)}: {link}")
            elif anchor and target in pages and anchor not in pages[target].ids and not any(
                anchor.startswith(f"{i}.") for i in pages[target].ids
            ):
                broken.append(f"{path.relative_to(book)}: {link} (no such anchor)")
    assert broken == []


def test_licences_stand_beside_vendored_assets():
    for asset in (ROOT / "book" / "assets").iterdir():
        if asset.is_dir():
            assert list(asset.glob("LICENSE*")), f"{asset.name} has no licence beside it"
