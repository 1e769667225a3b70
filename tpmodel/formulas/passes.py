"""One pass of T new tokens over a context of c: reading against computing, the link, the engine's wait.

A decode step, drafts under test, many users and a chunk of a prompt are such passes.
"""

from ..formula import formula, ops

FLOP_PER_MULTIPLY_ADD = 2
READ_AND_WRITTEN = 2  # times that a state crosses the memory's bus in a pass
SCORES_AND_VALUES = 2  # attention multiplies twice: queries with keys, weights with values


@formula
def weight_read_s(read_bytes, ranks, memory_bytes_per_s, achieved_frac):
    r"""Time to read the weights once, each GPU its share.
    limits : batch so small that arithmetic hides behind the read.
    source : Williams et al. 2009, doi:10.1145/1498765.1498785 (the roofline's slope)
    >>> round(weight_read_s(20e9, 2, 448e9, 1) * 1e3, 1)
    22.3
    """
    return read_bytes / (ranks * achieved_frac * memory_bytes_per_s)


@formula
def cache_read_bytes(kv_cache_bytes, state_bytes):
    r"""Cache that one pass of one sequence reads on one GPU: a state is read and written.
    limits : every new token attends to every cached one; layers with a window hold less.
    source : the sum
    >>> cache_read_bytes(kv_cache_bytes=2e9, state_bytes=75e6) / 1e9
    2.15
    """
    return kv_cache_bytes + READ_AND_WRITTEN * state_bytes


@formula
def kv_read_s(cache_read_bytes, memory_bytes_per_s, achieved_frac):
    r"""Time to read the cache once.
    limits : the cache is read once a step and as fast as weights; real kernels reach 65-98 % of that.
    source : every new token attends to every cached one
    >>> round(kv_read_s(16384 * 131072, 448e9, 1) * 1e3, 2)
    4.79
    """
    return cache_read_bytes / (achieved_frac * memory_bytes_per_s)


@formula
def linear_flop(parameters, tokens, ranks):
    r"""Arithmetic of the linear layers on one GPU.
    limits : dense layers; of a mixture of experts, the active parameters.
    source : two operations, a multiplication and an addition, per parameter and token
    >>> linear_flop(parameters=27.78e9, tokens=8192, ranks=2) / 1e14
    2.2757376
    """
    return FLOP_PER_MULTIPLY_ADD * parameters * tokens / ranks


@formula
def attention_flop(full_layers, heads, head_elements, tokens, context_tokens, ranks):
    r"""Arithmetic of causal attention on one GPU: every token meets those before it.
    returns : X_att; quadratic in T
    limits : a kernel that skips the masked half; softmax not counted.
    source : Dao et al. 2022, arXiv:2205.14135, section 3
    >>> attention_flop(16, 24, 256, 1024, 0, 1) / (16 * 24576 * 1024 * 512)
    1.0
    """
    pairs = tokens * (context_tokens + tokens / 2)
    return FLOP_PER_MULTIPLY_ADD * SCORES_AND_VALUES * full_layers * heads * head_elements * pairs / ranks


@formula
def linear_s(parameters, tokens, ranks, flop_per_s, mfu_frac):
    r"""Time of the linear layers.
    limits : long prompts, where arithmetic and not the weight read sets the pace.
    source : a quotient
    >>> round(linear_s(27.78e9, 8192, 2, 380e12, 1), 1)
    0.6
    """
    return linear_flop(parameters, tokens, ranks) / (mfu_frac * flop_per_s)


@formula
def attention_s(full_layers, heads, head_elements, tokens, context_tokens, ranks, attention_flop_per_s, mfu_frac):
    r"""Time of attention.
    limits : attention runs in 16 bits whatever the format of the weights.
    source : a quotient
    >>> round(attention_s(16, 24, 256, 262144, 0, 2, 47.4e12, 1))
    143
    """
    flop = attention_flop(full_layers, heads, head_elements, tokens, context_tokens, ranks)
    return flop / (mfu_frac * attention_flop_per_s)


