"""measure and fit: sizes, nvidia-smi, the link's constants found again, vLLM's log, nccl-tests, what is refused."""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpmodel.tools import cli
from tpmodel.catalog import sourced
from tpmodel.catalog.gpus import gpu
from tpmodel.formulas.collectives import protocol_allreduce_s
from tpmodel.tools.measure import command, fit, link, one_gpu, printed, smi
from tpmodel.planner.plan import wire
from tpmodel.formula.units import GIB

KIB, MIB = 2**10, 2**20


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "tpmodel", *map(str, arguments)], capture_output=True, text=True)


def rows(rate, start, bulk, ranks=2, sizes=link.SIZES):
    return [[size, protocol_allreduce_s(size, ranks, rate, start, bulk)] for size in sizes]


def result(**more):
    card = {"index": 0, "name": "NVIDIA GeForce RTX 5060 Ti", "reported_mib": 16311, "total_bytes": 16620191744,
            "copy_bytes_per_s": 400e9, "matvec_bytes_per_s": 380e9, "matvec_small_bytes_per_s": 300e9,
            "bf16_flop_per_s": 45e12, "host_to_device_pinned_bytes_per_s": 13e9,
            "host_to_device_pageable_bytes_per_s": None, "ranges": {"copy_bytes_per_s": [395e9, 401e9]}, "failed": {}}
    other = {**card, "index": 1, "copy_bytes_per_s": 410e9}
    shared = {"ranks": 2, "protocols": {"default": rows(2e9, 1e-5, 4e-5)}, "failed": {}}
    return {"schema": "tpmodel-measure-1", "date": "2026-11-30", "torch": "2.11", "nccl": "2.28.9", "driver": None,
            "gpus": [card, other], "all_reduce": shared} | more


# measure: the parts that need no GPU

def test_sizes_and_calls():
    assert link.SIZES[0] == 8 and link.SIZES[-1] == 256 * MIB and 10 * KIB in link.SIZES
    assert list(link.SIZES) == sorted(set(link.SIZES))
    assert set(link.QUICK_SIZES) <= set(link.SIZES)
    assert all(type(size) is int and size % one_gpu.BF16_BYTES == 0 for size in link.SIZES)
    assert len(link.QUICK_SIZES) * 2 < len(link.SIZES) and sum(size >= fit.BULK_BYTES for size in link.QUICK_SIZES) == 2
    assert [link.calls_of(t) for t in (0, 1e-6, 1e-3, 0.1)] == [50, 50, 20, 2]


def test_nvidia_smi_is_read_by_uuid_and_survives_what_it_does_not_know():
    text = ("GPU-aa, 580.65, 16311, 180.00, 1, 4, 8, 16\n"
            "GPU-bb, 580.65, 16303, [N/A], [Not Supported], 5, 16, 16\nno devices\n")
    found = smi.parse_smi(text)
    assert [row["reported_mib"] for row in found] == [16311, 16303]
    assert found[1]["power_limit_w"] is None and found[1]["pcie_gen"] is None
    assert smi.smi_of(found, "bb", 0)["reported_mib"] == 16303  # CUDA's order is another one
    assert smi.smi_of(found, "", 0)["reported_mib"] == 16311
    assert smi.smi_of(found, "cc", 0)["reported_mib"] is None and smi.smi_of([], "", 0)["driver"] is None


def test_only_variables_that_matter_are_kept():
    assert command.kept({"NCCL_P2P_DISABLE": "1", "HOME": "/x", "CUDA_VISIBLE_DEVICES": "0", "HF_TOKEN": "s"}) == {
        "CUDA_VISIBLE_DEVICES": "0", "NCCL_P2P_DISABLE": "1"}


def test_the_parts_of_the_ranks_are_put_together():
    graph, ping = [[8, 1e-5]], [[8, 2e-5]]
    timed = {"eager": [[8, 3e-5]], "ping_eager": [[8, 9e-5]], "graph": graph, "ping_graph": ping}
    forced = {"LL": ({"graph": [[8, 8e-6]]}, {}), "LL128": ({}, {"graph": "RuntimeError: no"})}
    whole = link.assemble(2, (timed, {}), forced)
    assert whole["protocols"] == {"default": graph, "LL": [[8, 8e-6]]} and whole["in_graph"]
    assert whole["failed"] == {"LL128 graph": "RuntimeError: no"}
    assert whole["send_recv"] == [[8, 1e-5]]  # there and back is two
    broken = link.assemble(2, ({"eager": [[8, 3e-5]], "ping_eager": ping, "graph": []}, {"graph": "no capture"}), {})
    assert broken["protocols"] == {"default": [[8, 3e-5]]} and not broken["in_graph"]
    assert broken["send_recv"] == [[8, 1e-5]]
    assert list(link.all_reduce(1, True, print)) == []


