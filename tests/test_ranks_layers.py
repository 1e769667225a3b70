"""The split layers against dense oracles written here on their own; the counted bytes against the formulas."""

from dataclasses import replace
from math import erf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ranks import (
    BF16, POWERS, SEEDS, SMALL, all_reduce_wire, assert_close, assert_refused, half_ring_wire, ledger, property_test,
)

from tpmodel.ranks.group import Group, columns
from tpmodel.ranks.linear import (
    column_parallel, gelu, row_parallel, silu, swiglu, swiglu_naive_a, swiglu_naive_b, swiglu_naive_b_scatter,
)
from tpmodel.ranks.mixers import gated_delta_net, gqa_attention, kv_cache, split_delta_net, transformer_block
from tpmodel.ranks.weights import normal, random_attention, random_block, random_delta_net, random_swiglu

TOKENS = st.integers(1, 5)


# Dense oracles: one machine, no ranks, no call into tpmodel.


def dense_silu(x):
    return x / (1 + np.exp(-x))


def dense_norm(x, weight):
    return np.array([weight * row / np.sqrt(row @ row / len(row) + 1e-6) for row in x])


def dense_swiglu(x, w):
    return np.einsum("ti,ih->th", dense_silu(x @ w.gate) * (x @ w.up), w.down)


def dense_attention(x, w):
    """One query head and one token at a time."""
    tokens, width = len(x), w.query.shape[1] // w.heads
    query, key, value = x @ w.query, x @ w.key, x @ w.value
    mixed = np.zeros((tokens, w.heads * width))
    for head in range(w.heads):
        kv = head * w.kv_heads // w.heads
        here, there = slice(head * width, (head + 1) * width), slice(kv * width, (kv + 1) * width)
        for t in range(tokens):
            weight = np.exp(key[: t + 1, there] @ query[t, here] / np.sqrt(width))
            mixed[t, here] = weight / weight.sum() @ value[: t + 1, there]
    return mixed @ w.out


def dense_conv(x, taps):
    return np.stack([np.convolve(x[:, c], taps[::-1, c])[: len(x)] for c in range(x.shape[1])], axis=1)


def dense_delta_net(x, w):
    """S_t = S_{t-1} a_t (I - b_t k_t k_t^T) + b_t v_t k_t^T, the form of the paper, S of (value, key)."""
    key_width, value_width = w.key.shape[1] // w.key_heads, w.value.shape[1] // w.value_heads
    query = dense_silu(dense_conv(x @ w.query, w.conv_query))
    key = dense_silu(dense_conv(x @ w.key, w.conv_key))
    value = dense_silu(dense_conv(x @ w.value, w.conv_value))
    beta = 1 / (1 + np.exp(-x @ w.beta))
    keep = np.exp(-np.exp(w.decay_log) * np.log1p(np.exp(x @ w.decay + w.decay_bias)))
    mixed = []
    for head in range(w.value_heads):
        shared = head // (w.value_heads // w.key_heads)
        ks = slice(shared * key_width, (shared + 1) * key_width)
        vs = slice(head * value_width, (head + 1) * value_width)
        state, rows = np.zeros((value_width, key_width)), []
        for t in range(len(x)):
            q, k = (r[t, ks] / np.sqrt(r[t, ks] @ r[t, ks] + 1e-6) for r in (query, key))
            forget = keep[t, head] * (np.eye(key_width) - beta[t, head] * np.outer(k, k))
            state = state @ forget + beta[t, head] * np.outer(value[t, vs], k)
            rows.append(state @ q / np.sqrt(key_width))
        mixed.append(dense_norm(np.array(rows), w.norm) * dense_silu(x @ w.gate[:, vs]))
    return np.concatenate(mixed, axis=1) @ w.out


# Linear layers.


