"""What the book costs to build, from scratch and unchanged: `python benchmarks/book.py` (minutes)."""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build_s(folder):
    start = time.perf_counter()
    subprocess.run([str(Path(sys.executable).with_name("jupyter-book")), "build", ".", "-W", "-n"],
                   cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - start


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("book", "notebooks", "tpmodel"):
            shutil.copytree(ROOT / part, folder / part)
        for part in ("_config.yml", "_toc.yml"):
            shutil.copy(ROOT / part, folder / part)
        scratch, unchanged = build_s(folder), build_s(folder)
        pages = [path.stat().st_size for path in (folder / "_build" / "html").rglob("*.html")]
        print(f"from scratch {scratch:.0f} s, unchanged {unchanged:.1f} s: {scratch / unchanged:.0f} x; "
              f"{len(pages)} pages, the largest {max(pages) / 1e3:.0f} KB")


if __name__ == "__main__":
    main()