def test_json_has_no_infinities():
    assert command._finite({"a": [float("nan"), 1.0]}) == {"a": [None, 1.0]}


def test_without_a_gpu_measure_says_so_in_one_line(tmp_path):
    done = run("measure", "--out", tmp_path / "m.json")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "PyTorch" in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


# fit: the link

@given(rate=st.floats(1e9, 1e11), start=st.floats(6e-6, 6e-5), more=st.floats(1, 8), ranks=st.integers(2, 8))
@settings(max_examples=40, deadline=None)
def test_known_constants_are_found_again(rate, start, more, ranks):
    bulk = start * more
    found, said = fit.fit_link(rows(rate, start, bulk, ranks), ranks)
    assert found["link_bytes_per_s"][1] == pytest.approx(rate, rel=1e-6)
    # the median of three small ones has some bytes in it
    assert found["allreduce_latency_s"][1] == pytest.approx(start, abs=4 * KIB / rate)
    assert found["bulk_latency_s"][1] == pytest.approx(bulk, abs=4 * KIB / rate)
    assert said["median_abs_error_frac"] < 0.02 and said["worst_abs_error_frac"] < 0.2
    assert said["rows"] == len(link.SIZES)


@given(noise=st.lists(st.floats(0.6, 1.6), min_size=18, max_size=18), rate=st.floats(1e9, 5e11),
       start=st.floats(3e-6, 6e-5), more=st.floats(1, 8))
@settings(max_examples=60, deadline=None)
def test_every_row_lies_within_the_ranges(noise, rate, start, more):
    table = [(size, t * (factor if size < 16 * MIB else 1))
             for (size, t), factor in zip(rows(rate, start, start * more), noise)]
    found, _ = fit.fit_link(table, 2)
    assert all(low <= mid <= high for low, mid, high in found.values())
    for size, t in table:
        fast, slow = (protocol_allreduce_s(size, 2, *(found[name][end] for name, end in zip(found, ends)))
                      for ends in ((2, 0, 0), (0, 2, 2)))
        assert fast <= t * (1 + 1e-9) and t * (1 - 1e-9) <= slow


def test_a_fit_worked_by_hand():
    # slope (64 - 16) MiB / (48 MiB / 1 GB/s) = 1 GB/s; latency the median of 8, 10, 12 us;
    # at 64 KiB 105.536 us less 65.536 of bytes is 40
    table = [(8, 8e-6), (16, 10e-6), (32, 12e-6), (64 * KIB, 105.536e-6),
             (16 * MIB, 40e-6 + 16 * MIB / 1e9), (64 * MIB, 40e-6 + 64 * MIB / 1e9)]
    found, said = fit.fit_link(table, 2)
    assert [found[name][1] for name in found] == pytest.approx([1e9, 10e-6, 40e-6], rel=1e-6)
    assert found["allreduce_latency_s"][0] == pytest.approx(8e-6, rel=0.01)
    assert found["allreduce_latency_s"][2] == pytest.approx(12e-6, rel=0.01)
    assert said["worst_abs_error_frac"] == pytest.approx(0.25, rel=0.02)  # 10 for 8


@pytest.mark.parametrize("table, said", [
    ([(8, 1e-5), (16 * MIB, 1e-2)], "one small and two large"),
    ([(16 * MIB, 1e-2), (64 * MIB, 2e-2)], "0 messages of at most 1 KiB"),
    ([(8, 1e-5), (16 * MIB, 2e-2), (64 * MIB, 1e-2)], "not slower")])
def test_a_fit_needs_small_and_large_messages(table, said):
    with pytest.raises(ValueError, match=said):
        fit.fit_link(table, 2)


def test_more_gpus_are_taken_down_to_a_pair_and_up_again():
    entry, _ = fit.link_entry(rows(4e9, 30e-6, 60e-6, 4), 4, "four", "test", "2026-11-30")
    found = sourced.read(fit.toml({"four": entry}, []), "x")["four"]
    assert found.allreduce_latency_s == pytest.approx(26e-6, rel=0.01)  # 2 (4 - 2) hops of 1 us
    assert wire.latency(found, 4, 1) == pytest.approx(30e-6, rel=0.01)


# fit: a result of measure

