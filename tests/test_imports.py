"""The house: a room imports only from below; the science wing stands alone; the core loads no heavy library."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tpmodel

PACKAGE = Path(tpmodel.__file__).parent
HOUSE = {wing: rooms.split() for wing, rooms in re.findall(r"^ {4}(\w+) +: ((?:\w+ )+) {2,}", tpmodel.__doc__, re.M)}
FLOORS = [room for wing in reversed(HOUSE) for room in reversed(HOUSE[wing])] + ["__main__"]
SCIENCE = HOUSE["science"]


def modules():
    return sorted(p for p in PACKAGE.rglob("*.py") if p.relative_to(PACKAGE).parts[0] not in ("__init__.py", *HOUSE)
                  or len(p.relative_to(PACKAGE).parts) > 2)


def place(path):
    """(wing, room) of a path inside the package; the rooms of the science wing stand at its top."""
    first, *more = path.relative_to(PACKAGE).with_suffix("").parts
    return (first, more[0] if more else None) if first in HOUSE else ("science", first)


def files(path):
    """The module, or the folder of a package, of every import from inside the package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.level or node.module.split(".")[0] == "tpmodel"):
            base = path.parents[node.level - 1] if node.level else PACKAGE.parent
            target = base.joinpath(*(node.module or "").split("."))
            for alias in node.names:
                here = target / alias.name
                here = here if here.with_suffix(".py").exists() or here.is_dir() else target
                if here != PACKAGE:
                    yield here


def imported(path):
    """(wing, room) of every import from inside the package."""
    return map(place, files(path))


def test_the_table_of_the_house_lists_what_is_there():
    wings = {wing: {path.stem for path in (PACKAGE / wing).iterdir() if not path.name.startswith("__")}
             for wing in HOUSE if wing != "science"}
    top = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith("__")} - set(wings)
    assert wings | {"science": top} == {wing: set(rooms) for wing, rooms in HOUSE.items()}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_only_down(path):
    wing, room = place(path)
    above = [f"{there} of {its}" for its, there in imported(path)
             if there is None or FLOORS.index(there) > FLOORS.index(room)]
    assert not above, f"{room} of {wing} imports {above}"


def test_no_module_imports_itself_by_way_of_others():
    """Imports inside functions count too."""
    graph = {path.with_suffix("").relative_to(PACKAGE): {here.relative_to(PACKAGE) for here in files(path)}
             for path in PACKAGE.rglob("*.py")}
    while leaves := [one for one, others in graph.items() if not others & graph.keys()]:
        for one in leaves:
            del graph[one]
    assert not graph


def test_what_draws_a_figure_knows_formulas_only():
    known = {room for path in (PACKAGE / "book/live").glob("*.py") for _, room in imported(path)}
    assert known <= {"live", "formula", "inputs"}


@pytest.mark.thorough
def test_the_science_wing_stands_alone(tmp_path):
    """Copied without the other wings, every module of it imports and its doctests pass."""
    for room in SCIENCE:
        source = PACKAGE / room
        if source.is_dir():
            shutil.copytree(source, tmp_path / "tpmodel" / room, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source.with_suffix(".py"), tmp_path / "tpmodel")
    shutil.copy(PACKAGE / "__init__.py", tmp_path / "tpmodel")
    run = subprocess.run([sys.executable, "-m", "pytest", "--doctest-modules", "-p", "no:cacheprovider", "tpmodel"],
                         cwd=tmp_path, capture_output=True, text=True, env={"PATH": "", "PYTHONPATH": str(tmp_path)})
    assert run.returncode == 0 and " passed" in run.stdout, run.stdout + run.stderr


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_grows_too_long(path):
    assert len(path.read_text().splitlines()) <= 250


def functions():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield path.relative_to(PACKAGE), node


def test_no_function_is_longer_than_a_screen():
    found = [f"{path}:{node.lineno} {node.name}: {lines}" for path, node in functions()
             if (lines := node.end_lineno - node.lineno + 1) > 60]
    assert not found, found


def loaded_after(statement):
    code = f"import sys; {statement}; print(*sorted(m for m in sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


HEAVY = {"numpy", "sympy", "matplotlib", "ipywidgets", "IPython"}


@pytest.mark.parametrize("statement", [
    "import tpmodel", "import tpmodel.book.figures", "import tpmodel.planner.evidence.claims",
    "import tpmodel.tools.cli", "import tpmodel.formulas.decode"])
def test_the_core_loads_no_heavy_library(statement):
    assert loaded_after(statement) & HEAVY == set()


@pytest.mark.parametrize("wing, most", [("science", 3700), ("", 18500)])
def test_the_package_stays_small(wing, most):
    """Lines of Python of the science wing, which stands at the top, and of all."""
    paths = [path for path in PACKAGE.rglob("*.py") if not wing or place(path)[0] == wing]
    assert sum(len(path.read_text().splitlines()) for path in paths) <= most


def test_the_page_needs_little_javascript():
    assert sum(len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.js")) <= 650