@property_test
@given(POWERS, TOKENS, SMALL, SMALL, SEEDS)
def test_column_and_row_parallel_linear(ranks, tokens, a, b, seed):
    width_in, width_out = a * ranks, b * ranks
    x, weight = normal(tokens, width_in, seed=seed), normal(width_in, width_out, seed=seed)
    bias = normal(width_out, seed=seed)
    want = x @ weight + bias

    group = Group(ranks, BF16)
    pieces = column_parallel(x, weight, group, bias)
    assert {piece.shape for piece in pieces} == {(tokens, b)}
    assert_close(np.concatenate(pieces, axis=1), want)
    assert group.calls == []

    assert_close(row_parallel(columns(x, ranks), weight, group, bias, "row"), want)
    assert group.wire_bytes("all-reduce", "row") == all_reduce_wire(tokens * width_out * BF16, ranks)
    assert len(group.calls) == (ranks > 1)


class Silent(Group):
    """A group whose ranks never talk: each keeps what it had."""

    def all_reduce(self, parts, label=""):
        return parts


SMALL_LAYERS = [
    (swiglu, random_swiglu(6, 8, seed=3)),
    (gqa_attention, random_attention(6, 4, 2, 3, seed=3)),
    (gated_delta_net, random_delta_net(6, 2, 4, 3, 2, 4, seed=3)),
]


@pytest.mark.parametrize(("layer", "weights"), SMALL_LAYERS, ids=lambda value: getattr(value, "__name__", ""))
def test_without_the_all_reduce_the_ranks_disagree(layer, weights):
    with pytest.raises(RuntimeError, match="ranks disagree"):
        layer(normal(2, 6, seed=4), weights, Silent(2))


# Feed-forward, four ways.


@property_test
@given(POWERS, TOKENS, SMALL, SMALL, SEEDS)
def test_swiglu_four_ways(ranks, tokens, a, b, seed):
    hidden, intermediate = a * ranks, b * ranks
    x, weights = normal(tokens, hidden, seed=seed) * 3, random_swiglu(hidden, intermediate, seed)
    wide, narrow = tokens * intermediate * BF16, tokens * hidden * BF16
    ways = [
        (swiglu, [("all-reduce", narrow)], all_reduce_wire(narrow, ranks)),
        (swiglu_naive_a, [("all-gather", wide), ("all-gather", narrow)], half_ring_wire(wide + narrow, ranks)),
        (swiglu_naive_b, [("all-reduce", 2 * wide), ("all-reduce", narrow)], all_reduce_wire(2 * wide + narrow, ranks)),
        (swiglu_naive_b_scatter, [("reduce-scatter", 2 * wide), ("all-reduce", narrow)],
         half_ring_wire(2 * wide + 2 * narrow, ranks)),
    ]
    for way, moved, wire in ways:
        group = Group(ranks, BF16)
        assert_close(way(x, weights, group), dense_swiglu(x, weights))
        assert ledger(group) == moved * (ranks > 1)
        assert group.wire_bytes() == wire


def test_megatron_needs_no_cut_of_hidden():
    x, weights, group = normal(3, 7, seed=5), random_swiglu(7, 8, seed=5), Group(8, BF16)
    assert_close(swiglu(x, weights, group), dense_swiglu(x, weights))
    assert sum(group.wire_bytes()) == 2 * 7 * (3 * 7 * BF16)  # 21 elements in 8 uneven chunks


