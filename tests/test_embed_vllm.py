"""`tpmodel embed` with a real vLLM on the CPU: a split model gives the whole one's vectors. Run by `make vllm-test`."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiny_model
from conftest import missing

pytestmark = pytest.mark.vllm
MODULE = (sys.executable, "-m", "tpmodel")
SCRIPT = (str(Path(sys.executable).parent / "tpmodel"),)


def engine(workers):
    """The environment: no network, 1 GiB for each worker's cache, its own cores, workers spawned as on WSL2."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
           "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
    if workers > 1:
        cores = sorted(os.sched_getaffinity(0))
        share = len(cores) // workers or 1
        parts = (cores[i * share:(i + 1) * share] for i in range(workers))
        env["VLLM_CPU_OMP_THREADS_BIND"] = "|".join(",".join(map(str, part)) for part in parts)
    return env


def call(program, workers, *arguments):
    done = subprocess.run([*program, *arguments, "--json"],
                          capture_output=True, text=True, env=engine(workers), timeout=1800)
    assert done.returncode == 0, done.stderr[-8000:]
    found = json.loads(done.stdout)  # and nothing else: the log is on stderr
    print(" ".join(arguments[:1]), json.dumps(found))
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the model, the documents, and the vectors of one process."""
    if find_spec("vllm") is None:
        missing("no vLLM in this Python: run `make vllm-test`")
    folder = tmp_path_factory.mktemp("tiny")
    tiny_model.make(folder / "model")
    (folder / "docs.txt").write_text("\n\n".join(tiny_model.documents()) + "\n", encoding="utf-8")
    embed(folder, "whole", MODULE, 1, "--mode", "offload", "--offload-gb", "1")
    return folder


def embed(folder, name, program, workers, *flags):
    found = call(program, workers, "embed", *flags, "--model", str(folder / "model"),
                 "--input", str(folder / "docs.txt"), "--output", str(folder / f"{name}.npy"),
                 "--max-len", "512", "--dtype", "float32")
    assert found["documents"] == 16 and found["dimensions"] == 256 and found["tokens"] == sum(
        1 + len(text.split()) for text in tiny_model.documents())


# Two stages need the compiled model here: without it vLLM's CPU engine makes no buffers to receive into.
@pytest.mark.parametrize("name, program, flags", [
    ("tp", SCRIPT, ("--mode", "tp", "--eager")), ("pp", MODULE, ("--mode", "pp", "--pp-layers", "4,2"))])
def test_split_over_two_the_vectors_are_those_of_one(made, name, program, flags):
    embed(made, name, program, 2, *flags)
    found = call(MODULE, 1, "embed-diff", str(made / "whole.npy"), str(made / f"{name}.npy"))
    assert found["documents"] == 16 and found["max_abs_diff"] < 1e-5 and found["cosine_min"] > 1 - 1e-5
    assert found["top_k_overlap"] == 1
    assert sorted(path.name for path in made.iterdir() if path.name.startswith(".")) == []