def test_a_measurement_becomes_a_catalog_that_plan_reads(tmp_path):
    file, catalog = tmp_path / "m.json", tmp_path / "own.toml"
    file.write_text(json.dumps(result()))
    done = run("fit", file)
    assert done.returncode == 0 and done.stderr == ""
    catalog.write_text(done.stdout)
    found = sourced.read(done.stdout, "x")
    assert list(found) == ["rtx-5060-ti-measured", "measured-link"]
    card = found["rtx-5060-ti-measured"]
    assert card.memory_bytes_per_s == 405e9 and card.numbers["memory_bytes_per_s"].base_range == (395e9, 405e9, 410e9)
    assert card.numbers["achieved_frac"].base_range == pytest.approx((300 / 405, 380 / 405, 380 / 405), rel=1e-5)
    assert card.reported_bytes == 16620191744 and card.vram_bytes == 16311 * MIB and card.bf16_flop_per_s == 45e12
    assert found["measured-link"].link_bytes_per_s == pytest.approx(2e9)
    assert found["measured-link"].bulk_latency_s == pytest.approx(4e-5, rel=0.01)
    assert "# Fit of the link: 18 all-reduces" in done.stdout
    plan = run("plan", "--model", "qwen3-8b", *["--gpu", "rtx-5060-ti-measured"] * 2, "--link", "measured-link",
               "--catalog", catalog, "--parallel", "tp", "--json")
    assert plan.returncode == 0, plan.stderr
    said = json.loads(plan.stdout)
    used = "rtx-5060-ti-measured: kernels reach 0.74 / 0.94 / 0.94"
    assert any(used in line for line in said["assumptions"]), "what was used is what is said"
    offload = json.loads(run("plan", "--model", "qwen3-32b", "--gpu", "rtx-5060-ti-measured",
                             "--catalog", catalog, "--json").stdout)
    assert any("offloaded weights come at" in line and "its own copies" in line for line in offload["assumptions"])
    copies = offload["decode"]["terms"]["offload copies"]["mid_ms"] / 1e3
    copied_s = offload["split"]["offloaded_bytes"] / card.numbers["copy_bytes_per_s"].base_range[1]
    assert copies == pytest.approx(copied_s, rel=0.03)  # but for what no step reads
    assert said["link"] == "measured-link" and said["gpus"][0]["budget_bytes"] == pytest.approx(0.92 * 16620191744)
    slower = json.loads(json.dumps(result()))
    slower["all_reduce"]["protocols"]["default"] = rows(2e9, 1e-4, 1e-4)
    file.write_text(json.dumps(slower))
    catalog.write_text(run("fit", file).stdout)
    again = run("plan", "--model", "qwen3-8b", *["--gpu", "rtx-5060-ti-measured"] * 2, "--link", "measured-link",
                "--catalog", catalog, "--parallel", "tp", "--json")
    assert json.loads(again.stdout)["decode"]["mid"] < 0.9 * said["decode"]["mid"]


def test_json_has_entries_and_how_close_the_fit_is(tmp_path):
    file = tmp_path / "m.json"
    file.write_text(json.dumps(result()))
    said = json.loads(run("fit", file, "--name", "mine", "--json").stdout)
    assert set(said["entries"]) == {"rtx-5060-ti-measured", "mine"}
    assert said["fit"]["rows"] == 18 and said["fit"]["worst_abs_error_frac"] < 0.1 and set(said["fit"]) == {
        "rows", "median_abs_error_frac", "worst_abs_error_frac"}
    assert run("fit", file, "--name", "a b").returncode == 2


def test_one_gpu_has_no_link_and_may_take_rates_from_the_catalog():
    known = {name: fit.kept(one) for name, one in gpu("rtx-5060-ti-16gb").numbers.items()}
    found, said = fit.entries(result(all_reduce=None), "x", known)
    assert said is None and "x" not in found
    card = sourced.read(fit.toml(found, ["c"]), "y")["rtx-5060-ti-measured"]
    assert card.fp4_flop_per_s == gpu("rtx-5060-ti-16gb").fp4_flop_per_s and card.bf16_flop_per_s == 45e12


def test_a_read_that_beats_the_copy_is_the_memory_rate():
    quick = result(all_reduce=None)
    for card in quick["gpus"]:
        card["matvec_bytes_per_s"] = 420e9
    card = sourced.read(fit.toml(fit.entries(quick, "x")[0], []), "y")["rtx-5060-ti-measured"]
    assert card.memory_bytes_per_s == 420e9 and card.achieved_frac == 1


