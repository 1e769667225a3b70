"""What a user gives: files, numbers, layers, paths: every command answers in one line that names the field, exit 2."""

import os
import re
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpmodel.tools import cli
from tpmodel import inputs

GPUS = ("--gpu", "rtx-5080", "--gpu", "rtx-5060-ti-16gb")
PLAN = ("plan", "--model", "qwen3-8b", *GPUS)
SPLIT = ("split", "--model", "nemotron-3-embed-8b", *GPUS)
EMBED = ("embed", "--mode", "tp", "--model", "some/model", "--dry-run")


@pytest.fixture
def said(capsys, tmp_path, monkeypatch):
    """Run a command in a folder of its own, for at most 20 s; returns (exit code, stdout, stderr)."""
    def late(*_):
        raise AssertionError("it hangs")

    def run(*arguments):
        signal.signal(signal.SIGALRM, late)
        signal.alarm(20)
        try:
            code = cli.main(list(map(str, arguments)))
        except SystemExit as stop:  # argparse
            code = stop.code
        finally:
            signal.alarm(0)
        done = capsys.readouterr()
        return code, done.out, done.err

    monkeypatch.chdir(tmp_path)
    return run


def refused(found, *words):
    """Whether it is one line of bearable length with the words in it, and exit 2."""
    code, out, err = found
    assert (code, out, err.count("\n")) == (2, "", 1) and len(err) < 700, found
    assert all(word in err for word in words), err


FIELDS = [
    *((PLAN, flag) for flag in ("--context", "--util", "--mtp", "--acceptance",
                                "--batch", "--reserve-gib", "--layers", "--engine")),
    *((SPLIT, flag) for flag in ("--tokens", "--batch-tokens", "--util", "--reserve-gib", "--layers")),
    *((EMBED, flag) for flag in ("--max-len", "--gpu-util")),
    *((("embed", "--mode", mode, *EMBED[3:]), flag)
      for mode, flag in (("pp", "--pp-layers"), ("offload", "--offload-gb"), ("offload", "--gpu"))),
    (("embed-diff", "a", "b"), "--top-k")]
HOSTILE = ("1_000", "\u0661\u0662", "\uff11", "\u00b2", "nan", "inf", "-inf", "1e400", "9" * 400, "9" * 5000, "-1",
           "1e-400x", "0x10", "", " ", "1,nan", "1;2", "None", "1\n2", "1e", "+-1", "--", "true", "\U0001d7d9")


@pytest.mark.parametrize("value", HOSTILE, ids=ascii)
@pytest.mark.parametrize("command, flag", FIELDS, ids=lambda value: value if isinstance(value, str) else value[0])
def test_no_hostile_number_is_taken(said, command, flag, value):
    more = ("--parallel", "pp") if command is PLAN and flag == "--layers" else ()
    name = flag.strip("-")
    refused(said(*command, *more, f"{flag}={value}"), "version" if name == "engine" and value != "--" else name)


@given(st.text(max_size=12) | st.from_regex(r"[+-]?[0-9_.e-]{1,9}") | st.floats().map(str) | st.integers().map(str))
def test_numbers_are_ascii_and_finite(text):
    whole, real = inputs.as_whole(text), inputs.as_real(text)
    if whole is not None:
        assert re.fullmatch(r"[+-]?[0-9]+", text.strip(), re.ASCII) and whole == int(text) and float(whole) == real
    if real is not None:
        assert text.isascii() or text.strip().isascii()
        assert "_" not in text and real == float(text) and abs(real) < inputs.MOST
    else:
        assert whole is None


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_every_number_that_python_writes_is_read(number):
    assert inputs.as_real(repr(number)) == number


READS = {
    "check": lambda path: ("check", "kv", path), "fit": lambda path: ("fit", path),
    "plan": lambda path: ("plan", "--model", path, "--gpu", "h200"),
    "catalog": lambda path: (*PLAN, "--catalog", path), "embed": lambda path: (*EMBED, "--input", path),
    "embed-diff": lambda path: ("embed-diff", path, path)}


