"""Fixtures: a browser, the built book over file:// and http."""

import functools
import http.server
import os
import re
import shutil
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "_build" / "html"
FLAGS = ("--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync").split()


for _number in (signal.SIGINT, signal.SIGHUP):  # a run in the background has them ignored, and its programs too
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

MARKS = {"browser": "browser", "firefox": "browser", "book": "book"}  # who asks for this fixture gets this mark
ASKED_FOR = {"vllm", "vllm_lines"}  # marks of what is left out unless it is asked for


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark what needs a browser or the built book; leave out what needs vLLM, unless it is asked for."""
    for item in items:
        for fixture in MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS[fixture])
    for mark in ASKED_FOR - set(re.findall(r"\w+", config.option.markexpr)):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(mark)])
        items[:] = [item for item in items if not item.get_closest_marker(mark)]


def pytest_terminal_summary(terminalreporter):
    """Say what was not tested, and why."""
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ")
                      for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in reasons.items():
        terminalreporter.write_line(f"NOT TESTED: {count} of the tests, skipped because {reason}",
                                    bold=True, yellow=True)


def missing(what):
    """Skip because of what is missing; in CI that is a failure."""
    if os.environ.get("TPMODEL_CI"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium of the system."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        missing("there is no Chromium on this machine: install it (Debian: apt install chromium) to test the pages")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def blank(browser):
    """An empty page."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture(scope="session")
def book():
    """The folder of the built book."""
    if not (BUILT / "index.html").exists():
        missing("the book is not built: run `make book` first to test its pages")
    return BUILT


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def served(book):
    """The book's address on localhost, from a sub-path as a project page would have it."""
    handler = functools.partial(Quiet, directory=str(book.parent))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/html"
    server.shutdown()
