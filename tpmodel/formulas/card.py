"""What one sequence takes of one GPU beside weights and overhead, and whether the rest is enough."""

from ..formula import formula
from .weights import layer_parameters

JOINED = 2  # the MTP layer's input: the hidden vector and the embedding of the next token, side by side


@formula
def mtp_parameters(hidden, intermediate, heads, kv_heads, head_elements):
    r"""Parameters of one MTP layer: a projection, then one whole layer, its attention gated.
    limits : it shares embedding and output head with the model; its own three norms are not counted.
    source : Qwen3.5-27B (mtp_num_hidden_layers 1, attn_output_gate true), https://huggingface.co/Qwen/Qwen3.5-27B
    >>> mtp_parameters(hidden=5120, intermediate=17408, heads=24, kv_heads=4, head_elements=256)
    424683520.0
    """
    layer = layer_parameters(hidden, intermediate, heads, kv_heads, head_elements)
    return JOINED * hidden * hidden + layer + hidden * heads * head_elements


@formula
def state_pool_bytes(state_bytes, drafts):
    r"""Recurrent states of one sequence on one GPU: one, and one for every drafted token.
    limits : no prefix caching, which keeps at least one more; without the small convolution state.
    source : vLLM, the cache specification of state layers
    >>> state_pool_bytes(state_bytes=75.5e6, drafts=3) / 1e6
    302.0
    """
    return (1 + drafts) * state_bytes


@formula
def left_bytes(kv_pool_bytes, kv_cache_bytes, state_pool_bytes):
    r"""Memory that stays free on one GPU.
    returns : G_left; negative: what is missing
    limits : one sequence; no block rounding.
    source : a difference
    >>> left_bytes(kv_pool_bytes=5e9, kv_cache_bytes=4e9, state_pool_bytes=0.25e9) / 1e9
    0.75
    """
    return kv_pool_bytes - kv_cache_bytes - state_pool_bytes