@pytest.mark.parametrize("command", READS)
def test_pipes_devices_folders_and_what_is_not_there(said, tmp_path, command):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    refused(said(*READS[command](tmp_path / "pipe")), "pipe' is not accepted: it is a pipe or a device: it must be ")
    refused(said(*READS[command]("/dev/zero")), "'/dev/zero' is not accepted: it is a pipe or a device")
    refused(said(*READS[command](tmp_path / "folder")), "directory: it must be ")
    missing = "neither a path to a config.json" if command == "plan" else "not accepted: No such file or directory"
    refused(said(*READS[command](tmp_path / "none")), f"none' is {missing}")
    refused(said(*READS[command]("x" * 9000)), "File name too long")


def test_a_pipe_beside_a_config_is_no_quantisation(said, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    os.mkfifo(tmp_path / "hf_quant_config.json")
    refused(said("plan", "--model", tmp_path, "--gpu", "h200"), "hf_quant_config.json' is not accepted: it is a pipe")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "config.json")
    refused(said("embed", "--mode", "tp", "--model", tmp_path / "pipe", "--dry-run"), "model = ", "it is a pipe")


@pytest.mark.parametrize("data, words", [
    (b"fine\ncaf\xe9\n", "line 2 is not UTF-8 (byte 0xe9)"), (b"\xff", "line 1 is not UTF-8")])
def test_what_is_not_utf_8_is_told_with_its_line(tmp_path, data, words):
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(words)):
        inputs.read_text(tmp_path / "f", "file", 100, "a text")
    with pytest.raises(ValueError, match=f"larger than {len(data) - 1} bytes"):
        inputs.read_bytes(tmp_path / "f", "file", len(data) - 1, "a text")
    (tmp_path / "f").write_text("\ufeffa", encoding="utf-8")
    assert inputs.read_text(tmp_path / "f", "file", 100, "a text") == "a"


def test_a_file_without_a_size_is_read_and_bounded():
    assert inputs.read_bytes("/proc/self/status", "file", 10**6, "a text")
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        inputs.read_bytes("/proc/self/status", "file", 10, "a text")


def test_a_file_is_whole_or_not_there_and_not_replaced(tmp_path):
    path, seen = tmp_path / "m", []

    def stop(file):
        file.write(b"half")
        seen.extend(one.name for one in tmp_path.iterdir())
        raise OSError(28, "No space left on device")

    inputs.write(path, lambda file: file.write(b"a"), "out", False)
    with pytest.raises(ValueError, match="out = .*it exists.*--force"):
        inputs.write(path, lambda file: file.write(b"b"), "out", False)
    with pytest.raises(ValueError, match="m cannot be written: No space left on device"):
        inputs.write(path, stop, "out", True)
    assert path.read_bytes() == b"a" and len(seen) == 2 and list(tmp_path.iterdir()) == [path]
    inputs.write(path, lambda file: file.write(b"c"), "out", True)
    assert path.read_bytes() == b"c" and list(tmp_path.iterdir()) == [path]
    for bad, words in ((tmp_path / "no" / "m", "must exist"), (tmp_path, "it is no file"),
                       ("/dev/null", "it is no file"), ("x" * 300, "File name too long")):
        with pytest.raises(ValueError, match=words):
            inputs.target(bad, "out", True)
    with pytest.raises(ValueError, match="it is the input"):
        inputs.target(path, "out", True, path)


def test_a_value_of_any_length_is_shown_in_one_line():
    for value in ("x" * 10**6, "a\nb", [[1] * 10**5] * 3, 10**400, 10**5000, {"a": "b" * 10**5}, None):
        text = str(inputs.refused("a\nb" * 100, value, "it must be short"))
        assert "\n" not in text and len(text) < 350 and text.endswith("it must be short")


def test_the_version(said):
    code, out, err = said("--version")
    assert (code, err) == (0, "") and re.fullmatch(r"tpmodel \d+\.\d+\.\d+\n", out)
