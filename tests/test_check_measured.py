"""`tpmodel check comm|decode|prefill`: public measurements, rows by hand, blindness, laws for any setting, bad rows."""

import contextlib
import csv
import io
import json
import subprocess
import sys
from importlib import import_module, resources

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpmodel.tools import cli
from tpmodel.catalog.gpus import gpus
from tpmodel.catalog.links import LANES, TRANSFERS, link, links
from tpmodel.planner.evidence import allreduces, checks, checks_comm, checks_decode, checks_prefill, transports
from tpmodel.planner.evidence.claims import findings
from tpmodel.formulas import collectives
from tpmodel.planner.plan import wire

DATA = resources.files("tpmodel.planner.evidence") / "data"
MEASURED = {"comm": ("time_s", "algbw_bytes_per_s"), "decode": ("tokens_per_s",), "prefill": ("tokens_per_s", "ttft_s")}
BOOKS = ("use", "group", "note", "source")
# rows inside, of, bound on the median error
GATE = {"comm": (141, 150, 0.19), "decode": (60, 62, 0.07), "prefill": (57, 59, 0.11)}
TABLES = {kind: list(csv.DictReader((DATA / f"{kind}_cases.csv").read_text().splitlines())) for kind in GATE}
KNOWN = {line["id"]: line for lines in TABLES.values() for line in lines}
MISSES = set("""C06/16384 C06/32768 C11a/65536 C11a/524288 C12a/32768 C12a/65536 C12a/131072 C12a/262144
                C30/2048 D215 D52 F207 OF01""".split())
# bytes of Qwen's 48 states with their convolutions, read and written
STATES_READ = 2 * 48 * (48 * 128 * 128 * 4 + 3 * (2 * 16 + 48) * 128 * 2)
# llama.cpp on an RTX 5060 Ti: a step, and cycles of each of 64 layers
LLAMA_S = [gap + 64 * cycles / 2.572e9 for gap, cycles in ((1.6e-3, 180_000), (0.5e-3, 130_000), (0.1e-3, 100_000))]
COMM = {"gpu": "RTX 5060 Ti", "ranks": "2", "link": "shm", "collective": "all_reduce", "message_bytes": "10240"}
PLACE = {"model": "Qwen3.8-27B", "gpu": "RTX 5060 Ti", "gpus": "2", "tp": "2", "pp": "1",
         "link": "shm", "engine": "vllm"}
DECODE = PLACE | {"weight_read_gb": "15.7", "spec_tokens": "0", "kv_dtype": "fp8", "kv_depth_tokens": "4096"}
PREFILL = PLACE | {"quant": "NVFP4", "prompt_tokens": "8192"}
ROWS = {"comm": COMM | {"time_s": "2e-5"}, "decode": DECODE | {"tokens_per_s": "35"},
        "prefill": PREFILL | {"tokens_per_s": "900"}}
CARDS = st.sampled_from(["RTX 5060 Ti", "RTX 3090", "RTX 4090", "RTX 5090", "V100 SXM2 16GB", "H200", "MI300X"])
CACHES = ("q4_0", "q8_0", "q8", "int8", "fp8", "bf16", "fp16", "auto", "q8_0/q4_0")
LINKS = st.sampled_from(["none", "pcie-unknown", "shm", "nvlink", *transports.SLOTS])
SLOTS = st.sampled_from([{}] + [{"pcie_gen": str(g), "lanes": str(n)} for g in TRANSFERS for n in LANES])
CELL = (st.text(max_size=9) | st.floats().map(str) | st.integers().map(str)
        | st.sampled_from(["2", "8", "p2p", "staged", "RTX 5080", "gpt-oss-20b", "yes"]))
NCCL = [key for key, one in links().items() if "allreduce_latency_s" in one.numbers and wire.protocol(one) == "ring"]
EACH = pytest.mark.parametrize("kind", GATE)
near = lambda *ends: pytest.approx(ends, rel=1e-3)
run = lambda *words: subprocess.run([sys.executable, "-m", "tpmodel", "check", *map(str, words)],
                                    capture_output=True, text=True)


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8", errors="replace") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return path