@pytest.mark.parametrize("break_it, said", [
    (lambda r: r | {"schema": "x"}, "schema"), (lambda r: r | {"gpus": []}, "gpus"),
    (lambda r: r | {"gpus": [{"name": 5}]}, "gpus"),
    (lambda r: r | {"date": "yesterday"}, "date"), (lambda r: r | {"date": 5}, "date"),
    (lambda r: r | {"all_reduce": [1]}, "all_reduce"),
    (lambda r: r["all_reduce"]["protocols"].update(default=[]) or r, "pairs"),
    (lambda r: r["all_reduce"]["protocols"].update(default=[[8, -1]]) or r, "above 0"),
    (lambda r: r["all_reduce"]["protocols"].update(default=[[8, True]]) or r, "above 0"),
    (lambda r: r["all_reduce"]["protocols"].update(default=[[8]]) or r, "pairs"),
    (lambda r: r["all_reduce"]["protocols"].update(default=[[8, 1]] * 201) or r, "200"),
    (lambda r: r["all_reduce"].update(ranks=1) or r, "ranks"),
    (lambda r: r["gpus"][0].update(copy_bytes_per_s="4") or r, "copy_bytes_per_s"),
    (lambda r: r["gpus"][0].update(total_bytes=None) or r, "total_bytes"),
    (lambda r: r["gpus"][0].update(ranges={"copy_bytes_per_s": [-1]}) or r, "above 0"),
    (lambda r: r["gpus"][0].update(ranges=3) or r, "gpus"),
    *((lambda r, wrong=wrong: r["gpus"][0].update(ranges={"copy_bytes_per_s": wrong}) or r, "ranges.copy_bytes_per_s")
      for wrong in (5, True, "ab", {"a": 1}, 0.5))])
def test_a_broken_measurement_is_refused(break_it, said):
    with pytest.raises(ValueError, match=said):
        fit.entries(break_it(json.loads(json.dumps(result()))), "x")


@pytest.mark.parametrize("raw, said", [
    (b"", "empty"), (b"\x00\x01binary", "no text"), (b"hello\n", "it must be the JSON of tpmodel measure"),
    (b'{"schema": ', "not JSON"), (b'{"schema": NaN}', "NaN is not accepted"), (b"{}", "schema"),
    (b"[1]", "it must be"), (b"{" * 100_000, "fit"), (b"x" * 20_000_001, "larger than"),
    (b'{"a":' * 100_000, "fit")], ids=range(10))
def test_what_is_neither_is_one_line(tmp_path, raw, said):
    file = tmp_path / "f"
    file.write_bytes(raw)
    done = run("fit", file)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert said in done.stderr and len(done.stderr) < 700


def test_a_file_that_is_not_there_is_one_line():
    done = run("fit", "/nope")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "file = '/nope' is not accepted: No such file" in done.stderr


# fit: what others print

