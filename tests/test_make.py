"""The Makefile: a set-up interrupted or spoiled is made anew; goals come in order; clean is clean; skips are loud."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough
ROOT = Path(__file__).resolve().parents[1]
PYTHON = """#!/bin/sh
# A Python that claims to be {version}, makes environments like itself, and notes in `log` what it installs.
cd {folder}
case "$1 $2" in
  "-m venv") echo venv >> log
    mkdir -p $3/bin && sed 's/^# A Python/# The Python/' "$0" > $3/bin/python && chmod +x $3/bin/python
    {venv}; echo "#!{folder}/$3/bin/python" > $3/bin/pip ;;
  "-m pip") echo "pip $*" >> log; {pip} ;;
  *) exec {real} -c "import sys; sys.version_info = {version}, 0, 'final', 0
$2" ;;
esac
"""


@pytest.fixture
def project(tmp_path):
    """The Makefile in a folder of its own, with a stand-in for Python."""
    for name in ("Makefile", ".gitignore", "requirements.txt", "requirements-vllm.txt", "requirements-vllm-lines.txt",
                 "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    python(tmp_path)
    return tmp_path


def python(folder, version="3, 11", venv=":", pip=":"):
    path = folder / "python"
    path.write_text(PYTHON.format(version=version, folder=folder, real=sys.executable, venv=venv, pip=pip))
    path.chmod(0o755)
    return path


def make(folder, *goals):
    """What make did, and what was made or installed."""
    (folder / "log").unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", f"PYTHON={folder / 'python'}", *goals], cwd=folder,
                          capture_output=True, text=True, env=environment)
    log = folder / "log"
    return done, [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


both = pytest.mark.parametrize("name, steps", [(".venv", ["venv", "pip"]), (".venv-vllm", ["venv", "pip", "pip"]),
                                               (".venv-vllm-lines", ["venv", "pip", "pip"])])


@both
def test_a_whole_environment_is_kept_and_follows_its_requirements(project, name, steps):
    done, did = make(project, f"{name}/installed")
    assert done.returncode == 0 and did == steps, done.stderr
    assert make(project, f"{name}/installed")[1] == []
    os.utime(project / f"{name}/installed", (0, 0))
    assert make(project, f"{name}/installed")[1] == steps[1:]



@pytest.mark.parametrize("spoil", [
    "sed -i 's/3, 11/3, 10/' .venv/bin/python", "ln -sf /nowhere/python3 .venv/bin/python", "rm .venv/bin/pip",
    "sed -i 's/import sys/import nothing/' .venv/bin/python", "echo '#!/elsewhere/.venv/bin/python' > .venv/bin/pip",
], ids=["old Python", "no interpreter", "no pip", "another Python's pip", "moved"])
def test_a_spoilt_environment_is_made_anew(project, spoil):
    make(project, ".venv/installed")
    subprocess.run(spoil, shell=True, cwd=project, check=True)
    done, did = make(project, ".venv/installed")
    assert done.returncode == 0 and did == ["venv", "pip"], done.stderr
    assert make(project, ".venv/installed")[1] == []


@both
@pytest.mark.parametrize("killed", ["venv", "pip"])
def test_an_interrupted_set_up_heals(project, name, steps, killed):
    python(project, **{killed: "kill -9 $$"})
    done, _ = make(project, f"{name}/installed")
    assert done.returncode != 0 and (project / name / "bin" / "python").exists()
    python(project)
    done, did = make(project, f"{name}/installed")
    assert done.returncode == 0 and did == steps, done.stderr


@pytest.mark.parametrize("name", [".venv", ".venv-vllm", ".venv-vllm-lines"])
@pytest.mark.parametrize("version, says", [("3, 10", "Python 3.10.0"), ("2, 7", "Python 2.7.0"), (None, "no Python")])
def test_an_unsupported_python_is_refused_before_anything_is_made(project, name, version, says):
    python(project, version).write_text("") if version is None else python(project, version)
    done, did = make(project, f"{name}/installed")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1 and did == []
    assert f"PYTHON = {project / 'python'} is {says}: it must be Python 3.11 or newer" in done.stderr
    assert not (project / name).exists()


@pytest.mark.parametrize("goals", [("test",), ("book", "test"), ("test", "book")])
def test_the_book_is_built_before_its_pages_are_tested(project, goals):
    make(project, ".venv/installed")
    for name, script in (("jupyter-book", "sleep 0.3; echo built >> log"), ("pytest", "echo tested $* >> log")):
        (project / ".venv" / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (project / ".venv" / "bin" / name).chmod(0o755)
    done, _ = make(project, "-j2", *goals)
    assert done.returncode == 0, done.stderr
    assert (project / "log").read_text().splitlines() == [
        "built", "tested -n 2 -m not slow", "tested --nbval notebooks/ -n 2 --dist loadfile"]


def test_clean_leaves_nothing_of_ours(project):
    ours = [line.replace("*", "x") for line in (project / ".gitignore").read_text().split()]
    ours += [f"book/deep/{name}" for name in ("__pycache__", ".ipynb_checkpoints", ".hypothesis")]
    for name in ours:
        (project / name / "inner").mkdir(parents=True)
    assert make(project, "clean")[0].returncode == 0
    assert [name for name in ours if (project / name).exists()] == [] and (project / "Makefile").exists()


def run_pytest(*arguments, **environment):
    inherited = {k: v for k, v in os.environ.items() if k != "TPMODEL_CI"}
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:nbval", *arguments],
                          cwd=ROOT, capture_output=True, text=True,
                          env={**inherited, "PATH": "/nowhere", **environment})


def test_a_missing_browser_is_said_loudly_and_fails_in_ci():
    two = "tests/test_access.py::test_axe_finds_nothing_serious"
    done = run_pytest(two)
    assert done.returncode == 0 and "NOT TESTED: 2 of the tests, skipped because there is no Chromium" in done.stdout
    assert run_pytest(two, TPMODEL_CI="1").returncode == 1


def test_without_browser_tests_none_is_started():
    done = run_pytest("tests/test_make.py", "tests/test_access.py", "tests/test_embed_vllm.py",
                      "--collect-only", "-m", "not browser")
    assert "test_without_browser" in done.stdout and "axe" not in done.stdout and "vllm.py" not in done.stdout