def test_qwen_27b_feed_forward_on_two_ranks():
    """hidden 5120, intermediate 17408, one token: run at 1/128 size, each element standing for 128."""
    x, weights = normal(1, 5120 // 128, seed=6), random_swiglu(5120 // 128, 17408 // 128, seed=6)
    moved = {}
    for layer in (swiglu, swiglu_naive_a, swiglu_naive_b, swiglu_naive_b_scatter):
        group = Group(2, element_bytes=128 * BF16)
        layer(x, weights, group)
        moved[layer.__name__] = (group.payload_bytes(), group.wire_bytes())
    assert moved == {
        "swiglu": (10240, (10240, 10240)),
        "swiglu_naive_a": (34816 + 10240, (17408 + 5120,) * 2),
        "swiglu_naive_b": (69632 + 10240, (79872, 79872)),
        "swiglu_naive_b_scatter": (69632 + 10240, (34816 + 10240,) * 2),
    }


# A nonlinearity does not pass through a sum.


def test_gelu_of_a_sum_is_not_the_sum_of_gelus():
    """For b = -a the gap has a closed form: gelu(a) + gelu(-a) = a erf(a / sqrt 2), while gelu(0) = 0."""
    a = np.linspace(-3, 3, 601)
    gap = gelu(a) + gelu(-a) - gelu(a + -a)
    assert gap[400] == pytest.approx(0.6826894921, abs=1e-3)  # a = 1: the one-sigma probability
    assert gap.max() > 2.9 and gap[300] == 0
    assert silu(1.0) + silu(-1.0) == pytest.approx(np.tanh(0.5), rel=1e-12)  # not silu(0) = 0


@property_test
@given(st.floats(0.5, 6), st.floats(-6, -0.5))
def test_gelu_misses_by_about_the_smaller_of_two_opposite_terms(a, b):
    missed = gelu(a) + gelu(b) - gelu(a + b)
    assert 0.38 < missed / min(a, -b) < 1.08


def test_gelu_is_within_a_thousandth_of_the_exact_one():
    exact = [x / 2 * (1 + erf(x / sqrt(2))) for x in np.linspace(-5, 5, 101)]
    assert np.abs(gelu(np.linspace(-5, 5, 101)) - exact).max() < 1e-3


def test_gelu_does_add_up_far_out_on_one_side():
    """Why the gap must be shown with mixed signs: above 4 gelu(x) is x, below -4 it is 0."""
    for a in (4.0, -4.0):
        assert abs(gelu(a + a) - 2 * gelu(a)) < 1e-3


# Attention.


@st.composite
def attention_shapes(draw):
    """heads a multiple of ranks and of kv_heads; kv_heads a multiple or a divisor of ranks."""
    ranks, kv_heads = draw(POWERS), draw(st.sampled_from([1, 2, 4, 8]))
    return ranks, max(ranks, kv_heads) * draw(st.integers(1, 2)), kv_heads, draw(SMALL), draw(TOKENS)


@property_test
@given(attention_shapes(), st.integers(1, 9), SEEDS)
def test_gqa_attention(shape, hidden, seed):
    ranks, heads, kv_heads, width, tokens = shape
    x, weights = normal(tokens, hidden, seed=seed) * 3, random_attention(hidden, heads, kv_heads, width, seed)
    group = Group(ranks, BF16)
    assert_close(gqa_attention(x, weights, group), dense_attention(x, weights))
    assert sum(group.wire_bytes()) == 2 * (ranks - 1) * tokens * hidden * BF16
    assert ledger(group) == [("all-reduce", tokens * hidden * BF16)] * (ranks > 1)


@pytest.mark.parametrize(("ranks", "heads_kept"), [(1, 4), (2, 2), (4, 1), (8, 1), (16, 1)])
def test_kv_bytes_per_rank_stop_falling_at_one_head(ranks, heads_kept):
    tokens, kv_heads, width = 5, 4, 3
    x, weights = normal(tokens, 6, seed=9), random_attention(6, 16, kv_heads, width, seed=9)
    group = Group(ranks, BF16)
    cache = kv_cache(x, weights, group)
    kept_bytes = {(key.size + value.size) * BF16 for key, value in cache}
    assert kept_bytes == {2 * heads_kept * width * tokens * BF16}
    # all heads are there, whole copies of each, in the order the query heads need them
    every_key = np.concatenate([key for key, _ in cache])
    copies = max(1, ranks // kv_heads)
    assert_close(every_key, np.repeat((x @ weights.key).reshape(tokens, kv_heads, width).swapaxes(0, 1), copies, 0))
    assert group.calls == []
    assert_close(gqa_attention(x, weights, group), dense_attention(x, weights))


# Gated DeltaNet.


@property_test
@given(POWERS, SMALL, SMALL, st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), TOKENS, SEEDS)
def test_gated_delta_net(ranks, heads, repeats, key_width, value_width, taps, tokens, seed):
    hidden, key_heads = 5, heads * ranks
    weights = random_delta_net(hidden, key_heads, key_heads * repeats, key_width, value_width, taps, seed)
    x, group = normal(tokens, hidden, seed=seed) * 3, Group(ranks, BF16)
    assert_close(gated_delta_net(x, weights, group), dense_delta_net(x, weights))
    assert sum(group.wire_bytes()) == 2 * (ranks - 1) * tokens * hidden * BF16
    assert ledger(group) == [("all-reduce", tokens * hidden * BF16)] * (ranks > 1)


def test_each_rank_holds_its_share_of_the_delta_net_weights():
    weights = random_delta_net(6, 4, 8, 3, 2, 4, seed=10)
    for shard in split_delta_net(weights, 4):
        assert (shard.key_heads, shard.value_heads) == (1, 2)
        assert shard.query.shape == (6, 3) and shard.conv_value.shape == (4, 4) and shard.out.shape == (4, 6)
        assert np.array_equal(shard.norm, weights.norm)


# One block.


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("mixer", ["attention", "delta net"])
def test_a_block_is_two_all_reduces(ranks, mixer):
    tokens, hidden = 3, 16
    if mixer == "attention":
        weights, dense_mixer = random_attention(hidden, 8, 2, 4, seed=14), dense_attention
    else:
        weights, dense_mixer = random_delta_net(hidden, 8, 16, 3, 2, 4, seed=14), dense_delta_net
    block = random_block(weights, hidden, 32, seed=11)
    x, group = normal(tokens, hidden, seed=15) * 3, Group(ranks, BF16)
    got = transformer_block(x, block, group)

    middle = x + dense_mixer(dense_norm(x, block.mixer_norm), weights)
    assert_close(got, middle + dense_swiglu(dense_norm(middle, block.ffn_norm), block.ffn))
    message_bytes = tokens * hidden * BF16
    assert ledger(group) == [("all-reduce", message_bytes)] * (2 if ranks > 1 else 0)
    assert group.wire_bytes() == all_reduce_wire(2 * message_bytes, ranks)


def test_two_pipeline_stages_are_one_send():
    """Two blocks on two ranks, each whole: the same output, and tokens x hidden moved once."""
    blocks = [random_block(random_attention(6, 4, 2, 3, seed), 6, 8, seed) for seed in (16, 20)]
    x, stages = normal(3, 6, seed=17), Group(2, BF16)
    between = transformer_block(x, blocks[0], Group(1))
    got = transformer_block(stages.send(between, source=0, target=1), blocks[1], Group(1))
    tensor_parallel = Group(2, BF16)
    want = transformer_block(transformer_block(x, blocks[0], tensor_parallel), blocks[1], tensor_parallel)
    assert_close(got, want)
    assert stages.wire_bytes() == (36, 0)
    assert tensor_parallel.wire_bytes() == (4 * 36, 4 * 36)


# Bad input: one clear line.

X, ATTENTION, DELTA_NET = normal(2, 6, seed=0), SMALL_LAYERS[1][1], SMALL_LAYERS[2][1]
REFUSED = [
    ("intermediate=9 .* ranks=2; .* multiple of 2", swiglu, random_swiglu(6, 9, seed=0), 2),
    ("hidden=6 .* ranks=4", swiglu_naive_b, random_swiglu(6, 8, seed=0), 4),
    ("hidden=6 .* ranks=4", swiglu_naive_b_scatter, random_swiglu(6, 8, seed=0), 4),
    ("intermediate=9 .* ranks=2", swiglu_naive_b_scatter, random_swiglu(6, 9, seed=0), 2),
    ("heads=4 .* ranks=3", gqa_attention, ATTENTION, 3),
    ("heads=4 .* kv_heads=3", gqa_attention, replace(ATTENTION, kv_heads=3), 2),
    ("kv_heads=6 with ranks=4: .* multiple or a divisor of 4", gqa_attention, random_attention(6, 12, 6, 3, seed=0), 4),
    ("query columns=12 .* heads=8", gqa_attention, replace(ATTENTION, heads=8), 2),
    ("key_heads=2 .* ranks=4", gated_delta_net, DELTA_NET, 4),
    ("value_heads=3 .* key_heads=2", gated_delta_net, replace(DELTA_NET, value_heads=3), 2),
]


@pytest.mark.parametrize(("message", "layer", "weights", "ranks"), REFUSED)
def test_a_layer_refuses_a_split_that_cannot_be(message, layer, weights, ranks):
    assert_refused(message, lambda: layer(X, weights, Group(ranks)))