NEW = """\
\x1b[0;36m(APIServer pid=1)\x1b[0;0m INFO 08-14 14:06:20 [utils.py:233] non-default args: {'max_model_len': 131072, \
'gpu_memory_utilization': 0.82, 'tensor_parallel_size': 2}
(EngineCore pid=367) INFO 08-14 14:06:30 [core.py:93] Initializing a V1 LLM engine (v0.27.1) with config: model='m', \
max_seq_len=131072, tensor_parallel_size=2, pipeline_parallel_size=1
(Worker_TP0 pid=447) INFO 08-14 14:07:00 [gpu_model_runner.py:4879] Model loading took 5.00 GiB memory and 31.657031 \
seconds
(Worker_TP1 pid=448) INFO 08-14 14:07:00 [gpu_model_runner.py:4879] Model loading took 5.25 GiB memory and 31.9 seconds
(Worker_TP1 pid=448) INFO 08-14 14:07:01 [interface.py:645] Setting attention block size to 1568 tokens to ensure \
that attention page size is >= mamba page size.
(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_model_runner.py:6806] Estimated CUDA graph memory: 0.36 GiB total
(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_worker.py:563] Available KV cache memory: 6.00 GiB
(Worker_TP1 pid=448) INFO 08-14 14:07:22 [gpu_worker.py:563] Available KV cache memory: 6.15 GiB
(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_worker.py:578] CUDA graph memory profiling is enabled (default since \
v0.21.0). The current --gpu-memory-utilization=0.8000 is equivalent to --gpu-memory-utilization=0.7848 without CUDA \
graph memory profiling. To maintain the same effective KV cache size as before, increase --gpu-memory-utilization to \
0.8152.
(EngineCore pid=367) INFO 08-14 14:07:23 [kv_cache_utils.py:2328] GPU KV cache size: 302,921 tokens, Maximum \
concurrency for 131,072 tokens per request: 2.31x
(Worker_TP0 pid=447) INFO 08-14 14:07:40 [gpu_model_runner.py:6582] Graph capturing finished in 8 secs, took 0.73 GiB
(Worker_TP0 pid=447) INFO 08-14 14:07:40 [gpu_worker.py:970] CUDA graph pool memory: 0.70 GiB (actual), 0.36 GiB \
(estimated), difference: 0.34 GiB (48.6%).
(Worker_TP0 pid=447) INFO 08-14 14:07:41 [gpu_worker.py:1033] Free memory on device (15.2/15.5 GiB) on startup. \
Desired GPU memory utilization is (0.8, 12.4 GiB). Actual usage is 5.4 GiB for consumed memory
"""
OLD = """\
INFO 12-20 20:25:00 llm_engine.py:237] Initializing an LLM engine (v0.6.4) with config: model='m', max_seq_len=40000, \
tensor_parallel_size=1, pipeline_parallel_size=1
INFO 12-20 20:25:46 worker.py:241] the current vLLM instance can use total_gpu_memory (15.77GiB) x \
gpu_memory_utilization (0.90) = 14.20GiB
INFO 12-20 20:25:46 worker.py:241] model weights take 7.51GiB; non_torch_memory takes 0.39GiB; PyTorch activation \
peak memory takes 2.53GiB; the rest of the memory reserved for KV Cache is 3.76GiB.
INFO 12-20 20:25:46 distributed_gpu_executor.py:61] Maximum concurrency for 40000 tokens per request: 1.54x
"""
PLAIN = """\
INFO 04-24 16:33:00 [gpu_model_runner.py:1316] Model loading took 14.9889 GiB and 3.652170 seconds
INFO 04-24 16:33:12 [gpu_worker.py:255] Available KV cache memory: 5.50 GiB
INFO 04-24 16:33:13 [kv_cache_utils.py:634] GPU KV cache size: 158,656 tokens
INFO 04-24 16:33:13 [kv_cache_utils.py:637] Maximum concurrency for 32,768 tokens per request: 4.84x
"""


def test_a_log_says_all_that_vllm_prints():
    said = printed.read_log(NEW)
    assert said == {"weights_gib": {"Worker_TP0": 5.0, "Worker_TP1": 5.25},
                    "available_gib": {"Worker_TP0": 6.0, "Worker_TP1": 6.15}, "memory_gib": 15.5,
                    "utilisation_frac": 0.8, "graph_gib": 0.7, "kv_tokens": 302921, "concurrency": 2.31,
                    "max_model_len": 131072, "tp": 2, "block_tokens": 1568}
    found = printed.overhead(said, gpu("rtx-5060-ti-16gb"))
    # 0.8 x 15.5 = 12.4; less 5.0 and 6.0 is 1.4; less 5.25 and 6.15 is 1.0
    assert [end / GIB for end in found["overhead_bytes"]] == pytest.approx([1.0 - 0.01, 1.2, 1.4 + 0.01])


def test_the_words_of_0_6_add_up_as_it_said_itself():
    found = printed.overhead(printed.read_log(OLD), gpu("rtx-5080"))
    assert found["overhead_bytes"][1] / GIB == pytest.approx(0.39 + 2.53, abs=0.011)
    assert printed.read_log(OLD)["tp"] == 1 and printed.read_log(OLD)["max_model_len"] == 40000


@pytest.mark.parametrize("line", [
    "$ vllm serve m --gpu-memory-utilization 0.87", "$ vllm serve m --gpu-memory-utilization=0.87",
    "non-default args: {'gpu_memory_utilization': 0.87}",
    "increase --gpu-memory-utilization from 0.8700 to 0.8921 to maintain",
    "(59.32/79.15 GiB) on startup is less than desired GPU memory utilization (0.87, 68.86 GiB).",
    "LLM(gpu_memory_utilization=0.87)"])
def test_every_wording_of_the_fraction(line):
    assert printed.read_log(line + "\n" + PLAIN)["utilisation_frac"] == 0.87


@pytest.mark.parametrize("line", [
    "Loading model weights took 67.7229 GB", "Model loading took 67.7229 GB and 9.0 seconds",
    "Model loading took 67.7229 GiB memory and 3 seconds"])
def test_every_wording_of_the_weights(line):
    assert printed.read_log("INFO 01-30 03:18:12 gpu_model_runner.py:848] " + line)["weights_gib"] == {"": 67.7229}


