"""What is printed to be pasted into a shell or stands in HTML: nothing in it is taken for something else."""

import json
import shlex
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpmodel.tools import cli
from tpmodel.planner.shapes.models import shapes
from tpmodel.book.pages.tables import Words
from tpmodel.planner.plan.line import share


@pytest.mark.parametrize("model, dtype, fine", [
    ("qwen3-8b", "fp8_ds_mla", False), ("deepseek-v3", "nvfp4", False),
    ("qwen3-8b", "nvfp4", True), ("deepseek-v3", "fp8", True)])
def test_a_cache_format_is_for_one_kind_of_cache(capsys, model, dtype, fine):
    code = cli.main(["plan", "--model", model, *["--gpu", "h200"] * 16,
                     "--parallel", "pp", "--link", "nvlink-h200", "--kv-dtype", dtype])
    done = capsys.readouterr()
    if fine:
        assert code == 0 and f"--kv-cache-dtype {dtype}" in done.out
    else:
        assert code == 2
        assert f"kv_dtype = '{dtype}' is not accepted: it is for models with " in done.err
        assert done.err.count("\n") == 1


def test_a_folder_that_looks_like_a_flag(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "--x").mkdir()
    (tmp_path / "--x" / "config.json").write_text(json.dumps(shapes()["qwen3-8b"]))
    for model in ("--x", "./--x", "--x/config.json"):
        assert cli.main(["plan", f"--model={model}", "--gpu", "rtx-4090"]) == 0
        assert shlex.split(capsys.readouterr().out.splitlines()[-1])[:3] == ["vllm", "serve", "./--x"]


@given(st.floats(0.01, 1) | st.sampled_from([0.92, 0.9, 0.7, 1 / 3, 0.9999999, 0.9 + 1e-9]))
def test_a_share_of_the_memory_is_never_rounded_up(frac):
    text = share(frac)
    assert frac - 1e-6 < float(text) <= frac and len(text) <= 9 and (len(repr(frac)) > 8 or float(text) == frac)


def test_the_environment_of_a_dry_run_can_be_pasted(monkeypatch, capsys):
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "a b'; echo $HOME")
    assert cli.main(["embed", "--mode", "tp", "--model", "some/model", "--dry-run"]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert shlex.split(line) == ["export", "CUDA_DEVICE_ORDER=a b'; echo $HOME"]


class Reader(HTMLParser):
    """Every tag with its attributes, and the text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("address", [
    "https://a.example/x?b=1&c=2", 'https://a.example/"onclick="x', "https://a.example/<b>", "https://a.example/'y'",
    "http://a.example/http://b", "https://a.example/&quot"])
def test_what_enters_an_attribute_is_escaped_for_attributes(address):
    caption = 'a "caption" & <more>'
    found = Reader(Words(caption, ("name", "where"), (("<i>", f"see {address}, and & on"),))._repr_html_())
    assert [attributes for tag, attributes in found.tags if tag == "a"] == [{"href": address}]
    assert found.tags[0][1]["aria-label"] == caption and not {"i", "b"} & {tag for tag, _ in found.tags}
    assert f"see {address.split('://', 1)[1]}, and & on" in found.text
