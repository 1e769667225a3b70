"""The book's rules: same stems, thin notebooks that read and hold their outputs, numbers glued, links that resolve."""

import ast
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
import yaml

from tpmodel.book.pages import sphinx_ext

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = sorted((ROOT / "book").glob("*.md"))
by_stem = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


LINES, IMPORT_LINES = 10, 12  # that a code cell may have, blank ones not counted


def all_cells(path):
    return json.loads(path.read_text())["cells"]


def code_cells(path):
    return [cell for cell in all_cells(path) if cell["cell_type"] == "code"]


def says(cell):
    """Whether it is a markdown cell with a sentence: a heading alone says nothing."""
    return cell["cell_type"] == "markdown" and bool(re.search(r"^(?!#).*[.?!:]\)?$", "".join(cell["source"]), re.M))


def unreadable(cells):
    """What stops a reader: code under no sentence, long code, an assert without words."""
    found = []
    for above, cell in zip([None, *cells], cells):
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        tree = ast.parse(source)
        imports = all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body)
        lines = sum(bool(line.strip()) for line in source.splitlines())
        if above is None or not says(above):
            found.append(f"bare: {source}")
        if lines > (IMPORT_LINES if imports else LINES):
            found.append(f"{lines} lines: {source}")
        found += [f"no words: {ast.unparse(node)}" for node in ast.walk(tree) if isinstance(node, ast.Assert) and not (
            isinstance(node.msg, ast.Constant) and " " in str(node.msg.value))]
    return found


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


@by_stem
def test_a_notebook_reads(path):
    first, *_ = cells = all_cells(path)
    assert first["cell_type"] == "markdown" and f"](../book/{path.stem}.md)" in "".join(first["source"])
    assert unreadable(cells) == []


def test_python_in_a_chapter_is_that_of_its_notebook():
    for path in CHAPTERS:
        for block in re.findall(r"```python\n(.*?)\n```", path.read_text(), re.S):
            cells = code_cells(ROOT / "notebooks" / f"{path.stem}.ipynb")
            assert any(block in "".join(cell["source"]) for cell in cells), f"{path.stem}: {block}"


def written(*sources):
    """Cells: a text that begins with "%" is code, any other markdown."""
    return [{"cell_type": "code" if text[0] == "%" else "markdown", "source": text.removeprefix("%")}
            for text in sources]


@pytest.mark.parametrize("cells, names", [
    (written("%x = 1"), "bare"),
    (written("## Only a heading", "%x = 1"), "bare"),
    (written("Is it one?", "%x = 1", "%y = 1"), "bare"),
    (written("Is it one?", "%" + "x = 1\n" * 11), "11 lines"),
    (written("You import.", "%" + "import ast\n" * 13), "13 lines"),
    (written("What must hold:", "%assert 1 == 1"), "no words"),
    (written("What must hold:", "%assert 1 == 1, 'one'"), "no words"),
])
def test_a_notebook_that_does_not_read_is_named(cells, names):
    assert [said.partition(":")[0] for said in unreadable(cells)] == [names]


def test_a_notebook_that_reads_passes():
    assert unreadable(written("## One\n\nYou import.", "%" + "import ast\n\n" * 12,
                              "Is it one?", "%" + "x = 1\n\n" * 10,
                              "What must hold:", "%assert x == 1, 'one is one'")) == []


@by_stem
def test_a_notebook_stands_under_its_chapter_in_the_table_of_contents(path):
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    sections = {chapter["file"]: chapter.get("sections") for part in parts for chapter in part["chapters"]}
    assert sections[f"book/{path.stem}"] == [{"file": f"notebooks/{path.stem}"}]


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


def test_the_mark_of_a_build_covers_the_whole_package():
    assert sphinx_ext.PACKAGE == ROOT / "tpmodel"