def test_a_log_without_the_memory_takes_the_cards():
    found = printed.overhead(printed.read_log(PLAIN), gpu("rtx-4090"), 0.9)
    assert found["overhead_bytes"][1] / GIB == pytest.approx(0.9 * 23.55 - 14.9889 - 5.5)


def test_the_last_start_of_a_log_counts():
    first = NEW.replace("Available KV cache memory: 6.", "Available KV cache memory: 1.")
    assert printed.read_log(first + NEW) == printed.read_log(NEW)
    cut = NEW[:NEW.index("(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_worker.py:563]")]
    with pytest.raises(ValueError, match="available_gib.*Available KV cache memory: 4.99 GiB"):  # not the first start's
        printed.overhead(printed.read_log(NEW + cut), gpu("rtx-5060-ti-16gb"))


@pytest.mark.parametrize("text, more, said", [
    (NEW, (), "needs --gpu"), (PLAIN, ("--gpu", "rtx-4090"), "utilisation_frac"),
    (PLAIN.replace("Model loading", "x"), ("--gpu", "rtx-4090"), "Model loading took"),
    (PLAIN, ("--gpu", "rtx-5080", "--util", "0.9"), "does not add up"),
    (PLAIN, ("--gpu", "rtx-4090", "--util", "nan"), "--util: 'nan' is not accepted"),
    (PLAIN, ("--gpu", "rtx-4090", "--util", "0"), "above 0"),
    (PLAIN, ("--gpu", "nope"), "'nope' is not in gpus.toml"),
    (PLAIN.replace("Available", "x"), ("--gpu", "rtx-4090"), "Available KV cache memory: 4.99 GiB")])
def test_a_log_that_lacks_a_line_is_one_line(tmp_path, text, more, said):
    file = tmp_path / "vllm.log"
    file.write_text(text)
    done = run("fit", file, *more)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and said in done.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_log_becomes_an_entry_that_plan_reads(tmp_path, encoding):
    file, catalog = tmp_path / "vllm.log", tmp_path / "own.toml"
    file.write_text(NEW, encoding=encoding)
    done = run("fit", file, "--gpu", "rtx-5060-ti-16gb")
    assert done.returncode == 0, done.stderr
    catalog.write_text(done.stdout)
    card = sourced.read(done.stdout, "x")["rtx-5060-ti-16gb-measured"]
    assert card.overhead_bytes == pytest.approx(1.2 * GIB, rel=1e-5)
    assert card.numbers["overhead_bytes"].kind == "computed"
    assert card.memory_bytes_per_s == 448e9 and card.reported_bytes == pytest.approx(15.5 * GIB)
    assert "kv_tokens: 302,921" in done.stdout
    planned = run("plan", "--model", "qwen3-8b", "--gpu", "rtx-5060-ti-16gb-measured", "--catalog", catalog)
    assert planned.returncode == 0
    said = json.loads(run("fit", file, "--gpu", "rtx-5060-ti-16gb", "--json").stdout)
    assert said["fit"] is None and said["log"]["concurrency"] == 2.31
    assert said["log"]["overhead_bytes"] == pytest.approx(1.2 * GIB)


HEAD = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 2147483648 step: 2(factor) warmup iters: 2 iters: 10 agg iters: 1 validation: \
1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   9822 on i-56butc28zq2jtjaluzq7va7p6 device  0 [0000:2c:00] NVIDIA GeForce RTX 4090
#  Rank  1 Group  0 Pid   9822 on i-56butc28zq2jtjaluzq7va7p6 device  1 [0000:2d:00] NVIDIA GeForce RTX 4090
i-56butc28zq2jtjaluzq7va7p6:9822:9822 [0] NCCL INFO Bootstrap: Using bond0:10.0.11.5<0>
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def nccl(table, root="      -1"):
    rate = lambda size, t: f"{size / t / 1e9:5.2f}"
    body = [f"{size:12d}  {size // 4:12d}     float     sum{root}  {t * 1e6:7.6g}  {rate(size, t)}  {rate(size, t)}"
            "      0   999.99    0.01    0.01      0" for size, t in table]
    return HEAD + "\n".join(body) + "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.6\n"


