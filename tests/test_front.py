"""What a stranger meets first: README's tables and picture, the changelog, the notebooks' links, the workflow."""

import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from test_imports import HOUSE, SCIENCE

import tpmodel
from tpmodel.book import figures

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOW = (ROOT / ".github" / "workflows" / "book.yml").read_text()
JOBS = yaml.safe_load(WORKFLOW)["jobs"]
MADE = {make.__name__: make() for make in figures.ALL}


def rows(heading):
    """The cells of the table under a heading of README, without the table's own heading."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def figure_number(name):
    """The number of the article's figure that a figure's module names in its first words, else None."""
    doc = importlib.import_module(getattr(figures, name).__module__).__doc__
    found = re.match(r"Figure (\d):", doc)
    return found and int(found.group(1))


MAP = rows("The figures of the article")


def test_the_map_names_figures_1_to_6_and_every_function_that_draws_them():
    assert [int(number) for number, *_ in MAP] == [1, 2, 3, 4, 5, 6]
    listed = {name: int(row[0]) for row in MAP for name in re.findall(r"`figures\.(\w+)\(\)`", row[4])}
    assert listed == {name: figure_number(name) for name in MADE if figure_number(name)}


@pytest.mark.parametrize("row", MAP, ids=lambda row: f"figure-{row[0]}")
def test_a_row_of_the_map_leads_from_chapter_to_notebook_to_function(row):
    _, _, chapter, notebook, functions = row
    stem = re.fullmatch(r"\[(\w+)\]\(book/\1\.md\)", chapter).group(1)
    assert notebook == f"[{stem}](notebooks/{stem}.ipynb)"
    cells = json.loads((ROOT / "notebooks" / f"{stem}.ipynb").read_text())["cells"]
    code = "".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code")
    for name in re.findall(r"`figures\.(\w+)\(\)`", functions):
        assert figures.CHAPTERS[MADE[name].name] == stem
        assert f"figures.{name}()" in code
        key = MADE[name].name.replace("-", "_")
        assert f"```{{glue}} {key}\n:doc: ../notebooks/{stem}.ipynb" in (ROOT / "book" / f"{stem}.md").read_text()


FOLDERS = rows("The package")
BELOW = [row[0] for row in FOLDERS].index("around it")


def parts_of(table):
    return re.findall(r"`([\w/.]+)`", " ".join(row[1] for row in table))


def test_the_upper_half_of_the_table_is_the_science_wing():
    assert {part.removesuffix("/").removesuffix(".py") for part in parts_of(FOLDERS[:BELOW])} == set(SCIENCE)


def test_the_table_of_folders_holds_every_part_of_the_package_once():
    listed = parts_of(FOLDERS)
    parts = [path.name + ("/" if path.is_dir() else "") for path in (ROOT / "tpmodel").iterdir()
             if path.suffix == ".py" or (path / "__init__.py").exists()]
    assert sorted(listed) == sorted(part for part in parts if not part.startswith("__"))


def test_every_link_and_picture_of_the_readme_is_there():
    for address in re.findall(r"\]\(([^)#]+)\)|<img src=\"([^\"]+)\"", README):
        address = "".join(address)
        assert address.startswith("https://") or (ROOT / address).exists(), address


def test_the_picture_comes_first_is_small_and_shows_what_the_figure_shows_now():
    from PIL import Image

    first = README.split("\n## ")[0]
    path = ROOT / re.search(r'^<img src="([^"]+)" .*alt="[^"]+">$', first, re.M).group(1)
    assert path.stat().st_size < 200_000
    shown = json.loads(Image.open(path).text["shown"])
    assert shown == MADE["decode_time"].shown_texts({}), "the figure changed: make book; python benchmarks/picture.py"


def test_the_distribution_has_its_own_name_and_the_install_line_says_so():
    assert PROJECT["project"]["name"] == "tpmodel-book"
    assert "version" in PROJECT["project"]["dynamic"] and re.fullmatch(r"\d+\.\d+\.\d+", tpmodel.__version__)
    assert re.search(r"pip install -e \.` [^\n]+ \*\*Not `pip install tpmodel`:\*\*", README)


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## (.+)$", text, re.M)
    assert releases[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", release) for release in releases[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.M)) <= kinds


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebooks_first_cell_links_to_its_chapter(path):
    first = json.loads(path.read_text())["cells"][0]
    assert first["cell_type"] == "markdown"
    assert f"](../book/{path.stem}.md)" in "".join(first["source"])


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_that_link_leads_to_the_chapter_in_the_built_book(path, book):
    page = (book / "notebooks" / f"{path.stem}.html").read_text()
    assert f'href="../book/{path.stem}.html"' in page.split("<article")[1].split('class="cell')[0]


def steps(job):
    return [step.get("run") or step["uses"] for step in JOBS[job]["steps"]]


def test_the_workflow_tests_on_every_python_and_publishes_only_what_passed():
    lowest = int(re.fullmatch(r">=3\.(\d+)", PROJECT["project"]["requires-python"]).group(1))
    matrix = JOBS["quick"]["strategy"]["matrix"]["python"]
    assert matrix == [f"3.{minor}" for minor in range(lowest, 15)]
    assert f"CPython {matrix[0]} to {matrix[-1]}" in (ROOT / "requirements.txt").read_text().splitlines()[0]
    assert [step for step in steps("quick") if "pytest" in step] == ['pytest -m "not browser and not vllm"']
    whole = steps("whole")
    assert whole.index("make book") < whole.index("make test") < whole.index("actions/upload-pages-artifact@v5")
    assert set(JOBS["publish"]["needs"]) == set(JOBS) - {"publish"}
    assert "github.event_name == 'push'" in JOBS["publish"]["if"]
    assert JOBS["publish"]["permissions"] == {"pages": "write", "id-token": "write"}
    assert yaml.safe_load(WORKFLOW)[True] == {"push": {"branches": ["main"]}, "pull_request": None}  # YAML 1.1: on


def test_the_workflow_needs_nothing_but_the_repository():
    assert "secrets." not in WORKFLOW
    for job in JOBS:
        for step in JOBS[job]["steps"]:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/none@v0"))


def test_contributing_says_which_tests_hold_each_room():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text.split("| tests that hold it |")[1].split("\n\n")[0]
    named = set(re.findall(r"`(test_\w+)`", table))
    assert named and all((ROOT / "tests" / f"{name}.py").exists() for name in named)
    places = " ".join(re.findall(r"^\| ([^|]+) \|", table, re.M))
    assert all(f"`{room}/`" in places or f"`{room}.py`" in places for room in SCIENCE)
    assert all(f"`planner/{room}/`" in places for room in HOUSE["planner"]) and "`book/`" in places