def predicted(kind, lines):
    module = import_module(f"tpmodel.planner.evidence.checks_{kind}")
    found = module.rows(list(lines[0]), [checks.Cells(line) for line in lines])
    return [(r.id, r.quantity, r.low, r.predicted, r.high) for r in found]


def one(module, base, **change):
    """(low, middle, high) of one setting."""
    return module.predict(checks.Cells(base | {name: str(value) for name, value in change.items()}))[0]


@EACH
def test_as_many_gate_rows_lie_inside_as_are_known_to(kind):
    rows, summary = checks.check(kind, DATA / f"{kind}_cases.csv")
    inside, gate, median = GATE[kind]
    assert summary["gate"] == gate and summary["ok"] >= inside and summary["skipped"] == 0
    letter, missed = kind[0].upper().replace("P", "F"), {r.id for r in rows if r.use == "gate" and r.status == "miss"}
    assert missed == {name for name in MISSES if name.lstrip("O")[0] == letter}
    assert summary["median_abs_error_frac"] < median
    assert all(r.note if r.predicted is None else r.low <= r.predicted <= r.high for r in rows)


@EACH
def test_a_prediction_reads_nothing_measured(kind):
    lines, honest = TABLES[kind], predicted(kind, TABLES[kind])
    for column in MEASURED[kind] + BOOKS:
        other = [line | {column: line[column] and "1"} for line in lines]
        assert column in lines[0] and predicted(kind, other) == honest, column
    bare = [{name: cell for name, cell in line.items() if name not in MEASURED[kind] + BOOKS} for line in lines]
    assert predicted(kind, bare) == [row for row in honest if row[1] != "ttft_s"], "without those columns, too"


def test_all_reduces_by_hand():
    """In us: start, and bytes over GB/s in thousands; the catalog's low, value, high of each link."""
    found = lambda name: tuple(1e6 * t for t in one(checks_comm, KNOWN[name]))
    # shm, host and slot not said, late start
    assert found("C01/131072") == near(8.2 + 2 * 131.072 / 21.1, 33 + 131.072 / 3.9, 60 + 131.072 / 1.4)
    # early start, half the bandwidth
    assert found("C01/8192") == near(8.2 + 2 * 8.192 / 21.1, 12 + 2 * 8.192 / 3.9, 34 + 2 * 8.192 / 1.4)
    # 4 GPUs: 2 hops there and back, 1.5 x the bytes
    assert found("C13a/8192") == near(4 + 2 * 12.288 / 50, 8.7 + 4 + 2 * 12.288 / 43, 15 + 4 + 2 * 12.288 / 33)
    # one-shot to 3 others; PCIe 3.0 is a quarter of 5.0
    assert found("C19b/4096") == near(3 + 3 * 4.096 / 12.5, 5 + 3 * 4.096 / 9.5, 7.6 + 3 * 4.096 / 6.25)
    # mailbox: 3.7, as measured
    assert found("C15a/10240") == near(2.3 + 10.24 / 12, 2.8 + 10.24 / 11.4, 9 + 10.24 / 10.4)
    reduced = one(checks_comm, COMM, message_bytes=10240)
    assert one(checks_comm, COMM, collective="all_gather", message_bytes=20480) == reduced


def test_a_decode_row_by_hand():
    """D30: 27.2 GB on four RTX 5060 Ti, 131072 cached tokens in 16 bits: 16 layers, one head of 256 a card, K and V;
    the states."""
    cache = (2 * 16 * 256 * 2 * 131072 + STATES_READ / 4) / 448e9
    line = 16e9 * 8 * 128 / 130 / 8  # PCIe 4.0 x8: copies half as fast as in 5.0; four cards swap in pairs, twice
    calls = [128 * 2 * (start + 2 * 10240 / rate) for start, rate in ((81e-6, 4.15e9), (17e-6, 6e9))]
    calls.append(128 * (0.58 * 8.2e-6 + 2 * 1.5 * 10240 / (0.68 * line)))  # or have NCCL; in a graph it starts sooner
    ends = zip((0.78, 0.88, 0.95), calls, LLAMA_S)
    assert one(checks_decode, KNOWN["D30"]) == near(*(
        1 / ((27.2 / 4 / 448 + cache) / frac + call + gap) for frac, call, gap in ends))