@pytest.mark.parametrize("root", ["      -1", ""])  # old versions have no such column
def test_nccl_tests_become_a_link(tmp_path, root):
    file = tmp_path / "out.txt"
    file.write_text(nccl(rows(2.2e9, 9e-6, 39e-6), root))
    done = run("fit", file, "--name", "my-shm")
    assert done.returncode == 0, done.stderr
    found = sourced.read(done.stdout, "x")["my-shm"]
    numbers = [found.link_bytes_per_s, found.allreduce_latency_s, found.bulk_latency_s]
    assert numbers == pytest.approx([2.2e9, 9e-6, 39e-6], rel=0.03)
    assert found.said == {"protocol": "ring"} and found.link_latency_s == 1e-6
    assert found.name == "2 GPUs, NVIDIA GeForce RTX 4090, measured"
    assert found.numbers["link_bytes_per_s"].date == date.today().isoformat()
    (tmp_path / "own.toml").write_text(done.stdout)
    plan = run("plan", "--model", "qwen3-8b", *["--gpu", "rtx-4090"] * 2, "--link", "my-shm", "--catalog",
               tmp_path / "own.toml", "--json")
    assert plan.returncode == 0 and json.loads(plan.stdout)["link"] == "my-shm"


@pytest.mark.parametrize("text, said", [
    (HEAD, "no rows"), (nccl(rows(2e9, 9e-6, 9e-6)).replace("sum", "none"), "all_reduce_perf"),
    (nccl(rows(2e9, 9e-6, 9e-6)).replace("#  Rank  1", "# x"), "-g 2"),
    (nccl(rows(2e9, 9e-6, 9e-6, sizes=(8, 1024))), "-e 256M"),
    ("# all_gather_perf\n" + nccl(rows(2e9, 9e-6, 9e-6)), "run all_reduce_perf")])
def test_nccl_output_that_does_not_do_is_one_line(tmp_path, text, said):
    file = tmp_path / "out.txt"
    file.write_text(text)
    done = run("fit", file)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and said in done.stderr


# measure: what ends it loses nothing

FAKE = '''
import json, os, resource, signal, sys, time, types
torch = types.ModuleType("torch")
torch.__version__, torch.version = "2.0", types.SimpleNamespace(cuda="13.0")
torch.cuda = types.SimpleNamespace(
    is_available=lambda: True, device_count=lambda: 2,
    get_device_properties=lambda i: types.SimpleNamespace(name="Card", uuid="x"),
    can_device_access_peer=lambda a, b: False, nccl=types.SimpleNamespace(version=lambda: (2, 28, 9)),
    set_device=lambda i: None, mem_get_info=lambda: (8, 9), empty_cache=lambda: None)
torch.distributed = types.SimpleNamespace(is_available=lambda: True, is_nccl_available=lambda: True)
sys.modules["torch"] = torch
from tpmodel.tools import cli
from tpmodel.tools.measure import link, one_gpu
STOP, calls = os.environ["STOP"], []
def number(torch, free, repeats):
    calls.append(1)
    if len(calls) == 4:  # the second number of the second GPU
        if STOP in ("INT", "TERM", "HUP"):
            os.kill(os.getpid(), getattr(signal, "SIG" + STOP))
            time.sleep(20)
        if STOP == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
        if STOP == "driver":
            torch.cuda.empty_cache = lambda: 1 / 0
    return [1.0, 2.0, 3.0]
one_gpu.TESTS = {"copy_bytes_per_s": number, "bf16_flop_per_s": number}
one_gpu._decode_step = lambda *_: {"graph_s": 1.0}
link.run_ranks = lambda ranks, protocol, *_: ({"graph": [[8, 1e-5]]}, {})
sys.exit(cli.main(["measure", "--quick", *sys.argv[1:]]))
'''


def measured(tmp_path, stop, *arguments):
    done = subprocess.run([sys.executable, "-c", FAKE, *arguments], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "STOP": stop}, timeout=60)
    assert "Traceback" not in done.stderr and "Error" not in done.stdout
    return done


@pytest.mark.parametrize("stop, code, said", [
    ("INT", 130, "stopped by Ctrl-C: what was measured is "),
    ("TERM", 143, "stopped by SIGTERM: what was measured is "), ("HUP", 129, "stopped by SIGHUP"),
    ("driver", 2, "ZeroDivisionError: division by zero; what was measured is ")])
@pytest.mark.parametrize("out", [(), ("--out", "m.json")], ids=["stdout", "file"])
def test_what_was_measured_stays_when_it_is_broken_off(tmp_path, stop, code, said, out):
    done = measured(tmp_path, stop, *out)
    assert done.returncode == code and said in done.stderr.splitlines()[-1]
    assert [file.name for file in tmp_path.iterdir()] == list(out[1:]) and (done.stdout == "") == bool(out)
    found = json.loads((tmp_path / "m.json").read_text() if out else done.stdout)
    assert found["complete"] is False and found["all_reduce"] is None
    assert [card["copy_bytes_per_s"] for card in found["gpus"]] == [2.0, 2.0]
    assert found["gpus"][0]["bf16_flop_per_s"] == 2.0 and found["gpus"][1].get("bf16_flop_per_s") is None


