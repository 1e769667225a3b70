"""`tpmodel embed` without vLLM: a stand-in notes its arguments, the environment at import, and who started it."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy
import pytest

from tpmodel.tools import cli
from tpmodel.tools.embed import documents

MODEL = "nvidia/Nemotron-3-Embed-8B-BF16"
ROOT = str(Path(__file__).resolve().parents[1])
SCRIPT = Path(sys.executable).parent / "tpmodel"
FAKE = '''
import json, multiprocessing, os, resource, signal, sys, time
from types import SimpleNamespace

def note(**what):
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(json.dumps(what) + "\\n")

NAMES = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "VLLM_PP_LAYER_PARTITION", "VLLM_LOGGING_STREAM")
note(event="import", env={name: os.environ[name] for name in NAMES if name in os.environ})
print("INFO: vLLM talks on stdout")
STOP = os.environ.get("FAKE_STOP", "")

def worker():
    print("INFO: so do workers", flush=True)
    note(event="worker")

class LLM:
    def __init__(self, **arguments):
        note(event="LLM", arguments=arguments)
        if STOP == "load":
            raise RuntimeError("Engine core initialization failed.\\nSee root cause above.")
        process = multiprocessing.get_context("spawn").Process(target=worker)
        process.start()
        process.join()
        if process.exitcode:
            raise RuntimeError("worker died")

    def get_tokenizer(self):
        return SimpleNamespace(encode=lambda text: range(44_000) if "heavy" in text else [0, *text.split()])

    def embed(self, texts):
        note(event="embed", texts=texts)
        if STOP == "embed" and len(texts) > 4:
            raise AssertionError
        if STOP == "appear":
            open("v.npy", "w").write("another run's")
        how, _, batch = STOP.partition("@")
        if batch and "doc-" + batch in texts[-1] and len(texts) > 4:
            if how == "full":
                resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            elif how == "crash":
                raise RuntimeError("CUDA error")
            else:
                os.kill(os.getpid(), getattr(signal, "SIG" + how))
                time.sleep(20)
        bad = float("nan") if STOP == "nan" else 1.0
        return [SimpleNamespace(outputs=SimpleNamespace(embedding=[float(len(text)), bad, -0.5])) for text in texts]
'''


@pytest.fixture
def call(tmp_path):
    """Run `tpmodel embed` beside the stand-in; returns the finished process, with what was noted."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "vllm.py").write_text(FAKE)
    (tmp_path / "docs.txt").write_text("one\n\n  two words \r\npassage: three\n \nfour\nfive\nsix", encoding="utf-8")

    def run(*arguments, program=(sys.executable, "-m", "tpmodel"), fake=True, **variables):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA", "VLLM"))}
        lib = tmp_path / ("lib" if fake else "none")
        log = tmp_path / "log"
        log.write_text("")
        done = subprocess.run([*program, "embed", *arguments], cwd=tmp_path, capture_output=True, text=True,
                              env={**clean, "PYTHONPATH": os.pathsep.join((str(lib), ROOT)), "FAKE_LOG": str(log),
                                   **variables})
        done.notes = [json.loads(line) for line in log.read_text().splitlines()]
        done.named = lambda event: [what for what in done.notes if what["event"] == event]
        return done

    run.folder = tmp_path
    return run


GIVEN = ("--model", MODEL, "--input", "docs.txt", "--output", "v.npy")
COMMON = {"model": MODEL, "runner": "pooling", "dtype": "bfloat16", "max_model_len": 8192,
          "gpu_memory_utilization": 0.9}
ALWAYS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "VLLM_LOGGING_STREAM": "ext://sys.stderr"}
MODES = [
    (("--mode", "tp"), {"tensor_parallel_size": 2}, {}),
    (("--mode", "pp"), {"tensor_parallel_size": 1, "pipeline_parallel_size": 2}, {}),
    (("--mode", "pp", "--pp-layers", " 20, 14"), {"tensor_parallel_size": 1, "pipeline_parallel_size": 2},
     {"VLLM_PP_LAYER_PARTITION": "20,14"}),
    (("--mode", "offload"), {"cpu_offload_gb": 4.0, "enforce_eager": True}, {"CUDA_VISIBLE_DEVICES": "0"}),
    (("--mode", "offload", "--offload-gb", "2.5", "--gpu", "1"), {"cpu_offload_gb": 2.5, "enforce_eager": True},
     {"CUDA_VISIBLE_DEVICES": "1"}),
    (("--mode", "tp", "--eager", "--max-len", "512", "--gpu-util", "0.8", "--dtype", "float32"),
     {"tensor_parallel_size": 2, "enforce_eager": True, "max_model_len": 512, "gpu_memory_utilization": 0.8,
      "dtype": "float32"}, {}),
]