def test_prompts_by_hand():
    """F29: 16384 tokens, 32 passes, four RTX 5060 Ti; 24.35 B parameters, 16 layers of 24 x 256, 128 sums a pass."""
    linear, attention = 2 * 24_353_193_472 * 16384 / 4, 4 * 16 * 24 * 256 * 16384 * 8192 / 4
    line, message = 16e9 * 8 * 128 / 130 / 8, 512 * 5120 * 2
    rates, sent = (44.4e12, 47.4e12, 53.5e12), [2 * (start + 2 * message / rate) for start, rate in (
        (81e-6, 4.15e9), (17e-6, 6e9))]  # swapped in pairs, in 32 bits
    sent.append(20e-6 + 1.5 * message / (0.68 * line))
    # products in INT8, four times as fast; the share of each end is that of the middle
    work = [(linear / (part * 4 * rate), attention / (frac * rate))
            for part, frac, rate in zip((0.17, 0.22, 0.3), (0.4, 0.6, 0.9), rates)]
    share, busy = work[1][0] / sum(work[1]), [sum(both) for both in work]
    parts = [[share * s for s in busy], [(1 - share) * s for s in busy], [32 * 128 * s for s in sent],
             [32 * s for s in LLAMA_S]]
    middle = sum(part[1] for part in parts)
    wide = [2 / 3**0.5 * sum((part[end] - part[1]) ** 2 for part in parts) ** 0.5 for end in (0, 2)]
    assert one(checks_prefill, KNOWN["F29"]) == near(*(
        16384 / seconds for seconds in (middle + wide[0], middle, middle - wide[1])))
    single = one(checks_prefill, PREFILL, model="Qwen3.6-27B", gpus=1, tp=1, link="none", prompt_tokens=1)
    # vLLM of no version: 1.5 ms a step; 75,000 cycles a layer, 37,000 more a state
    waited = (17_607_752_704 + STATES_READ) / 0.83 / 448e9 + 1.5e-3 + (64 * 75_000 + 48 * 37_000) / 2.572e9
    assert single[1] == pytest.approx(1 / waited, rel=1e-4), "one token waits for all weights and states"


def test_the_rows_of_article_2_are_its_claims():
    known = {f.id: (f.low, f.computed, f.high) for f in findings()}
    names = {("", "", ""): "tp", ("17,17", "", ""): "pp1717", ("17,17", "5060 Ti", ""): "pp1717r",
             ("20,14", "", ""): "pp2014", ("", "", "4"): "off"}
    lines = [line for line in TABLES["prefill"] if line["model"] == checks_prefill.EMBEDDER]
    for line in lines:
        name = names[line["partition"], line["first_card"], line["offload_gib"]]
        name += line["gpu"].split()[1] if line["gpus"] == "1" else ""
        claim = known[f"a2.{name}_{line['prompt_tokens']}"]
        assert one(checks_prefill, line) == pytest.approx(claim, rel=1e-12), line["id"]
    assert len(lines) == 24


@given(LINKS, SLOTS, CARDS, st.integers(2, 64), st.sampled_from(["all_reduce", *checks_comm.HALVES]),
       st.floats(0, 2**40), st.floats(0, 2**40))
@settings(max_examples=150, deadline=None)
def test_laws_of_collectives(way, slot, card, ranks, collective, short, more):
    base = COMM | slot | {"link": way, "gpu": card, "ranks": str(ranks), "collective": collective}
    times = one(checks_comm, base, message_bytes=short)
    assert 0 < times[0] <= times[1] <= times[2]
    assert all(a <= b for a, b in zip(times, one(checks_comm, base, message_bytes=short + more)))
    fastest = lambda: one(checks_comm, base, message_bytes=short, pcie_gen=5, lanes=16)
    assert not slot or all(fast <= slow for fast, slow in zip(fastest(), times))


