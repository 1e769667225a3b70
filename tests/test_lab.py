"""A real JupyterLab: the same figures show widgets that drive Python, and a notebook's link opens its chapter."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tpmodel.book import figures

TOKEN = "lab-test"
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab on localhost, in a folder with one notebook of one figure, and with a chapter and its notebook."""
    folder = tmp_path_factory.mktemp("lab")
    cell = {"cell_type": "code", "id": "figure", "metadata": {}, "execution_count": None, "outputs": [],
            "source": "from tpmodel.book import figures\nfigures.decode_time()"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
                "nbformat": 4, "nbformat_minor": 5}
    (folder / "figure.ipynb").write_text(json.dumps(notebook))
    for part in ("notebooks/decode.ipynb", "book/decode.md"):
        (folder / part).parent.mkdir()
        shutil.copy(ROOT / part, folder / part)
    log = folder / "lab.log"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--port=0",
               f"--IdentityProvider.token={TOKEN}", "--ServerApp.root_dir=.", "--LabApp.news_url=", "--allow-root"]
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(folder / "config"), "JUPYTER_DATA_DIR": str(folder / "data"),
                   "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings")}
    environment.pop("TPMODEL_LIVE", None)
    with log.open("w") as out:
        server = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, env=environment)
    try:
        for _ in range(120):
            found = re.search(r"http://127\.0\.0\.1:(\d+)/lab", log.read_text())
            if found:
                break
            assert server.poll() is None, log.read_text()[-2000:]
            time.sleep(0.5)
        assert found, log.read_text()[-2000:]
        yield lambda path: f"http://127.0.0.1:{found.group(1)}/lab/tree/{path}?token={TOKEN}"
    finally:
        server.terminate()
        server.wait(20)


def test_widgets_drive_python(lab, browser):
    page = browser.new_page(viewport={"width": 1200, "height": 1000})
    page.goto(lab("figure.ipynb"))
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
    page.wait_for_timeout(3000)
    if page.locator(".jp-Dialog button.jp-mod-accept").count():
        page.locator(".jp-Dialog button.jp-mod-accept").first.click()
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".widget-slider, .jupyter-widget-slider", timeout=90_000)
    assert page.locator(".jp-OutputArea .jupyter-widget-slider, .jp-OutputArea .widget-slider").count() >= 5
    output = page.locator(".jp-OutputArea")
    start = figures.decode_time().shown_texts()["readout-speed"]
    assert start in output.inner_text()
    handle = page.locator(".noUi-handle").first
    handle.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("start => !document.querySelector('.jp-OutputArea').innerText.includes(start)",
                           arg=start, timeout=30_000)
    assert "tokens/s" in output.inner_text()
    page.close()


def test_a_notebooks_link_opens_its_chapter(lab, browser):
    assert "jupyter lab --ServerApp.root_dir=. " in (ROOT / "Makefile").read_text()  # as here: a link leads no higher
    page = browser.new_page()
    page.goto(lab("notebooks/decode.ipynb"))
    page.locator('.jp-MarkdownOutput a[href*="book/decode.md"]').first.click(timeout=90_000)
    page.wait_for_selector('.lm-TabBar-tabLabel:text-is("decode.md")', timeout=30_000)
    page.close()