@pytest.mark.parametrize("flags, arguments, env", MODES,
                         ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_arguments_and_the_environment_before_the_import(call, flags, arguments, env):
    done = call(*flags, *GIVEN)
    assert done.returncode == 0, done.stderr
    assert done.notes[0] == {"event": "import", "env": {**ALWAYS, **env}}
    assert done.named("LLM") == [{"event": "LLM", "arguments": {**COMMON, **arguments}}]
    planned = call(*flags, *GIVEN, "--dry-run", "--json", "--force", fake=False)
    assert json.loads(planned.stdout) == {"llm": {**COMMON, **arguments}, "env": {**ALWAYS, **env}}
    assert planned.notes == []


def test_the_environment_of_the_user(call):
    done = call("--mode", "offload", *GIVEN, CUDA_DEVICE_ORDER="FASTEST_FIRST", CUDA_VISIBLE_DEVICES="1,0",
                VLLM_PP_LAYER_PARTITION="20,14")
    assert done.notes[0]["env"] == {**ALWAYS, "CUDA_DEVICE_ORDER": "FASTEST_FIRST", "CUDA_VISIBLE_DEVICES": "0"}
    done = call("--mode", "pp", "--model", MODEL, "--dry-run", VLLM_PP_LAYER_PARTITION="20,14")
    assert "export VLLM_PP_LAYER_PARTITION=20,14\n" in done.stdout
    done = call("--mode", "pp", "--model", MODEL, "--dry-run", VLLM_PP_LAYER_PARTITION="20,13")
    assert done.returncode == 2
    assert done.stderr.startswith("tpmodel embed: VLLM_PP_LAYER_PARTITION = '20,13' is not accepted")


@pytest.mark.parametrize("flags, texts", [
    ((), ["passage: one", "passage: two words", "passage: three", "passage: four", "passage: five", "passage: six"]),
    (("--prefix", ""), ["one", "two words", "passage: three", "four", "five", "six"]),
    (("--prefix", "f"), ["fone", "ftwo words", "fpassage: three", "four", "five", "fsix"])])
def test_documents_prefixes_and_vectors(call, flags, texts):
    done = call("--mode", "tp", *GIVEN, *flags, "--json")
    assert [what["texts"] for what in done.named("embed")] == [texts[:4], texts]
    vectors = numpy.load(call.folder / "v.npy", allow_pickle=False)
    assert vectors.dtype == numpy.float32
    assert vectors.tolist() == [[len(text), 1.0, -0.5] for text in texts]
    said = json.loads(done.stdout)  # and nothing else: what vLLM prints goes to stderr
    assert {name: said[name] for name in ("mode", "documents", "tokens", "dimensions", "output")} == {
        "mode": "tp", "documents": 6, "tokens": sum(1 + len(text.split()) for text in texts),
        "dimensions": 3, "output": "v.npy"}
    assert said["documents_per_s"] == pytest.approx(6 / said["seconds"])
    assert said["tokens_per_s"] == pytest.approx(said["tokens"] / said["seconds"])
    assert "vLLM talks" in done.stderr and "so do workers" in done.stderr and "loading" in done.stderr


def test_the_text_says_documents_and_tokens_per_second(call):
    done = call("--mode", "tp", *GIVEN)
    assert "documents/s" in done.stdout and "tokens/s" in done.stdout and "vLLM talks" not in done.stdout


def test_a_byte_order_mark_and_odd_line_ends(tmp_path):
    file = tmp_path / "docs.txt"
    file.write_bytes("\ufeffä\rb\u2028c\n\n\u3000".encode())
    assert documents.documents(file, "") == {1: "ä", 2: "b\u2028c"}


@pytest.mark.parametrize("program", [(sys.executable, "-m", "tpmodel"), (str(SCRIPT),)], ids=["module", "script"])
def test_a_spawned_worker_does_not_run_main_again(call, program):
    done = call("--mode", "tp", *GIVEN, program=program)
    assert done.returncode == 0, done.stderr
    assert [what["event"] for what in done.notes] == ["import", "LLM", "import", "worker", "embed", "embed"]


def test_the_stand_in_notices_a_program_without_a_guard(call):
    unguarded = call.folder / "unguarded.py"
    unguarded.write_text("import sys; from tpmodel.tools.cli import main; sys.exit(main())")
    done = call("--mode", "tp", *GIVEN, program=(sys.executable, str(unguarded)))
    assert done.returncode == 2 and "bootstrapping phase" in done.stderr and left(call) == []


def left(call):
    """What a run left in the folder."""
    ours = ("lib", "docs.txt", "log", "unguarded.py")
    return sorted(path.name for path in call.folder.iterdir() if path.name not in ours)


def test_nothing_is_overwritten_without_force(call):
    (call.folder / "v.npy").write_text("mine")
    done = call("--mode", "tp", *GIVEN)
    assert done.returncode == 2 and "--force" in done.stderr and done.notes == []
    assert (call.folder / "v.npy").read_text() == "mine"
    assert call("--mode", "tp", *GIVEN, "--force").returncode == 0
    assert numpy.load(call.folder / "v.npy").shape == (6, 3) and left(call) == ["v.npy"]


def test_a_file_that_appears_meanwhile_stays(call):
    done = call("--mode", "tp", *GIVEN, FAKE_STOP="appear")
    assert done.returncode == 2 and "it exists" in done.stderr
    assert (call.folder / "v.npy").read_text() == "another run's"
    assert left(call) == ["v.npy", "v.npy.part"] and "--resume" in done.stderr


@pytest.mark.parametrize("stop, said", [
    ("load", "RuntimeError: Engine core initialization failed. See root cause above."),
    ("embed", "AssertionError"), ("nan", "the vector of line 1 is not finite")])
@pytest.mark.parametrize("before", [None, "mine"])
def test_a_crash_leaves_nothing(call, stop, said, before):
    if before:
        (call.folder / "v.npy").write_text(before)
    done = call("--mode", "tp", *GIVEN, "--force", FAKE_STOP=stop)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2 and done.stdout == "" and last.startswith("tpmodel embed: ") and said in last
    assert left(call) == (["v.npy"] if before else [])
    assert not before or (call.folder / "v.npy").read_text() == before


LINES = "".join(f"heavy doc-{i}\n" for i in range(17))  # of 44,000 tokens each: six are a batch
PLAIN = ("--mode", "tp", "--model", MODEL, "--max-len", "65536", "--input", "long.txt", "--output", "v.npy")


@pytest.fixture
def long(call):
    """The same with documents of three batches."""
    (call.folder / "long.txt").write_text(LINES)
    return call


def kept(call):
    return sorted(path.name for path in (call.folder / "v.npy.part").iterdir())


@pytest.mark.parametrize("stop, code, said", [
    ("INT@16", 130,
     "tpmodel embed: stopped by Ctrl-C: 2 finished batches stay in v.npy.part: --resume goes on from there"),
    ("KILL@16", -9, ""), ("crash@11", 2, "RuntimeError: CUDA error"),
    ("full@16", 2, "v.npy.part/2.npy cannot be written: File too large; "
                   "2 finished batches stay in v.npy.part: --resume goes on from there")])
def test_resume_gives_the_bytes_of_an_uninterrupted_run(long, stop, code, said):
    done = long(*PLAIN, FAKE_STOP=stop)
    last = (done.stderr.splitlines() or [""])[-1]
    assert done.returncode == code and "Traceback" not in done.stderr and said in last, done.stderr[-500:]
    batches = 1 if "crash" in stop else 2
    assert kept(long) == [*(f"{i}.npy" for i in range(batches)), "settings.json"]
    assert not (long.folder / "v.npy").exists()
    refused = long(*PLAIN)
    assert refused.returncode == 2
    assert "--resume goes on from them, --force begins anew" in refused.stderr
    assert refused.notes == []
    done = long(*PLAIN, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["resumed_documents"] == 6 * batches
    ends = [what["texts"][-1].split()[-1] for what in done.named("embed")]
    assert ends == ["doc-3", *("doc-11", "doc-16")[batches - 1:]]
    resumed = (long.folder / "v.npy").read_bytes()
    assert not (long.folder / "v.npy.part").exists()
    assert long(*PLAIN, "--force").returncode == 0 and (long.folder / "v.npy").read_bytes() == resumed
    assert [len(what["texts"]) for what in long(*PLAIN, "--force").named("embed")] == [4, 6, 6, 5]


def test_resume_refuses_what_would_make_other_vectors(long):
    folder = long.folder / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"num_hidden_layers": 6}')
    (folder / "weights").write_text("12")
    args = [*PLAIN[:3], "model", *PLAIN[4:]]
    assert long(*args, FAKE_STOP="INT@16").returncode == 130
    before = kept(long)

    def refused(*flags, **env):
        done = long(*args, *flags, "--resume", **env)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and done.notes == [] and kept(long) == before
        return done.stderr

    assert "it was begun with dtype = 'bfloat16', and this run has 'float32'" in refused("--dtype", "float32")
    assert "max_model_len = 65536" in refused("--max-len", "65537")
    assert "gpu_memory_utilization" in refused("--gpu-util", "0.8")
    assert "input = " in refused("--prefix", "")
    assert "model = 'model', and this run has 'nvidia/" in refused("--model", MODEL)
    assert "tensor_parallel_size = 2, and this run has 1" in refused("--mode", "pp", "--pp-layers", "4,2")
    assert "v.npy' is not accepted: it exists" not in refused("--eager")
    (folder / "weights").write_text("123")
    assert "model_files = " in refused()
    (folder / "weights").write_text("12")
    os.utime(folder / "weights", (1, 1))
    assert "model_files = " in refused()
    (long.folder / "v.npy.part" / "settings.json").write_text("[")
    assert "settings.json' is not accepted: it is damaged" in refused()


def test_what_lies_there_is_not_taken_and_not_lost(long):
    part = long.folder / "v.npy.part"
    done = long(*PLAIN, "--resume")
    assert done.returncode == 2
    assert "there is no run that was broken off: leave --resume out" in done.stderr
    assert done.notes == []
    part.mkdir()
    (part / "mine").write_text("x")
    for flags in ((), ("--force",), ("--resume",)):
        done = long(*PLAIN, *flags)
        assert done.returncode == 2 and "it is no folder of a run of embed" in done.stderr and done.notes == []
    (part / "mine").unlink()
    part.rmdir()
    assert long(*PLAIN, FAKE_STOP="INT@11").returncode == 130
    (part / "0.npy").write_bytes((part / "0.npy").read_bytes()[:-4])
    done = long(*PLAIN, "--resume")
    assert done.returncode == 2 and "v.npy.part/0.npy' is not accepted: it is damaged" in done.stderr
    done = long(*PLAIN, "--force", FAKE_STOP="crash@5")
    assert done.returncode == 2 and "nothing was finished" not in done.stderr
    assert kept(long) == ["0.npy", "settings.json"], "what was there stays until there is better"


@pytest.mark.parametrize("output", ["x" * 254 + ".npy", "y" * 252])
def test_a_name_that_the_disk_refuses_is_told_before_the_run(call, output):
    done = call("--mode", "tp", *GIVEN[:4], "--output", output)
    assert done.returncode == 2 and done.notes == [] and "File name too long" in done.stderr
    assert done.stderr.count("\n") == 1


def bad(folder):
    """Files for the bad inputs below."""
    (folder / "empty.txt").write_text(" \n\n")
    (folder / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    (folder / "six").mkdir()
    (folder / "six" / "config.json").write_text('{"num_hidden_layers": 6}')
    (folder / "nested").mkdir()
    (folder / "nested" / "config.json").write_text('{"text_config": {"num_hidden_layers": 6}}')
    (folder / "bare").mkdir()


BAD = [
    (("--mode", "x"), "invalid choice: 'x'"),
    (("--mode", "pp", "--pp-layers", "20"), "pp-layers = '20' is not accepted: it must be 2 whole numbers >= 1"),
    (("--mode", "pp", "--pp-layers", "20,7,7"), "2 whole numbers"),
    (("--mode", "pp", "--pp-layers", "20,13"), "34 in all (it adds up to 33)"),
    (("--mode", "pp", "--pp-layers", "1,2", "--model", "nemotron-3-embed-8b"), "34 in all"),
    (("--mode", "pp", "--pp-layers", "4,3", "--model", "six"), "6 in all (it adds up to 7)"),
    (("--mode", "pp", "--pp-layers", "4,3", "--model", "nested/config.json"), "6 in all (it adds up to 7)"),
    (("--mode", "pp", "--pp-layers", "34,0"), "2 whole numbers"),
    (("--mode", "pp", "--pp-layers", "35,-1"), "2 whole numbers"),
    (("--mode", "pp", "--pp-layers", "a,b"), "2 whole numbers"),
    (("--mode", "pp", "--pp-layers", "4.0,2"), "2 whole numbers"),
    (("--mode", "pp", "--pp-layers", "²,3"), "2 whole numbers"),
    (("--mode", "pp", "--pp-layers", ""), "2 whole numbers"),
    (("--mode", "tp", "--pp-layers", "20,14"), "it is for --mode pp"),
    (("--mode", "tp", "--offload-gb", "4"), "it is for --mode offload"),
    (("--mode", "pp", "--gpu", "1"), "it is for --mode offload"),
    (("--mode", "offload", "--gpu", "-1"), "a CUDA number"),
    (("--mode", "offload", "--gpu", "0,1"), "a CUDA number"),
    (("--mode", "offload", "--offload-gb", "-1"), "a number of GiB >= 0"),
    (("--mode", "offload", "--offload-gb", "nan"), "a number of GiB >= 0"),
    (("--mode", "tp", "--max-len", "0"), "whole number of tokens >= 1"),
    (("--mode", "tp", "--max-len", "8k"), "whole number of tokens >= 1"),
    (("--mode", "tp", "--max-len", "1_000"),
     "max-len = '1_000' is not accepted: it must be a whole number of tokens >= 1"),
    (("--mode", "tp", "--gpu-util", "0"), "a fraction > 0"),
    (("--mode", "tp", "--gpu-util", "90"), "a fraction > 0"),
    (("--mode", "tp", "--model", "bare"), "model = 'bare/config.json' is not accepted: No such file or directory: "
                                          "it must be a config.json or a folder with one"),
    (("--mode", "tp", "--model", "./missing"), "it must be a folder with a config.json"),
    (("--mode", "tp", "--model", "~nobody-here/x"), "it must be a folder with a config.json"),
    (("--mode", "tp", "--model", ""), "it must be a folder with a config.json"),
    (("--mode", "tp", "--input", "missing.txt"), "No such file"),
    (("--mode", "tp", "--input", "six"), "Is a directory"),
    (("--mode", "tp", "--input", "empty.txt"), "it has no documents"),
    (("--mode", "tp", "--input", "latin.txt"), "line 2 is not UTF-8 (byte 0xe9)"),
    (("--mode", "tp", "--output", "six"), "it is no file"),
    (("--mode", "tp", "--output", "/dev/null", "--force"), "it is no file"),
    (("--mode", "tp", "--output", "docs.txt", "--force"), "it is the input"),
    (("--mode", "tp", "--output", "no/v.npy"), "the folder no must exist"),
]


@pytest.mark.parametrize("flags, said", BAD, ids=lambda value: " ".join(value[1:]) if isinstance(value, tuple) else "")
@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["", "dry"])
def test_bad_input_is_one_line_and_exit_2(call, monkeypatch, capsys, flags, said, dry):
    bad(call.folder)
    monkeypatch.chdir(call.folder)
    before = left(call)
    try:
        code = cli.main(["embed", *GIVEN, *flags, *dry])
    except SystemExit as stop:  # argparse
        code = stop.code
    done = capsys.readouterr()
    assert code == 2 and done.out == "" and left(call) == before
    assert done.err.startswith("tpmodel embed: ") and done.err.count("\n") == 1 and said in done.err


def test_without_an_input_only_a_dry_run(call):
    done = call("--mode", "tp", "--model", MODEL)
    assert done.returncode == 2 and "tpmodel embed: input = None is not accepted" in done.stderr
    assert call("--mode", "tp", "--model", MODEL, "--dry-run").returncode == 0


def test_a_document_that_is_too_long(call):
    done = call("--mode", "tp", *GIVEN, "--max-len", "3")
    assert done.returncode == 2 and left(call) == []
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tpmodel embed: max-len = 3 is not accepted: line 3 of the input has 4 tokens")


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_it_says_how_to_install_it(call):
    done = call("--mode", "tp", *GIVEN, fake=False)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "pip install vllm" in done.stderr and left(call) == []
