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
    """query : (hidden, heads * width); key, value : (hidden, kv_heads * width); out : (heads * width, hidden)."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    out: np.ndarray
    heads: int
    kv_heads: int


@dataclass(frozen=True, eq=False)
class DeltaNetWeights:
    """Heads' columns side by side, as in attention; every rank has the whole norm."""

    query: np.ndarray  # (hidden, key_heads * key_width)
    key: np.ndarray  # as query
    value: np.ndarray  # (hidden, value_heads * value_width)
    gate: np.ndarray  # as value
    beta: np.ndarray  # (hidden, value_heads)
    decay: np.ndarray  # as beta
    conv_query: np.ndarray  # (taps, channels), the last tap is the present token
    conv_key: np.ndarray  # the same
    conv_value: np.ndarray  # the same
    decay_log: np.ndarray  # (value_heads,)
    decay_bias: np.ndarray  # (value_heads,)
    norm: np.ndarray  # (value_width,), one for all heads
    out: np.ndarray  # (value_heads * value_width, hidden)
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


def _arrays(seed, **shapes):
    """A random array of each shape, by name, each with the next seed."""
    return {name: normal(*shape, seed=seed + i) for i, (name, shape) in enumerate(shapes.items())}


def random_swiglu(hidden, intermediate, seed):
    inner, outer = (hidden, intermediate), (intermediate, hidden)
    return SwigluWeights(**_arrays(seed, gate=inner, up=inner, down=outer))


def random_attention(hidden, heads, kv_heads, width, seed):
    keys, queries = (hidden, kv_heads * width), (hidden, heads * width)
    arrays = _arrays(seed, query=queries, key=keys, value=keys, out=queries[::-1])
    return AttentionWeights(**arrays, heads=heads, kv_heads=kv_heads)


def random_delta_net(hidden, key_heads, value_heads, key_width, value_width, taps, seed):
    keys, values, heads = key_heads * key_width, value_heads * value_width, value_heads
    arrays = _arrays(
        seed, query=(hidden, keys), key=(hidden, keys), value=(hidden, values), gate=(hidden, values),
        beta=(hidden, heads), decay=(hidden, heads), conv_query=(taps, keys), conv_key=(taps, keys),
        conv_value=(taps, values), decay_log=(heads,), decay_bias=(heads,), norm=(value_width,), out=(values, hidden))
    arrays["norm"] += 1
    return DeltaNetWeights(**arrays, key_heads=key_heads, value_heads=value_heads)


def random_block(mixer, hidden, intermediate, seed):
    """A block around the weights of its mixer."""
    mixer_norm, ffn_norm = (1 + normal(hidden, seed=seed + i) for i in range(2))
    return BlockWeights(mixer_norm, mixer, ffn_norm, random_swiglu(hidden, intermediate, seed + 2))
