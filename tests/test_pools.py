"""Public starts: the pool is predicted from inputs alone, and a source that is left out is not read."""

import pytest

from tpmodel.book.pages.printed import loads_table, log_table, starts_table
from tpmodel.planner.engine import kernels, takes
from tpmodel.planner.engine.versions import Setting, version
from tpmodel.planner.evidence import loads, pools
from tpmodel.planner.evidence.rows import table
from tpmodel.planner.shapes.models import find_config


def moved(monkeypatch, change):
    lines = tuple(change(line) for line in table("pool_cases.csv"))
    monkeypatch.setattr(pools, "table", lambda file: lines)
    return {one.id: one for one in pools.starts.__wrapped__()}


def test_what_was_measured_is_not_read_to_predict(monkeypatch):
    before = {one.id: one for one in pools.starts()}
    after = moved(monkeypatch, lambda line: line | {"pool_gib": "1"})
    assert all((one.parts_gib, one.left_out_gib) == (after[one.id].parts_gib, after[one.id].left_out_gib)
               for one in before.values())


def test_a_left_out_source_says_nothing_of_its_own_rows(monkeypatch):
    before, own = {one.id: one for one in pools.starts()}, "yeasah/vllm-golite"
    wrong = {"beside_gib": "9", "graphs_gib": "9"}
    after = moved(monkeypatch, lambda line: line | (wrong if line["source"] == own else {}))
    for one in before.values():
        assert (after[one.id].left_out_gib == one.left_out_gib) == (one.source == own), one.id


def test_a_row_by_hand():
    """Qwen3-8B, 0.15: 0.9 x 47.37 less 15.27, less 256 x 151,936 words of 39 bytes and 0.22 GiB of buffers."""
    row = next(one for one in pools.starts() if one.id == "PO7")
    assert row.parts_gib == pytest.approx(0.9 * 47.37 - 15.27 - 256 * 151936 * 39 / 2**30 - 0.22)
    assert row.before_gib == pytest.approx(0.9 * 47.37 - 15.27 - 1.2)
    assert row.errors()[1] == pytest.approx(row.parts_gib / 25.94 - 1)


def test_weights_as_loaded_are_those_that_logs_print():
    """By hand: Qwen3-8B has 8.19e9 parameters of 2 byte, 15.26 GiB, and 15.27 was printed. Ours are 0.36 % off in the
    median; what no shape holds (rotary tables, scales, padded rows) makes most of them a little too small."""
    found = {(one.model, one.printed_gib): one for one in loads.loads()}
    assert found["qwen3-8b", 15.27].ours_gib == pytest.approx(8190735360 * 2 / 2**30, rel=1e-5)
    count, middle, worst = loads.summary()
    assert count >= 15 and middle < 0.005 and worst < 0.015
    assert all(one.note for one in loads.loads() if not one.counts), "a build that does not count says why"
    padded = found["gpt-oss-120b", 65.9651]
    assert abs(padded.error) < 0.002 and padded.ours_gib > 1.05 * find_config("gpt-oss-120b").weights_bytes / 2**30


def test_what_was_loaded_is_not_read_to_predict(monkeypatch):
    before = [one.ours_gib for one in loads.loads()]
    lines = [line | {"loaded_gib": "1"} for line in kernels.table("loads.csv")]
    monkeypatch.setattr(kernels, "table", lambda file: lines)
    assert [one.ours_gib for one in loads.loads()] == before


def test_experts_of_old_releases_take_two_buffers_that_come_and_go():
    """DeepSeek-R1 over 16 GPUs, 2,048 tokens of 8 experts: 7,168 x 2 of streams, 8 x (128 + 7,168) of buffers: with
    0.1 of compiling the 0.37 GiB that the log of pull/14447 prints as activations."""
    stage = lambda config: takes.Stage(config.order, True, True, 16)
    config = find_config("deepseek-v3")
    old, new = (takes.taken(config, Setting(version(text), ranks=16, sequences=8, batch_tokens=2048), stage(config))
                for text in ("0.7.4", "0.33"))
    assert old.view.forward_bytes == 2 * 2048 * (2 * 7168 + 8 * (128 + 7168)) and old.view.workspace_bytes == 0
    assert old.view.peak_bytes / 2**30 == pytest.approx(0.37, abs=0.01)
    assert new.view.workspace_bytes == 2 * 2048 * 8 * (7168 + 7168)
    assert old.view.buffers_bytes < new.view.buffers_bytes


def test_the_tables_of_the_chapter():
    log = repr(log_table("H08"))
    assert "GPU KV cache size: 302,921 tokens" in log and "Available KV cache memory: 4.99 GiB" in log
    assert len(starts_table().rows) == len(table("pool_cases.csv"))
    assert len(loads_table().rows) == len(kernels.table("loads.csv"))
