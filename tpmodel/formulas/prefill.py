"""A whole prompt: its passes, and where attention overtakes the linear layers."""

from ..formula import formula, ops

TABLES = 2  # embedding and output head


@formula
def chunks(prompt_tokens, chunk_tokens):
    r"""Passes that a prompt takes.
    limits : one prompt at a time.
    source : vLLM, chunked prefill
    >>> chunks(prompt_tokens=8192, chunk_tokens=2048)
    4.0
    """
    return ops.ceil(prompt_tokens / chunk_tokens)


@formula
def pass_tokens(prompt_tokens, chunk_tokens):
    r"""Tokens of one pass of a prompt, on average.
    returns : what one all-reduce carries
    limits : the last pass is shorter where C does not divide n.
    source : a quotient
    >>> pass_tokens(prompt_tokens=8192, chunk_tokens=2048), pass_tokens(prompt_tokens=9000, chunk_tokens=8192)
    (2048.0, 4500.0)
    """
    return prompt_tokens / ops.maximum(1, chunks(prompt_tokens, chunk_tokens))


@formula
def mean_context_tokens(prompt_tokens, pass_tokens):
    r"""Tokens already in the cache when a pass of a prompt begins, on average.
    returns : the context at which one pass stands for all m: attention grows evenly from the first to the last
    limits : an empty cache at the start.
    source : the mean of 0, n/m, 2n/m, ...
    >>> mean_context_tokens(prompt_tokens=8192, pass_tokens=2048)
    3072.0
    """
    return ops.maximum(0, prompt_tokens - pass_tokens) / 2


@formula
def prefill_s(chunks, pass_s):
    r"""Time of a whole prompt: as many passes, each as long as the mean one.
    returns : t_pre, the time to the first token without queueing
    limits : no state-layer arithmetic, no sampling; overlap would lower it.
    source : a product
    >>> prefill_s(chunks=4, pass_s=0.25)
    1.0
    """
    return chunks * pass_s


@formula
def communication_frac(communication_s, pass_s):
    r"""Share of the all-reduces in the time of a pass; of a prompt the same.
    returns : sigma, 0 to 1
    limits : nothing overlapped.
    source : a quotient
    >>> communication_frac(communication_s=0.3, pass_s=1.0)
    0.3
    """
    return communication_s / pass_s


@formula
def overtake_tokens(parameters, full_layers, heads, head_elements, flop_per_s, attention_flop_per_s):
    r"""Prompt length at which attention takes as long as the linear layers.
    returns : T*; neither the GPUs nor the fraction they reach matter, both times share them
    limits : the same fraction for both.
    source : linear_s = attention_s with an empty cache, solved for the tokens
    >>> round(overtake_tokens(27.78e9, 16, 24, 256, 380e12, 47.4e12))
    35250
    """
    return parameters * attention_flop_per_s / (ops.maximum(1, full_layers) * heads * head_elements * flop_per_s)


@formula
def prompt_parameters(parameters, idle_parameters, vocabulary, hidden):
    r"""Parameters that every token of a prompt is multiplied with.
    limits : untied embedding and head; text only.
    source : the model's modules
    >>> prompt_parameters(27.78e9, 0.885e9, 248320, 5120) / 1e9
    24.3522032
    """
    return ops.maximum(0, parameters - idle_parameters - TABLES * vocabulary * hidden)
