"""Attention, its linear cousin, and a block of mixer and FFN, each a function `f(x, weights, group)` as in `linear`.

Left out, because it acts inside one head and so moves nothing: rotary position, query and key norms.
"""

from dataclasses import replace

import numpy as np

from .group import columns, divided, rows
from .linear import column_parallel, row_parallel, sigmoid, silu, swiglu
from .weights import DeltaNetWeights


def kv_heads_of_rank(kv_heads, ranks, rank):
    """The KV heads that `rank` keeps: its share, or, beyond one per rank, a copy of one.
    >>> [list(kv_heads_of_rank(kv_heads=4, ranks=2, rank=r)) for r in range(2)]
    [[0, 1], [2, 3]]
    >>> [list(kv_heads_of_rank(kv_heads=2, ranks=4, rank=r)) for r in range(4)]
    [[0], [0], [1], [1]]
    """
    if kv_heads < 1 or (kv_heads % ranks and ranks % kv_heads):
        raise ValueError(f"kv_heads={kv_heads} with ranks={ranks}: accepted is a multiple or a divisor of {ranks}")
    first = rank * kv_heads // ranks
    return range(first, first + max(1, kv_heads // ranks))


def kv_cache(x, weights, group):
    """The keys and values each rank computes and keeps; moves nothing.
    returns : list of (key, value), each (KV heads of the rank, tokens, width)
    """
    width = divided("key columns", weights.key.shape[1], weights.kv_heads, "kv_heads")
    cache = []
    for rank in range(group.ranks):
        kept = kv_heads_of_rank(weights.kv_heads, group.ranks, rank)
        cut = slice(kept.start * width, kept.stop * width)
        cache.append(tuple(as_heads(x @ w[:, cut], width) for w in (weights.key, weights.value)))
    return cache


def gqa_attention(x, weights, group):
    """Causal attention with grouped queries, cut by heads.
    traffic : one all-reduce of tokens x hidden, after out; key and value heads never move
    needs : ranks divides heads; kv_heads is a multiple or a divisor of ranks, and divides heads
    """
    divided("heads", weights.heads, group.ranks)
    divided("heads", weights.heads, weights.kv_heads, "kv_heads")
    width = divided("query columns", weights.query.shape[1], weights.heads, "heads")
    cache = kv_cache(x, weights, group)
    queries = column_parallel(x, weights.query, group)
    pieces = [causal_attention(as_heads(q, width), *kv) for q, kv in zip(queries, cache)]
    return row_parallel([joined(p) for p in pieces], weights.out, group, label="attention out")


def causal_attention(query, key, value):
    """softmax(q k^T / sqrt(width), token t sees 0..t) v, in the heads of one rank.
    query : (heads, tokens, width); key, value : (kv_heads, tokens, width), each serves heads / kv_heads
    """
    heads, tokens, width = query.shape
    key, value = (np.repeat(kv, heads // len(kv), axis=0) for kv in (key, value))
    scores = query @ key.swapaxes(1, 2) / np.sqrt(width)
    scores = np.where(np.tri(tokens, dtype=bool), scores, -np.inf)
    weight = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True) @ value


def gated_delta_net(x, weights, group):
    """Linear attention with a state per head, cut by heads as attention is.
    traffic : one all-reduce of tokens x hidden, after out; conv, state and norm stay inside a head
    needs : ranks divides key_heads, key_heads divides value_heads
    source : Yang et al. 2024, arXiv:2412.06464
    """
    shards = split_delta_net(weights, group.ranks)
    pieces = [joined(delta_net_heads(x, shard)) for shard in shards]
    return row_parallel(pieces, weights.out, group, label="delta net out")


def split_delta_net(weights, ranks):
    """Each rank's weights: the norm whole, out by rows, all others by columns, that is by heads."""
    heads = {"key_heads": divided("key_heads", weights.key_heads, ranks), "value_heads": weights.value_heads // ranks}
    divided("value_heads", weights.value_heads, weights.key_heads, "key_heads")
    other = (*heads, "norm", "out")
    cut = {name: columns(array, ranks, name) for name, array in vars(weights).items() if name not in other}
    cut["out"] = rows(weights.out, ranks)
    return [replace(weights, **heads, **dict(zip(cut, shard))) for shard in zip(*cut.values())]


def delta_net_heads(x, weights):
    """The heads of one rank: (value_heads, tokens, value_width)."""
    key_width = divided("key columns", weights.key.shape[1], weights.key_heads, "key_heads")
    value_width = divided("value columns", weights.value.shape[1], weights.value_heads, "value_heads")
    query = as_heads(silu(causal_conv(x @ weights.query, weights.conv_query)), key_width)
    key = as_heads(silu(causal_conv(x @ weights.key, weights.conv_key)), key_width)
    value = as_heads(silu(causal_conv(x @ weights.value, weights.conv_value)), value_width)
    query, key = unit(query) / np.sqrt(key_width), unit(key)
    beta = sigmoid(x @ weights.beta)
    step = np.logaddexp(0, x @ weights.decay + weights.decay_bias)
    keep = np.exp(-np.exp(weights.decay_log) * step)
    group = weights.value_heads // weights.key_heads
    out = [delta_rule(query[head // group], key[head // group], value[head], beta[:, head], keep[:, head])
           for head in range(weights.value_heads)]
    return rms_norm(np.stack(out), weights.norm) * silu(as_heads(x @ weights.gate, value_width))


def delta_rule(query, key, value, beta, keep):
    r"""A head, by tokens: $S \leftarrow \alpha_t S$; $S \leftarrow S + \beta_t k_t (v_t - S^T k_t)^T$; $o_t = S^T q_t$.
    query, key : (tokens, key_width); value : (tokens, value_width)
    beta, keep : $\beta_t, \alpha_t$ in 0..1, (tokens,); the state S : (key_width, value_width)
    >>> one = np.ones((2, 1))
    >>> delta_rule(one, one, np.array([[3.0], [5.0]]), beta=np.ones(2), keep=np.ones(2)).ravel()
    array([3., 5.])
    """
    state = np.zeros((key.shape[1], value.shape[1]))
    out = np.empty_like(value)
    for t in range(len(value)):
        state = keep[t] * state
        state = state + np.outer(key[t], beta[t] * (value[t] - key[t] @ state))
        out[t] = query[t] @ state
    return out


def causal_conv(x, taps):
    """Depthwise: out[t] = sum over i of taps[i] x[t - last + i]; x : (tokens, channels)."""
    last = len(taps) - 1
    padded = np.concatenate([np.zeros((last, x.shape[1])), x])
    return sum(tap * padded[i : i + len(x)] for i, tap in enumerate(taps))


def transformer_block(x, weights, group):
    """x + mixer(norm(x)), then x + ffn(norm(x)): exactly two all-reduces of tokens x hidden."""
    mixer = gated_delta_net if isinstance(weights.mixer, DeltaNetWeights) else gqa_attention
    x = x + mixer(rms_norm(x, weights.mixer_norm), weights.mixer, group)
    return x + swiglu(rms_norm(x, weights.ffn_norm), weights.ffn, group)


def as_heads(x, width):
    """(tokens, heads * width) -> (heads, tokens, width)."""
    return x.reshape(len(x), -1, width).swapaxes(0, 1)


def joined(x):
    """(heads, tokens, width) -> (tokens, heads * width)."""
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def rms_norm(x, weight, epsilon=1e-6):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def unit(x, epsilon=1e-6):
    """Each row of length one, as the delta rule wants its keys."""
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + epsilon)