@given(st.sampled_from(NCCL), st.integers(1, 500), st.integers(0, 500), st.integers(0, 2))
def test_more_gpus_never_make_the_latency_of_nccl_smaller(key, ranks, more, end):
    small, large = (wire.latency(link(key), n, end) for n in (ranks, ranks + more))
    assert 0 < small <= large
    assert ranks == 1 or end == 2 or large - small == pytest.approx(2 * more * link(key).link_latency_s, abs=1e-12)


@given(LINKS, SLOTS, CARDS, st.sampled_from([(1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (2, 2)]), st.integers(0, 4),
       st.integers(0, 262144), st.integers(0, 262144), st.sampled_from(CACHES),
       st.floats(0.1, 1000), st.sampled_from(["vllm", "sglang", "ninfer", "x"]))
@settings(max_examples=150, deadline=None)
def test_laws_of_decode(way, slot, card, split, drafts, cached, more, kind, read, engine):
    tp, pp = split
    base = DECODE | slot | {"link": way, "gpu": card, "tp": str(tp), "pp": str(pp), "gpus": str(tp * pp),
                            "spec_tokens": str(drafts), "kv_dtype": kind, "weight_read_gb": str(read), "engine": engine}
    rates = one(checks_decode, base, kv_depth_tokens=cached)
    assert 0 < rates[0] <= rates[1] <= rates[2]
    assert all(longer <= rate for longer, rate in zip(one(checks_decode, base, kv_depth_tokens=cached + more), rates))
    heavy = one(checks_decode, base, kv_depth_tokens=cached, weight_read_gb=2 * read)
    assert all(heavier < rate for heavier, rate in zip(heavy, rates))
    fastest = lambda: one(checks_decode, base, kv_depth_tokens=cached, pcie_gen=5, lanes=16)
    assert not slot or all(fast >= rate for fast, rate in zip(fastest(), rates))


@given(LINKS, SLOTS, st.sampled_from(list(gpus())),
       st.sampled_from(["NVFP4 W4A4", "NVFP4", "FP8", "AWQ int4", "Q8_0", "BF16"]),
       st.sampled_from(["Qwen3.8-27B", "qwen3-8b", "gpt-oss-20b", "mixtral-8x7b"]), st.sampled_from([1, 2, 4, 8]),
       st.integers(1, 300_000), st.sampled_from(["", "512", "8192"]))
@settings(max_examples=150, deadline=None)
def test_laws_of_prompts(way, slot, card, quant, model, ranks, tokens, chunk):
    base = PREFILL | slot | {"link": way, "gpu": card, "quant": quant, "model": model, "tp": str(ranks),
                             "gpus": str(ranks), "chunk_tokens": chunk, "prompt_tokens": str(tokens)}
    rates = one(checks_prefill, base)
    lines = [base | {"id": "x", "tokens_per_s": "1", "ttft_s": "1"}]
    found = {name: ends for _, name, *ends in predicted("prefill", lines)}
    assert 0 < rates[0] <= rates[1] <= rates[2] and found["tokens_per_s"] == list(rates)
    assert found["ttft_s"] == [tokens / rate for rate in rates[::-1]]
    assert not slot or all(fast >= rate for fast, rate in zip(one(checks_prefill, base, pcie_gen=5, lanes=16), rates))


def test_what_a_card_tells_of_its_link_and_formats_and_a_kernel_that_sends_to_all():
    keys = lambda name, *cards: [transports.of(checks.Cells({"link": name, "gpu": card})).key for card in cards]
    assert keys("nvlink", "RTX 3090", "H200") == ["nvlink-bridge", "nvlink-h200"]
    assert keys("shm", "RTX 3090", "H200") == ["shm", "shm-h200"]
    assert keys("p2p", "RTX 5060 Ti", "RTX 3060", "V100") == ["p2p-pcie5-x8", "p2p-pcie4-x16", "p2p-pcie3-x16"]
    nvfp4, awq = (one(checks_prefill, PREFILL, gpu="RTX 4090", quant=quant) for quant in ("NVFP4", "AWQ int4"))
    assert nvfp4 == awq, "both meet Marlin"
    far, short = (one(checks_decode, DECODE, link=way, gpus=8, tp=8) for way in ("p2p-oneshot", "p2p"))
    # of the slot of an RTX 5060 Ti, x8
    calls = 128 * (5e-6 + 7 * 10240 / 19e9 - (0.74 * 8.7e-6 + 12e-6 + 2 * 1.75 * 10240 / 21.5e9))
    assert 1 / far[1] - 1 / short[1] == pytest.approx(calls, rel=1e-6)


@given(st.floats(0, 1e12), st.integers(2, 100), st.floats(1e6, 1e12), st.floats(1e-7, 1e-3), st.floats(1e-7, 1e-3))
def test_limits_of_two_protocols(message, ranks, rate, early, late):
    both = collectives.protocol_allreduce_s(message, ranks, rate, early, late)
    line = lambda start, rate, size=message: collectives.allreduce_s(size, ranks, rate, start)
    assert collectives.protocol_allreduce_s(message, ranks, rate, early, early) == pytest.approx(line(early, rate))
    assert both == pytest.approx(min(line(early, rate / 2), line(max(early, late), rate)))
    assert collectives.protocol_allreduce_s(0, ranks, rate, early, late) == early
    huge = 1e6 * rate * max(early, late)
    protocol, oneshot = collectives.protocol_allreduce_s, collectives.oneshot_allreduce_s
    assert protocol(huge, ranks, rate, early, late) == pytest.approx(line(late, rate, huge), rel=1e-5)
    assert protocol(message, 1, rate, early, late) == oneshot(message, 1, rate, early) == 0
    assert oneshot(message, 2, rate, early) == pytest.approx(collectives.allreduce_s(message, 2, rate, early))
    assert protocol(message, ranks, 2 * rate, early, late) <= both


@pytest.mark.parametrize("series", ("nvlink", "shm"))
def test_our_run_with_one_protocol_forced(series):
    """Independent of the catalog: NCCL chooses about the quicker of LL and Simple, and LL carries half or less."""
    chosen, low, bulk = (dict(allreduces.ours(series, protocol)) for protocol in ("default", "LL", "Simple"))
    assert len(chosen) == 18 and all(chosen[size] < 1.35 * min(low[size], bulk[size]) for size in chosen)
    assert low[8] < bulk[8] and low[2**28] > bulk[2**28]
    assert 2 < allreduces.carried_bytes_per_s(series, "Simple") / allreduces.carried_bytes_per_s(series, "LL") < 4


@pytest.mark.parametrize("kind, gone", [
    ("comm", "ranks"), ("decode", "weight_read_gb"), ("prefill", "quant"), ("decode", None), ("comm", None)])
def test_a_table_that_is_none_is_one_line_and_exit_2(tmp_path, kind, gone):
    left = [{name: cell for name, cell in line.items() if name != gone} for line in TABLES[kind]]
    path = write(tmp_path / "t.csv", left)
    if gone is None:
        path.write_text("")
    done = run(kind, path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert (f"no column {gone}" if gone else "t.csv holds no rows") in done.stderr


@pytest.mark.parametrize("kind, change, reason", [
    ("decode", {"gpu": "RTX 9090"}, "gpu = 'RTX 9090' is not in gpus.toml"),
    ("prefill", {"gpu": "H300"}, "gpu = 'H300' is not in gpus.toml"),
    ("decode", {"link": "string"}, "link = 'string' is not accepted"),
    ("comm", {"link": "network"}, "link = 'network' is not accepted"),
    ("comm", {"message_bytes": "-1"}, "message_bytes = '-1' is not accepted"),
    ("comm", {"ranks": "two"}, "ranks = 'two' is not accepted"),
    ("comm", {"ranks": "1_0"}, "ranks = '1_0' is not accepted"), ("comm", {"ranks": "1"}, "from 2 to 1024"),
    ("comm", {"collective": "gossip"}, "'gossip'"),
    ("comm", {"link": "p2p", "pcie_gen": "9", "lanes": "16"}, "PCIe 9.0 x16 is not accepted"),
    ("comm", {"time_s": "soon"}, "time_s = 'soon'"),
    ("decode", {"weight_read_gb": "many"}, "weight_read_gb = 'many'"),
    ("decode", {"weight_read_gb": ""}, "weight_read_gb is empty, and quant = ''"),
    ("decode", {"tp": "4"}, "tp x pp = 4 is not accepted: it must be gpus = 2"),
    ("prefill", {"pp": "2"}, "tp x pp = 4"),
    ("decode", {"kv_dtype": "fp3"}, "kv_dtype = 'fp3'"), ("decode", {"model": "Mystery-1B"}, "model = 'Mystery-1B'"),
    ("decode", {"gpu": "RTX 5060 Ti + RTX 3090 + H200"}, "it must name one card, or all 2"),
    ("decode", {"cuda_graphs": "no"}, "cuda_graphs"),
    ("decode", {"spec_tokens": "17"}, "to 16"),
    ("decode", {"model": "qwen3-8b", "spec_tokens": "1"}, "no MTP layer"),
    ("prefill", {"prompt_tokens": "0"}, "prompt_tokens = '0'"),
    ("prefill", {"model": checks_prefill.EMBEDDER}, "gpu = 'RTX 5060 Ti' is not accepted"),
    ("prefill", {"ttft_s": "nan"}, "ttft_s = 'nan'")])
def test_a_bad_cell_skips_its_row_with_the_reason(tmp_path, kind, change, reason):
    path = write(tmp_path / "t.csv", [{"id": "bad", "use": "gate"} | ROWS[kind] | change])
    rows, summary = checks.check(kind, path)
    assert any(r.status == "skipped" and reason in r.note for r in rows)
    assert (summary["failed"] or "").startswith("nothing was checked") == all(r.status == "skipped" for r in rows)


@pytest.mark.thorough
@EACH
def test_a_check_that_checked_nothing_is_no_success(tmp_path, kind):
    row = lambda i, use, cells: {"id": str(i), "use": use} | ROWS[kind] | cells
    ask = lambda *lines: run(kind, write(tmp_path / "t.csv", [row(i, *line) for i, line in enumerate(lines)]))
    bad = {"link": "string"}
    done = ask(("gate", bad), ("report", {}))
    assert done.returncode == 1 and done.stderr == "" and "gate 1, ok 0, miss 0, skipped 1" in done.stdout
    nothing = "nothing was checked: not one counted line could be compared, the first because: link = 'string'"
    assert nothing in done.stdout.splitlines()[-1]
    done = ask(("", {MEASURED[kind][0]: ""}))
    assert done.returncode == 1, "what says nothing of its use counts"
    assert "no measured value" in done.stdout.splitlines()[-1]
    assert ask(("gate", {}), ("gate", bad)).returncode == 0, "one was compared"
    assert ask(("report", bad), ("article2", {})).returncode == 0, "every line says that it does not count"
    done = run(kind, DATA / f"{kind}_cases.csv")
    assert done.returncode == 1 and f"of {GATE[kind][1]} counted rows miss" in done.stdout.splitlines()[-1]


@given(st.sampled_from(list(GATE)), st.data())
@settings(max_examples=250, deadline=None)
def test_no_cell_breaks_the_command(tmp_path_factory, kind, data):
    line = data.draw(st.sampled_from(TABLES[kind]))
    line = line | data.draw(st.dictionaries(st.sampled_from(list(line)), CELL, max_size=4))
    plain = {k: v.replace("\r", "").replace("\0", "") for k, v in line.items()}
    path = write(tmp_path_factory.mktemp("fuzz") / "t.csv", [plain])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert cli.main(["check", kind, str(path), "--json"]) in (0, 1)
    assert all(r["status"] in ("ok", "miss") or r["note"] for r in json.loads(out.getvalue())["rows"])
