"""Public starts: the pool is predicted from inputs alone, and a source that is left out is not read."""

import pytest

from tpmodel.book.pages.printed import log_table, starts_table
from tpmodel.planner.evidence import pools
from tpmodel.planner.evidence.rows import table


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


def test_the_tables_of_the_chapter():
    log = repr(log_table("H08"))
    assert "GPU KV cache size: 302,921 tokens" in log and "Available KV cache memory: 4.99 GiB" in log
    assert len(starts_table().rows) == len(table("pool_cases.csv"))
