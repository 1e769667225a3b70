"""What one GPU must hold: the KV cache, what is left for it, and the context that fits."""

from ..formula import formula, ops

KEY_AND_VALUE = 2


@formula
def kv_bytes_per_token(full_layers, kv_heads, head_elements, kv_element_bytes, ranks):
    r"""KV cache of one token on one GPU.
    limits : grouped-query attention; no MLA, no sliding window, no block rounding.
    source : Ainslie et al. 2023, arXiv:2305.13245; vLLM's full-attention KV page
    >>> kv_bytes_per_token(full_layers=16, kv_heads=4, head_elements=256, kv_element_bytes=2, ranks=2)
    32768.0
    """
    return KEY_AND_VALUE * full_layers * ops.maximum(1, kv_heads / ranks) * head_elements * kv_element_bytes


@formula
def kv_cache_bytes(kv_bytes_per_token, context_tokens):
    r"""KV cache of one sequence on one GPU.
    limits : one sequence; engines round up to whole blocks.
    source : a product
    >>> kv_cache_bytes(kv_bytes_per_token=32768, context_tokens=131072) / 2**30
    4.0
    """
    return kv_bytes_per_token * context_tokens


@formula
def budget_bytes(vram_bytes, utilisation_frac):
    r"""Memory the engine may take on one GPU.
    limits : vLLM refuses to start when less than U is free.
    source : vLLM, `gpu_memory_utilization`
    >>> round(budget_bytes(vram_bytes=16 * 2**30, utilisation_frac=0.92) / 2**30, 2)
    14.72
    """
    return vram_bytes * utilisation_frac


@formula
def kv_pool_bytes(vram_bytes, utilisation_frac, weights_bytes, overhead_bytes, ranks):
    r"""Memory left for the KV cache on one GPU.
    returns : P; negative when weights and overhead alone exceed the budget
    limits : O is an estimate until the engine has measured it.
    source : vLLM's memory profiling at start
    >>> round(kv_pool_bytes(16 * 2**30, 0.92, 20e9, 1.2 * 2**30, 2) / 2**30, 2)
    4.21
    """
    return budget_bytes(vram_bytes, utilisation_frac) - weights_bytes / ranks - overhead_bytes


@formula
def pool_tokens(kv_pool_bytes, kv_bytes_per_token):
    r"""Tokens whose KV cache fits in the pool.
    returns : whole tokens; 0 when nothing fits
    limits : no block rounding, which takes up to one block and, in hybrids, the state blocks.
    source : a quotient
    >>> pool_tokens(kv_pool_bytes=4 * 2**30, kv_bytes_per_token=32768)
    131072.0
    """
    return ops.floor(ops.maximum(0, kv_pool_bytes) / kv_bytes_per_token)


@formula
def max_context_tokens(kv_pool_bytes, kv_bytes_per_token, native_tokens):
    r"""Largest context: what fits, at most the native length.
    returns : c_max for one sequence
    limits : it fits; whether it is fast is another question.
    source : the smaller of two bounds
    >>> max_context_tokens(kv_pool_bytes=4.2 * 2**30, kv_bytes_per_token=16384, native_tokens=262144)
    262144.0
    """
    return ops.minimum(pool_tokens(kv_pool_bytes, kv_bytes_per_token), native_tokens)


@formula
def used_bytes(weights_bytes, ranks, kv_cache_bytes, overhead_bytes):
    r"""Memory in use on one GPU.
    limits : an even split; engines claim the whole pool at start, not only what one context uses.
    source : the sum of the three
    >>> used_bytes(weights_bytes=20e9, ranks=2, kv_cache_bytes=2e9, overhead_bytes=1e9) / 1e9
    13.0
    """
    return weights_bytes / ranks + kv_cache_bytes + overhead_bytes


@formula
def embedding_bytes(vocabulary, hidden, element_bytes):
    r"""The embedding table.
    returns : E; a decode step reads one row of it
    limits : untied from the output head.
    source : the table's shape
    >>> embedding_bytes(vocabulary=248320, hidden=5120, element_bytes=2) / 1e9
    2.5427968
    """
    return vocabulary * hidden * element_bytes


@formula
def read_bytes(weights_bytes, vocabulary, hidden, element_bytes, idle_parameters):
    r"""What one decode step reads of a build.
    returns : W, all GPUs together
    limits : a build that keeps table, vision tower and MTP layer in 16 bits.
    source : the build's modules
    >>> round(read_bytes(20e9, 248320, 5120, 2, 0.885e9) / 1e9, 2)
    15.69
    """
    return weights_bytes - embedding_bytes(vocabulary, hidden, element_bytes) - idle_parameters * element_bytes


@formula
def state_bytes(state_layers, value_heads, key_elements, value_elements, state_element_bytes, ranks):
    r"""Recurrent state of one sequence on one GPU.
    returns : S, whatever the context length
    limits : without the small convolution state; engines keep one to several copies.
    source : Yang et al. 2024, arXiv:2412.06464 (Gated DeltaNet)
    >>> state_bytes(48, 48, 128, 128, 2, 2) / 1e6
    37.748736
    """
    return state_layers * (value_heads / ranks) * key_elements * value_elements * state_element_bytes
