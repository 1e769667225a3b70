"""Two builds of the book from scratch are byte-equal, though the second's kernels send what they print in other pieces.

Slow: run by CI, or with TPMODEL_REBUILD=1 after `rm -r _build` and `make book`.
"""

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RESTLESS = "import sys; type(sys.stdout).flush_interval = 0.0005"  # seconds; a kernel's own is 0.2
PARTS = ("book", "notebooks", "tpmodel", "_config.yml", "_toc.yml")


@pytest.mark.slow
@pytest.mark.skipif(not (os.environ.get("TPMODEL_CI") or os.environ.get("TPMODEL_REBUILD")),
                    reason="a second build takes long: set TPMODEL_REBUILD=1, after rm -r _build and make book")
def test_a_second_build_gives_the_same_bytes(book, tmp_path):
    for part in PARTS:
        source = ROOT / part
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / part)
    startup = tmp_path / ".ipython" / "profile_default" / "startup" / "restless.py"
    startup.parent.mkdir(parents=True)
    startup.write_text(RESTLESS)
    build = [str(Path(sys.executable).with_name("jupyter-book")), "build", ".", "-W", "-n", "--keep-going"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(tmp_path), "IPYTHONDIR": str(tmp_path / ".ipython")})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    again = tmp_path / "_build" / "html"
    pages = sorted(path.relative_to(book) for path in book.rglob("*.html"))
    assert pages == sorted(path.relative_to(again) for path in again.rglob("*.html"))
    different = [str(page) for page in pages if not filecmp.cmp(book / page, again / page, shallow=False)]
    assert different == []
