"""A build of the book that gave a warning fails until its cause is gone, on whichever page, however it is called."""

import pytest
from click.testing import CliRunner
from jupyter_book.cli.main import main

from tpmodel.book.pages import sphinx_ext as book

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
STRICT = ("-W", "-n", "--keep-going")
CONFIG = """
title: Small
only_build_toc_files: true
execute: {execute_notebooks: "off"}
sphinx:
  config:
    extensions: [myst_nb, jupyter_book, sphinx_external_toc, sphinx_comments, tpmodel.book.pages.sphinx_ext]
    html_theme: basic
    html_theme_options: {}
    myst_heading_anchors: 2
"""


@pytest.fixture
def small(tmp_path):
    """A book of two pages; the second points into the first."""
    (tmp_path / "_config.yml").write_text(CONFIG)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: one\nchapters: [{file: two}]\n")
    (tmp_path / "one.md").write_text("# One\n\n## A heading\n")
    (tmp_path / "two.md").write_text("# Two\n\n[there](one.md#a-heading)\n")
    return tmp_path


def build(folder, *options):
    """Exit status and what was said, of README's command."""
    done = CliRunner().invoke(main, ["build", str(folder), *options])
    return done.exit_code, done.output


def change(page, old, new):
    text = page.read_text()
    assert old in text
    page.write_text(text.replace(old, new))


@pytest.mark.parametrize("page, good, bad", [
    ("one.md", "# One\n", "# One\n[dead](nowhere.md)\n"),  # found when the page is written
    ("two.md", "# Two\n", "# Two\n```{nonsense}\n```\n"),  # found when it is read
    ("one.md", "## A heading", "## Another heading"),  # found on the page that points there and has not changed
], ids=["written", "read", "pointed at"])
def test_a_failed_build_stays_failed(small, page, good, bad):
    assert build(small, *STRICT)[0] == 0
    change(small / page, good, bad)
    for _ in range(2):
        status, said = build(small, *STRICT)
        assert status != 0 and "WARNING" in said, said
    change(small / page, bad, good)
    status, said = build(small, *STRICT)
    assert status == 0, said
    assert build(small, *STRICT)[0] == 0


def test_what_a_lenient_build_let_pass_is_found_by_a_strict_one(small):
    change(small / "two.md", "# Two", "# Two\n\n{py:func}`nothing`")
    assert build(small)[0] == 0
    for _ in range(2):
        status, said = build(small, *STRICT)
        assert status != 0 and "nothing" in said


def test_a_setting_that_hid_a_warning_hides_it_no_more(small):
    hiding = "    suppress_warnings: [myst.xref_missing]\n"
    change(small / "two.md", "# Two", "# Two\n\n[dead](nowhere.md)")
    change(small / "_config.yml", "    html_theme:", hiding + "    html_theme:")
    assert build(small, *STRICT)[0] == 0
    change(small / "_config.yml", hiding, "")
    assert build(small, *STRICT)[0] != 0


def test_a_build_that_did_not_reach_its_end_is_no_clean_one(small, monkeypatch):
    """Killed, say: its pages were read and written, and nobody saw its exit status."""
    assert build(small, *STRICT)[0] == 0
    change(small / "one.md", "# One\n", "# One\n[dead](nowhere.md)\n")
    with monkeypatch.context() as patch:
        patch.setattr(book, "end", lambda *_: None)
        build(small, *STRICT)
    status, said = build(small, *STRICT)
    assert status != 0 and "nowhere" in said
