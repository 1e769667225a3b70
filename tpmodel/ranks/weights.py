"""The weights of a layer, whole as a checkpoint holds them, and random ones by seed."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class SwigluWeights:
    """gate, up : (hidden, intermediate); down : (intermediate, hidden)."""

    gate: np.ndarray
    up: np.ndarray
    down: np.ndarray


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """query : (hidden, heads * width); key, value : (hidden, kv_heads * width);
    out : (heads * width, hidden)."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    out: np.ndarray
    heads: int
    kv_heads: int


@dataclass(frozen=True, eq=False)
class DeltaNetWeights:
    """query, key : (hidden, key_heads * key_width); value, gate : (hidden, value_heads * value_width);
    beta, decay : (hidden, value_heads); conv_* : (taps, channels), the last tap is the present token;
    decay_log, decay_bias : (value_heads,); norm : (value_width,), one for all heads, on every rank;
    out : (value_heads * value_width, hidden)."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    gate: np.ndarray
    beta: np.ndarray
    decay: np.ndarray
    conv_query: np.ndarray
    conv_key: np.ndarray
    conv_value: np.ndarray
    decay_log: np.ndarray
    decay_bias: np.ndarray
    norm: np.ndarray
    out: np.ndarray
    key_heads: int
    value_heads: int


@dataclass(frozen=True, eq=False)
class BlockWeights:
    """mixer_norm, ffn_norm : (hidden,), on every rank; mixer : AttentionWeights or DeltaNetWeights."""

    mixer_norm: np.ndarray
    mixer: AttentionWeights | DeltaNetWeights
    ffn_norm: np.ndarray
    ffn: SwigluWeights


def normal(*shape, seed):
    """Random numbers of about unit size once multiplied through a matrix of that shape."""
    return np.random.default_rng([seed, *shape]).normal(size=shape) / np.sqrt(shape[0])


def random_swiglu(hidden, intermediate, seed):
    return SwigluWeights(
        gate=normal(hidden, intermediate, seed=seed),
        up=normal(hidden, intermediate, seed=seed + 1),
        down=normal(intermediate, hidden, seed=seed + 2),
    )


def random_attention(hidden, heads, kv_heads, width, seed):
    return AttentionWeights(
        query=normal(hidden, heads * width, seed=seed),
        key=normal(hidden, kv_heads * width, seed=seed + 1),
        value=normal(hidden, kv_heads * width, seed=seed + 2),
        out=normal(heads * width, hidden, seed=seed + 3),
        heads=heads,
        kv_heads=kv_heads,
    )


def random_delta_net(hidden, key_heads, value_heads, key_width, value_width, taps, seed):
    keys, values = key_heads * key_width, value_heads * value_width
    return DeltaNetWeights(
        query=normal(hidden, keys, seed=seed),
        key=normal(hidden, keys, seed=seed + 1),
        value=normal(hidden, values, seed=seed + 2),
        gate=normal(hidden, values, seed=seed + 3),
        beta=normal(hidden, value_heads, seed=seed + 4),
        decay=normal(hidden, value_heads, seed=seed + 5),
        conv_query=normal(taps, keys, seed=seed + 6),
        conv_key=normal(taps, keys, seed=seed + 7),
        conv_value=normal(taps, values, seed=seed + 8),
        decay_log=normal(value_heads, seed=seed + 9),
        decay_bias=normal(value_heads, seed=seed + 10),
        norm=1 + normal(value_width, seed=seed + 11),
        out=normal(values, hidden, seed=seed + 12),
        key_heads=key_heads,
        value_heads=value_heads,
    )


def random_block(mixer, hidden, intermediate, seed):
    """A block around the weights of its mixer."""
    return BlockWeights(
        mixer_norm=1 + normal(hidden, seed=seed),
        mixer=mixer,
        ffn_norm=1 + normal(hidden, seed=seed + 1),
        ffn=random_swiglu(hidden, intermediate, seed + 2),
    )