def test_a_full_disk_ends_in_what_it_could_not_write(tmp_path):
    done = measured(tmp_path, "full", "--out", "m.json")
    assert done.returncode == 2 and done.stderr.count("cannot be written") == 2
    said = "tpmodel measure: m.json cannot be written: File too large; what was measured is printed"
    assert done.stderr.splitlines()[-1] == said
    whole = json.loads(done.stdout)
    assert whole["complete"] and len(whole["all_reduce"]["protocols"]) == 4
    assert whole["gpus"][1]["bf16_flop_per_s"] == 2.0
    before = json.loads((tmp_path / "m.json").read_text())  # what was written before is whole, too
    assert before["gpus"][0]["bf16_flop_per_s"] == 2.0 and [file.name for file in tmp_path.iterdir()] == ["m.json"]


def test_a_whole_run_with_the_stand_in(tmp_path):
    (tmp_path / "--x y.json").write_text("old")
    assert measured(tmp_path, "", "--out", "./--x y.json").returncode == 2
    assert (tmp_path / "--x y.json").read_text() == "old"
    done = measured(tmp_path, "", "--out", "./--x y.json", "--force")
    assert done.returncode == 0 and "tpmodel fit './--x y.json' makes catalog entries of it" in done.stdout
    found = json.loads((tmp_path / "--x y.json").read_text())
    assert found["complete"] and len(found["gpus"]) == 2
    assert found["gpus"][0]["ranges"]["copy_bytes_per_s"] == [1.0, 3.0]


def test_fit_says_that_a_measurement_was_broken_off(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(result(all_reduce=None, complete=False)))
    done = run("fit", tmp_path / "m.json")
    assert done.returncode == 0 and "# The measurement was broken off" in done.stdout
    assert "broken off" not in run("fit", tmp_path / "m.json", "--json").stdout


@pytest.mark.parametrize("line", [
    "Graph capturing finished in ", "Model loading took 1.0 GiB memory ", "gpu_memory_utilization" + " " * 50_000,
    "# Rank 1 device 1 [", "1 1 a ", "(Worker_TP0 pid=1) Available KV cache memory: 1.0 GiB ",
    "model weights take" + " " * 50_000, "a_", "\x1b[0"])
def test_no_line_of_a_log_hangs(line):
    text = line * (1_000_000 // len(line))
    start = time.process_time()
    for read in (printed.is_log, printed.read_log, printed.is_nccl, printed.read_nccl):
        with contextlib.suppress(ValueError):
            read(text)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("line", [
    "GPU KV cache size: {} tokens", "Model loading took {} GiB memory and 3.5 seconds", "max_seq_len={}"])
@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000])
def test_a_number_of_hundreds_of_digits_names_its_line(line, number):
    said = "(kv_tokens|weights_gib|max_model_len) = '9+...9+' is not accepted: it must be a"
    with pytest.raises(ValueError, match=said):
        printed.read_log(line.format(number))


JSONS = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just(10**400),
                     lambda inner: st.lists(inner, max_size=3)
                     | st.dictionaries(st.text(max_size=4), inner, max_size=2), max_leaves=4)
PLACES = ["gpus", "all_reduce", "date", "torch", "schema", "complete", "gpus/0", "gpus/0/ranges",
          "gpus/0/ranges/copy_bytes_per_s", "gpus/0/name", "gpus/0/copy_bytes_per_s", "gpus/0/total_bytes",
          "gpus/0/reported_mib", "gpus/0/failed", "all_reduce/ranks", "all_reduce/protocols",
          "all_reduce/protocols/default", "all_reduce/protocols/default/0",
          "gpus/1/host_to_device_pinned_bytes_per_s"]


@pytest.mark.thorough
@given(st.lists(st.tuples(st.sampled_from(PLACES), JSONS), min_size=1, max_size=2))
@settings(max_examples=300, deadline=None)
def test_no_wrong_type_breaks_fit(tmp_path_factory, changes):
    whole = json.loads(json.dumps(result()))
    for path, value in changes:
        with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError):
            *way, last = [int(name) if name.isdigit() else name for name in path.split("/")]
            at = whole
            for name in way:
                at = at[name]
            at[last] = value
    file = tmp_path_factory.mktemp("fuzz") / "m.json"
    file.write_text(json.dumps(whole))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        assert cli.main(["fit", str(file)]) in (0, 2)
    assert err.getvalue().count("\n") <= 1 and len(err.getvalue()) < 700
