"""vLLM's block arithmetic. A *page* is one block of one layer on one GPU; a *block* a page of each layer of a group."""

from ..formula import formula, ops


@formula
def layer_bytes_per_token(kv_heads, ranks, head_elements, value_head_elements, kv_element_bytes, kv_scale_bytes):
    r"""Cache of one token in one attention layer on one GPU.
    limits : no MLA; an index cache beside it is extra.
    source : vLLM 0.32, AttentionSpec
    >>> layer_bytes_per_token(4, 2, 256, 256, 1, 0)
    1024.0
    """
    heads = ops.maximum(1, ops.floor(kv_heads / ranks))
    return heads * ((head_elements + value_head_elements) * kv_element_bytes + kv_scale_bytes)


@formula
def latent_bytes_per_token(latent_elements, rope_elements, kv_element_bytes):
    r"""Cache of one token in one MLA layer: once, on every GPU.
    limits : the fp8_ds_mla record is 656 bytes instead (512 + 16 of scales + 128 of BF16 rope).
    source : vLLM 0.32, MLAAttentionSpec
    >>> latent_bytes_per_token(512, 64, 2)
    1152.0
    """
    return (latent_elements + rope_elements) * kv_element_bytes


@formula
def state_page_bytes(value_heads, value_elements, key_heads, key_elements, state_element_bytes, convolution, drafts,
                     element_bytes, ranks):
    r"""One state of one recurrent layer on one GPU: the recurrent state, and the last inputs of the convolution.
    returns : S_1, whatever the context length
    limits : groups that N does not divide are first extended to N.
    source : vLLM 0.32, MambaStateShapeCalculator
    >>> state_page_bytes(48, 128, 16, 128, 4, 4, 0, 2, 1)
    3207168.0
    """
    recurrent = value_heads / ranks * value_elements * key_elements * state_element_bytes
    inputs = (2 * key_heads * key_elements + value_heads * value_elements) / ranks
    return recurrent + inputs * (convolution - 1 + drafts) * element_bytes


@formula
def aligned_block_tokens(block_tokens, step_tokens, state_page_bytes, layer_bytes_per_token):
    r"""Tokens of a block in a hybrid: grown until an attention page holds one state.
    returns : the block in use
    limits : the state's page is then padded to the attention page.
    source : vLLM 0.32, Platform._align_hybrid_block_size
    >>> [aligned_block_tokens(16, 16, 3207168, k) for k in (4096, 2048)]
    [784.0, 1568.0]
    """
    return ops.maximum(block_tokens, step_tokens * ops.ceil(state_page_bytes / (step_tokens * layer_bytes_per_token)))


@formula
def full_blocks(context_tokens, block_tokens):
    r"""Blocks of one sequence in a group of full-attention layers.
    limits : one sequence.
    source : vLLM 0.32, FullAttentionSpec
    >>> full_blocks(262144, 1568)
    168.0
    """
    return ops.ceil(context_tokens / block_tokens)


@formula
def chunk_blocks(window_tokens, in_flight, batch_tokens, context_tokens, block_tokens):
    r"""Blocks of one sequence in a group of chunked-attention layers: a chunk and the batches in flight.
    limits : as if every batch in flight belonged to this sequence.
    source : vLLM 0.32, ChunkedLocalAttentionSpec
    >>> chunk_blocks(8192, 1, 8192, 1048576, 16)
    1024.0
    """
    return ops.ceil(ops.minimum(window_tokens + in_flight * batch_tokens, context_tokens) / block_tokens)


@formula
def window_blocks(window_tokens, in_flight, batch_tokens, context_tokens, block_tokens):
    """Blocks of one sequence in a group of sliding-window layers: as a chunk of w - 1, \
and one more since it may start inside a block.
    returns : blocks; set by the batch more than by the window
    limits : as if every batch in flight belonged to this sequence.
    source : vLLM 0.32, SlidingWindowSpec
    >>> window_blocks(1024, 1, 1024, 16384, 16)
    129.0
    """
    return ops.ceil(ops.minimum(window_tokens - 1 + in_flight * batch_tokens, context_tokens) / block_tokens) + 1


@formula
def state_blocks(drafts, cached, checkpoints):
    """States of one sequence in a group of recurrent layers: one, one a drafted token, \
and with prefix caching at least one more.
    limits : the older mode "all" keeps one a block of the context.
    source : vLLM 0.32, MambaSpec
    >>> state_blocks(3, 1, 0)
    5.0
    """
    return 1 + drafts + cached * (1 + checkpoints)


@formula
def needed_bytes(request_blocks, block_bytes):
    r"""What vLLM says is needed for one sequence.
    limits : one sequence of the largest length.
    source : vLLM 0.32, _max_memory_usage_bytes_from_groups
    >>> needed_bytes(90, 25690112)
    2312110080.0
    """
    return request_blocks * block_bytes


@formula
def pool_blocks(kv_pool_bytes, block_bytes):
    r"""Blocks of the pool.
    returns : blocks; one of them, the null block, is never given out
    limits : the GPU with the fewest decides for all.
    source : vLLM 0.32, get_kv_cache_config_from_groups
    >>> pool_blocks(4.99 * 2**30, 25690112)
    208.0
    """
    return ops.floor(ops.maximum(0, kv_pool_bytes) / block_bytes)


@formula
def concurrency(pool_blocks, request_blocks):
    r"""Sequences of the largest length that the pool holds.
    returns : a number with a fraction
    limits : counts the null block too.
    source : vLLM 0.32, get_max_concurrency_for_kv_cache_config
    >>> round(concurrency(208, 90), 2)
    2.31
    """
    return pool_blocks / request_blocks


@formula
def printed_tokens(pool_blocks, request_blocks, context_tokens):
    r"""The "KV cache size" that vLLM prints: concurrency times the largest length.
    returns : tokens; moves with the largest length, so it is no capacity
    limits : older versions print whole blocks of one group instead.
    source : vLLM 0.32, get_kv_cache_capacity
    >>> printed_tokens(208, 90, 131072)
    302921.0
    """
    return ops.floor(pool_blocks / request_blocks * context_tokens)


@formula
def fitting_tokens(pool_blocks, null_blocks, fixed_blocks, full_groups, block_tokens):
    r"""Longest sequence of the pool: what the fixed blocks leave, over the groups that grow.
    limits : longer than every window; at most the largest length is served.
    source : the inverse of needed_bytes; vLLM searches for it
    >>> fitting_tokens(208, 1, 6, 1, 1568)
    315168.0
    """
    return block_tokens * ops.floor(ops.maximum(0, pool_blocks - null_blocks - fixed_blocks) / full_groups)
