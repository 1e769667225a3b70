"""A whole prompt: arithmetic of the linear layers, attention that grows with the square, and the all-reduces."""

from .. import ops
from ..formula import formula
from .collectives import allreduce_s, allreduce_payload_bytes, allreduce_wire_bytes

FLOP_PER_MULTIPLY_ADD = 2
TABLES = 2  # embedding and output head
SCORES_AND_VALUES = 2  # attention multiplies twice: queries with keys, weights with values


@formula
def linear_flop(parameters, tokens, ranks):
    r"""Arithmetic of the linear layers on one GPU, $X_{lin} = 2 p T / N$.

    parameters : p [1]
    tokens : T [token]
    ranks : N [1]
    returns : X_lin [FLOP]
    limits : dense layers; of a mixture of experts, the active parameters.
    source : two operations, a multiplication and an addition, per parameter and token

    >>> linear_flop(parameters=27.78e9, tokens=8192, ranks=2) / 1e14
    2.2757376
    """
    return FLOP_PER_MULTIPLY_ADD * parameters * tokens / ranks


@formula
def attention_flop(full_layers, heads, head_elements, tokens, context_tokens, ranks):
    r"""Arithmetic of causal attention on one GPU: every token meets those before it.

    full_layers, heads, head_elements : L_full, n_q, d [1]
    tokens : T, new tokens [token]
    context_tokens : c, tokens already cached [token]
    ranks : N [1]
    returns : X_att; quadratic in T [FLOP]
    limits : a kernel that skips the masked half; softmax not counted.
    source : Dao et al. 2022, arXiv:2205.14135, section 3

    >>> attention_flop(16, 24, 256, 1024, 0, 1) / (16 * 24576 * 1024 * 512)
    1.0
    """
    pairs = tokens * (context_tokens + tokens / 2)
    return FLOP_PER_MULTIPLY_ADD * SCORES_AND_VALUES * full_layers * heads * head_elements * pairs / ranks


@formula
def linear_s(parameters, tokens, ranks, flop_per_s, mfu_frac):
    r"""Time of the linear layers, $t_{lin} = \frac{X_{lin}}{\mu R}$.

    parameters, tokens, ranks : as in linear_flop
    flop_per_s : R, dense, in the format the layers really multiply in [FLOP/s]
    mfu_frac : mu [1]
    returns : t_lin [s]
    limits : long prompts, where arithmetic and not the weight read sets the pace.
    source : a quotient

    >>> round(linear_s(27.78e9, 8192, 2, 380e12, 1), 1)
    0.6
    """
    return linear_flop(parameters, tokens, ranks) / (mfu_frac * flop_per_s)


@formula
def attention_s(full_layers, heads, head_elements, tokens, context_tokens, ranks, attention_flop_per_s, mfu_frac):
    r"""Time of attention, $t_{att} = \frac{X_{att}}{\mu R_a}$.

    full_layers, heads, head_elements, tokens, context_tokens, ranks : as in attention_flop
    attention_flop_per_s : R_a [FLOP/s]
    mfu_frac : mu [1]
    returns : t_att [s]
    limits : attention runs in 16 bits whatever the format of the weights.
    source : a quotient

    >>> round(attention_s(16, 24, 256, 262144, 0, 2, 47.4e12, 1))
    143
    """
    flop = attention_flop(full_layers, heads, head_elements, tokens, context_tokens, ranks)
    return flop / (mfu_frac * attention_flop_per_s)


@formula
def chunks(tokens, chunk_tokens):
    r"""Passes that a prompt takes, $m = \lceil T / C \rceil$.

    tokens : T [token]
    chunk_tokens : C, vLLM's max_num_batched_tokens [token]
    returns : m [1]
    limits : one prompt at a time.
    source : vLLM, chunked prefill

    >>> chunks(tokens=8192, chunk_tokens=2048)
    4.0
    """
    return ops.ceil(tokens / chunk_tokens)