@formula
def roofline_s(read_s, compute_s, unhidden_frac):
    r"""Time of one kind of layer: the longer of reading and computing, and the part of the shorter that does not hide.
    limits : a kernel hides nothing at its start and its end; 0 is the roofline itself, 1 no overlap at all.
    source : Williams et al. 2009, doi:10.1145/1498765.1498785; Stengel et al. 2015, arXiv:1410.5010, overlap in part
    >>> roofline_s(read_s=0.020, compute_s=0.010, unhidden_frac=0), roofline_s(0.020, 0.010, 0.5)
    (0.02, 0.025)
    """
    return ops.maximum(read_s, compute_s) + unhidden_frac * ops.minimum(read_s, compute_s)


@formula
def turning_tokens(read_bytes, parameters, flop_per_s, mfu_frac, memory_bytes_per_s, achieved_frac):
    r"""Tokens at which a pass turns from reading the weights to computing with them.
    returns : T_c; below it more tokens are nearly free, above it each costs its arithmetic
    limits : dense layers, a short context; at the turn itself neither limit is reached.
    source : weight_read_s = linear_s, solved for the tokens
    >>> turning_tokens(2e9, 1e9, flop_per_s=1e15, mfu_frac=1, memory_bytes_per_s=4e12, achieved_frac=1)
    250.0
    """
    per_parameter = read_bytes / (FLOP_PER_MULTIPLY_ADD * parameters)
    return per_parameter * (mfu_frac * flop_per_s) / (achieved_frac * memory_bytes_per_s)


@formula
def expert_tokens(tokens, expert_frac, touched_frac, half_tokens):
    r"""Tokens that one expert of a mixture multiplies in a pass, on average of all, in the time of its product.
    returns : T_e; a small product takes the time of a larger one, at most of twice its tokens
    limits : tokens draw their experts evenly, each on its own; few tokens meet kernels with small tiles.
    source : Hockney 1994, doi:10.1016/S0167-8191(06)80021-9 (the half-performance length), of matrices
    >>> expert_tokens(2048, expert_frac=0.25, touched_frac=1, half_tokens=200), expert_tokens(64, 0.25, 1, 200)
    (712.0, 32.0)
    """
    drawn = tokens * expert_frac
    return drawn + ops.minimum(drawn, touched_frac * half_tokens)


@formula
def busy_s(weight_read_s, linear_s, kv_read_s, attention_s, experts_s, floor_s, unhidden_frac):
    r"""Time that one GPU works in a pass, reading or computing, each kind of layer for itself.
    limits : a kernel reads ahead while it multiplies, the next one does not: kinds of layer take turns.
    source : the sum over the kinds of roofline_s, and what the kernels take however little they do
    >>> round(busy_s(0.020, 0.004, 0.001, 0.003, experts_s=0, floor_s=0.002, unhidden_frac=0), 9)
    0.025
    """
    linear = roofline_s(weight_read_s, linear_s, unhidden_frac)
    return linear + roofline_s(kv_read_s, attention_s, unhidden_frac) + experts_s + floor_s


@formula
def pass_s(busy_s, communication_s, gap_s):
    r"""Time of one pass, nothing hidden behind the work of the GPUs.
    returns : t, the upper end; pass_overlapped_s is the lower
    limits : CUDA graphs are on, so no launch costs extra.
    source : the sum; for the gap https://github.com/vllm-project/vllm/issues/6854
    >>> round(pass_s(busy_s=0.020, communication_s=0.00256, gap_s=0.003) * 1e3, 2)
    25.56
    """
    return busy_s + communication_s + gap_s


@formula
def pass_overlapped_s(busy_s, communication_s, gap_s):
    r"""Time of one pass if the all-reduces hid behind the work of the GPUs.
    returns : the lower end; at most a factor 2 below pass_s
    limits : no engine hides all of it in decode: the next layer needs the sum.
    source : the larger of the two
    >>> pass_overlapped_s(busy_s=0.020, communication_s=0.00256, gap_s=0.003)
    0.023
    """
    return ops.maximum(busy_s, communication_s) + gap_s
