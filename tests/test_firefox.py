"""The live figures in Firefox, driven over WebDriver BiDi: the same geometry as matplotlib's."""

import json
import re
import shutil
import subprocess
import time

import pytest
from test_page import CHAPTER, FIGURES, READ, matplotlib_geometry, numbers



class Firefox:
    """A headless Firefox and one page of it."""

    def __init__(self, path, folder):
        import websocket

        self.log = folder / "firefox.log"
        with self.log.open("w") as out:
            command = [path, "--headless", "--no-remote", "--profile", str(folder), "--remote-debugging-port=0"]
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        for _ in range(120):
            found = re.search(r"WebDriver BiDi listening on (ws://\S+)", self.log.read_text())
            if found:
                break
            time.sleep(0.5)
        assert found, self.log.read_text()[-1000:]
        self.socket = websocket.create_connection(found.group(1) + "/session", timeout=60, suppress_origin=True)
        self.count = 0
        self.ask("session.new", capabilities={})
        self.context = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method, **params):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.count:
                assert answer["type"] == "success", answer
                return answer["result"]

    def open(self, url):
        self.ask("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def evaluate(self, expression):
        """The value of a JavaScript expression, as JSON."""
        result = self.ask("script.evaluate", expression=f"JSON.stringify({expression})",
                          target={"context": self.context}, awaitPromise=False)
        assert result["type"] == "success", result
        return json.loads(result["result"]["value"])

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None:
        pytest.skip("there is no Firefox on this machine (Debian: apt install firefox-esr)")
    found = Firefox(path, tmp_path_factory.mktemp("firefox"))
    yield found
    found.close()


@pytest.mark.parametrize("name", FIGURES)
def test_every_slider_moves_the_geometry_to_matplotlibs(name, firefox, book):
    figure = FIGURES[name]
    firefox.open(f"{book.as_uri()}/{CHAPTER[name]}")
    for control in figure.controls:
        text = (control.texts if control.kind == "slider" else tuple(control.options))[-1]
        identity = json.dumps(f"{name}-set-{control.name}")
        value = json.dumps(text if control.kind == "choice" else len(control.texts) - 1)
        firefox.evaluate(f"""(() => {{ const input = document.getElementById({identity}); input.value = {value};
          input.dispatchEvent(new Event("input", {{ bubbles: true }})); return 0; }})()""")
        marks = [[mark.name, mark.kind] for mark in figure.marks]
        theirs = firefox.evaluate(f"({READ})({json.dumps([name, marks])})")
        for mark, ours in matplotlib_geometry(figure, {control.name: text}).items():
            assert numbers(theirs[mark]) == pytest.approx(ours, abs=0.02), f"{mark} at {control.name} = {text}"
        firefox.evaluate(f"""(() => {{ document.querySelector("#{name} .tp-reset").click(); return 0; }})()""")
