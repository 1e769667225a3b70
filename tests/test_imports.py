"""The floors of the house: a module imports only from below; the core loads no heavy library."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "tpmodel"
FLOORS = ["inputs", "units", "vocabulary", "tree", "ops", "printers", "formula", "view", "formulas", "ranks", "catalog", "vllm",
          "plan", "split", "evidence", "live", "figures", "measure", "cli", "__main__"]

def modules():
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def floor(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """(floor, name) of every import from inside the package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = path.parent
            for _ in range(max(node.level - 1, 0)):
                base = base.parent
            if node.level:
                target = base.joinpath(*(node.module or "").split(".")) if node.module else base
                for alias in node.names:
                    here = target / alias.name if (target / f"{alias.name}.py").exists() or (target / alias.name).is_dir() else target
                    if here != PACKAGE:
                        yield here.relative_to(PACKAGE).parts[0]
            elif node.module and node.module.split(".")[0] == "tpmodel":
                yield node.module.split(".")[1]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_only_down(path):
    mine = floor(path)
    assert mine in FLOORS, f"{mine} has no floor: add it to FLOORS"
    above = [there for there in imported(path) if FLOORS.index(there) > FLOORS.index(mine)]
    assert not above, f"{path.relative_to(PACKAGE)} imports {above} from above"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_grows_too_long(path):
    assert len(path.read_text().splitlines()) <= 250


def loaded_after(statement):
    code = f"import sys; {statement}; print(*sorted(m for m in sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


HEAVY = {"numpy", "sympy", "matplotlib", "ipywidgets", "IPython"}


@pytest.mark.parametrize("statement", [
    "import tpmodel", "import tpmodel.figures", "import tpmodel.evidence.claims", "import tpmodel.cli",
    "import tpmodel.formulas.decode"])
def test_the_core_loads_no_heavy_library(statement):
    assert loaded_after(statement) & HEAVY == set()
