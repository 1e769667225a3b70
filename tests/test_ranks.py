"""The collectives of the simulated ranks: what arrives, and what each rank has sent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpmodel.ranks.group import Group
from tpmodel.ranks.weights import normal

property_test = settings(max_examples=50, deadline=None, derandomize=True)

POWERS = st.sampled_from([1, 2, 4, 8])
SEEDS = st.integers(0, 2**32 - 1)
SMALL = st.integers(1, 3)
BF16 = 2


def assert_close(got, want):
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 1e-10 * np.abs(want).max()


def all_reduce_wire(message_bytes, ranks):
    return (2 * (ranks - 1) / ranks * message_bytes,) * ranks


def half_ring_wire(message_bytes, ranks):
    return ((ranks - 1) / ranks * message_bytes,) * ranks


def ledger(group):
    return [(call.kind, call.payload_bytes) for call in group.calls]


@property_test
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 20), st.sampled_from([0.5, 1, 2, 4]), SEEDS)
def test_all_reduce_sums_on_every_rank_and_counts_each_chunk(ranks, tokens, width, element_bytes, seed):
    parts = [normal(tokens, width, seed=seed + rank) for rank in range(ranks)]
    before = [part.copy() for part in parts]
    group = Group(ranks, element_bytes)
    copies = group.all_reduce(parts, "sum")

    assert len(copies) == ranks
    assert_close(copies[0], np.sum(before, axis=0))
    assert all(np.array_equal(copies[0], copy) for copy in copies)
    assert all(np.array_equal(old, part) for old, part in zip(before, parts, strict=True))

    chunk = [c.size for c in np.array_split(np.arange(tokens * width), ranks)]
    skipped = [chunk[rank] + chunk[(rank + 1) % ranks] for rank in range(ranks)]
    message_bytes = tokens * width * element_bytes
    wire = group.wire_bytes("all-reduce", "sum")
    assert wire == tuple(0 if ranks == 1 else 2 * message_bytes - s * element_bytes for s in skipped)
    assert sum(wire) == 2 * (ranks - 1) * message_bytes
    if tokens * width % ranks == 0:
        assert wire == pytest.approx(all_reduce_wire(message_bytes, ranks), rel=1e-14)
    if ranks > 1:
        assert group.payload_bytes() == message_bytes
        assert [call.steps for call in group.calls] == [2 * (ranks - 1)]


@property_test
@given(st.integers(1, 9), st.lists(st.integers(0, 5), min_size=9, max_size=9), SEEDS)
def test_all_gather_joins_parts_of_any_width(ranks, widths, seed):
    parts = [normal(2, widths[rank], seed=seed + rank) for rank in range(ranks)]
    group = Group(ranks, BF16)
    copies = group.all_gather(parts, "full")

    full = np.concatenate(parts, axis=1)
    assert len(copies) == ranks and all(np.array_equal(full, copy) for copy in copies)
    wire = group.wire_bytes("all-gather")
    assert sum(wire) == (ranks - 1) * full.size * BF16
    if ranks > 1:
        assert group.payload_bytes() == full.size * BF16
        assert [call.steps for call in group.calls] == [ranks - 1]
        # a rank passes on all parts but the one its right neighbour began with
        right = [parts[(rank + 1) % ranks].size for rank in range(ranks)]
        assert wire == tuple((full.size - size) * BF16 for size in right)


@property_test
@given(POWERS, SMALL, SMALL, st.integers(0, 1), SEEDS)
def test_reduce_scatter_then_all_gather_is_all_reduce(ranks, a, b, axis, seed):
    shape = (a * ranks, b * ranks)
    parts = [normal(*shape, seed=seed + rank) for rank in range(ranks)]
    group = Group(ranks, BF16)
    slices = group.reduce_scatter(parts, "sum", axis)
    total = np.sum(parts, axis=0)
    for got, want in zip(slices, np.split(total, ranks, axis), strict=True):
        assert got.shape == want.shape and np.allclose(got, want, rtol=1e-10, atol=1e-12)
    whole = group.all_gather(slices, "sum", axis)
    assert_close(whole[-1], total)

    message_bytes = a * b * ranks**2 * BF16
    assert group.wire_bytes("reduce-scatter") == half_ring_wire(message_bytes, ranks)
    assert group.wire_bytes("all-gather") == half_ring_wire(message_bytes, ranks)
    assert group.wire_bytes() == all_reduce_wire(message_bytes, ranks)
    if ranks > 1:
        assert ledger(group) == [("reduce-scatter", message_bytes), ("all-gather", message_bytes)]


def test_reduce_scatter_takes_uneven_slices():
    group = Group(3, BF16)
    slices = group.reduce_scatter([np.arange(4.0), np.ones(4), np.ones(4)])
    assert [s.tolist() for s in slices] == [[2, 3], [4], [5]]
    assert group.wire_bytes() == (4, 6, 6)  # every rank sends the chunks that are not its own


def test_send_moves_the_whole_tensor_once_from_its_source():
    group, stage_output = Group(4, BF16), normal(3, 5, seed=0)
    arrived = group.send(stage_output, source=2, target=3, label="stage 2 to 3")
    assert np.array_equal(arrived, stage_output) and arrived is not stage_output
    assert group.wire_bytes("send", "stage 2 to 3") == (0, 0, 30, 0)
    assert group.payload_bytes() == 30
    assert group.payload_bytes("send", "stage 1 to 2") == group.payload_bytes("all-reduce") == 0


def test_one_rank_moves_nothing():
    group, x = Group(1), normal(4, 6, seed=0)
    for result in (group.all_reduce([x]), group.all_gather([x]), group.reduce_scatter([x])):
        assert len(result) == 1 and np.array_equal(result[0], x)
    assert group.calls == [] and group.wire_bytes() == (0,) and group.payload_bytes() == 0


# Bad input: one clear line.


def assert_refused(message, call):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


X = normal(2, 6, seed=0)
REFUSED = [
    ("ranks=0: accepted is a whole number", lambda: Group(0)),
    ("ranks=2.0: accepted is a whole number", lambda: Group(2.0)),
    ("element_bytes=0: accepted", lambda: Group(2, 0)),
    ("element_bytes='bf16': accepted", lambda: Group(2, "bf16")),
    ("all_gather: 1 parts; accepted is one per rank, 2", lambda: Group(2).all_gather([X])),
    ("all_reduce: parts of shapes .* accepted is one shape", lambda: Group(2).all_reduce([X, X[:1]])),
    ("reduce_scatter: parts of shapes .* accepted is one shape", lambda: Group(2).reduce_scatter([X, X[:1]])),
    ("source=2: accepted is a rank from 0 to 1", lambda: Group(2).send(X, 2, 0)),
    ("target=1: accepted is a rank other than source=1", lambda: Group(2).send(X, 1, 1)),
]


@pytest.mark.parametrize(("message", "call"), REFUSED, ids=[message for message, _ in REFUSED])
def test_a_group_refuses_bad_input(message, call):
    assert_refused(message, call)