@formula
def pass_tokens(tokens, chunk_tokens):
    r"""Tokens of one full pass of a prompt, $\min(T, C)$.

    tokens, chunk_tokens : T, C [token]
    returns : what one all-reduce carries [token]
    limits : the last pass may be shorter.
    source : vLLM, chunked prefill

    >>> pass_tokens(tokens=8192, chunk_tokens=2048)
    2048.0
    """
    return ops.minimum(tokens, chunk_tokens)


@formula
def prefill_communication_s(tokens, chunk_tokens, allreduces, hidden, element_bytes, ranks, link_bytes_per_s,
                            allreduce_latency_s):
    r"""All-reduce time of a whole prompt: every chunk pays the latency, every token its bytes.

    tokens, chunk_tokens : T, C [token]
    allreduces : n_ar, of one pass [1]
    hidden, element_bytes, ranks : H, b, N
    link_bytes_per_s, allreduce_latency_s : as in allreduce_s
    returns : t_pcomm [s]
    limits : nothing hidden behind arithmetic.
    source : the sum of allreduce_s over chunks and calls

    >>> round(prefill_communication_s(8192, 8192, 128, 5120, 2, 2, 31.5e9, 0) * 1e3)
    341
    """
    latency_s = chunks(tokens, chunk_tokens) * allreduce_s(0, ranks, link_bytes_per_s, allreduce_latency_s)
    wire = allreduce_wire_bytes(allreduce_payload_bytes(tokens, hidden, element_bytes), ranks)
    return allreduces * (latency_s + wire / link_bytes_per_s)


@formula
def prefill_s(linear_s, attention_s, prefill_communication_s):
    r"""Time of a whole prompt, nothing overlapped, $t_{pre} = t_{lin} + t_{att} + t_{pcomm}$.

    linear_s, attention_s, prefill_communication_s : the three parts [s]
    returns : t_pre, the time to the first token without queueing [s]
    limits : no state-layer arithmetic, no sampling; overlap would lower it.
    source : the sum of the three

    >>> prefill_s(linear_s=0.6, attention_s=0.1, prefill_communication_s=0.3)
    1.0
    """
    return linear_s + attention_s + prefill_communication_s


@formula
def prefill_share_frac(prefill_communication_s, prefill_s):
    r"""Share of the all-reduces in the time of a prompt, $\sigma = t_{pcomm} / t_{pre}$.

    prefill_communication_s, prefill_s : [s]
    returns : sigma, 0 to 1 [1]
    limits : as its two times
    source : a quotient

    >>> prefill_share_frac(prefill_communication_s=0.3, prefill_s=1.0)
    0.3
    """
    return prefill_communication_s / prefill_s


@formula
def overtake_tokens(parameters, full_layers, heads, head_elements, flop_per_s, attention_flop_per_s):
    r"""Prompt length at which attention takes as long as the linear layers, $T^* = \frac{p R_a}{L_{full} n_q d R}$.

    parameters : p [1]
    full_layers, heads, head_elements : L_full, n_q, d; no full layer counts as one [1]
    flop_per_s, attention_flop_per_s : R, R_a [FLOP/s]
    returns : T*; neither the GPUs nor the fraction they reach matter, both times share them [token]
    limits : the same fraction for both.
    source : linear_s = attention_s with an empty cache, solved for the tokens

    >>> round(overtake_tokens(27.78e9, 16, 24, 256, 380e12, 47.4e12))
    35250
    """
    width = ops.maximum(1, full_layers) * heads * head_elements
    return parameters * attention_flop_per_s / (width * flop_per_s)


@formula
def prompt_parameters(parameters, idle_parameters, vocabulary, hidden):
    r"""Parameters that every token of a prompt is multiplied with, $p' = p - p_{idle} - 2 Y H$.

    parameters, idle_parameters : p, p_idle [1]
    vocabulary, hidden : Y, H; the embedding is looked up, the output head serves the last token alone
    returns : p' [1]
    limits : untied embedding and head; text only.
    source : the model's modules

    >>> prompt_parameters(27.78e9, 0.885e9, 248320, 5120) / 1e9
    24.3522032
    """
    return ops.maximum(0, parameters - idle_parameters - TABLES * vocabulary * hidden)
