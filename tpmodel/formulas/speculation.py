"""Speculative decoding in its plain form: draft K tokens, verify them in one pass, keep the accepted prefix."""

from .. import ops
from ..formula import formula
from .collectives import communication_s
from .decode import decode_s, weight_read_s

MAX_DRAFTS = 16


@formula
def round_tokens(drafts, acceptance_frac):
    r"""Tokens confirmed a round, $e = 1 + a + a^2 + \dots + a^K = \frac{1 - a^{K+1}}{1 - a}$, K at most 16.

    drafts : K [1]
    acceptance_frac : a, the same for every position [1]
    returns : e, 1 to K + 1: the verify pass itself always gives one [token]
    limits : real acceptance falls with the position, so this is the upper form; at most 16 drafts.
    source : Leviathan et al. 2023, arXiv:2211.17192, equation 1

    >>> round_tokens(drafts=3, acceptance_frac=0.5)
    1.875
    """
    total = 1 + 0 * acceptance_frac
    power = 1
    for position in range(1, MAX_DRAFTS + 1):
        power = power * acceptance_frac
        total = total + ops.where(drafts >= position, power, 0)
    return total


@formula
def round_allreduces(allreduces, drafts, draft_allreduces):
    r"""All-reduces of one round: one verify pass, and every draft step, $n_r = n_{ar} + K n_d$.

    allreduces : n_ar, of one pass through the model; as many whatever the number of tokens in it [1]
    drafts : K [1]
    draft_allreduces : n_d, of one draft step; Qwen's MTP layer has two and one for its embedding [1]
    returns : n_r [1]
    limits : the verify pass carries K + 1 tokens, so its messages are K + 1 times as large.
    source : a sum

    >>> round_allreduces(allreduces=128, drafts=3, draft_allreduces=3)
    137.0
    """
    return allreduces + drafts * draft_allreduces


@formula
def allreduces_per_confirmed_token(round_allreduces, round_tokens):
    r"""All-reduces per confirmed token, $n_c = n_r / e$.

    round_allreduces : n_r [1]
    round_tokens : e [token]
    returns : n_c [1]
    limits : the count falls; the bytes do not, as each round carries K + 1 tokens.
    source : a quotient

    >>> allreduces_per_confirmed_token(round_allreduces=137, round_tokens=1.875)
    73.06666666666666
    """
    return round_allreduces / round_tokens


@formula
def draft_s(draft_bytes, ranks, memory_bytes_per_s, achieved_frac, draft_allreduces, message_bytes, link_bytes_per_s,
            allreduce_latency_s):
    r"""Time of one draft step: read the draft layer and the output head, then sum over the link.

    draft_bytes : W_d, all GPUs together; a head kept in 16 bits is most of it [byte]
    ranks, memory_bytes_per_s, achieved_frac : as in weight_read_s
    draft_allreduces : n_d [1]
    message_bytes, link_bytes_per_s, allreduce_latency_s : as in allreduce_s, of one token
    returns : t_d [s]
    limits : one draft after the other; the draft layer's own KV cache is left out.
    source : weight_read_s and communication_s of the draft layer

    >>> round(draft_s(3.4e9, 2, 448e9, 1, 3, 0, 1, 20e-6) * 1e3, 2)
    3.85
    """
    return (
        weight_read_s(draft_bytes, ranks, memory_bytes_per_s, achieved_frac)
        + communication_s(draft_allreduces, message_bytes, ranks, link_bytes_per_s, allreduce_latency_s)
    )


@formula
def verify_s(drafts, read_bytes, ranks, memory_bytes_per_s, achieved_frac, kv_bytes_per_token, context_tokens,
             allreduces, message_bytes, link_bytes_per_s, allreduce_latency_s):
    r"""Time of one verify pass: a decode step whose messages carry K + 1 tokens.

    drafts : K [1]
    message_bytes : M of one token [byte]
    read_bytes, ranks, memory_bytes_per_s, achieved_frac : as in weight_read_s
    kv_bytes_per_token, context_tokens : as in kv_read_s
    allreduces, link_bytes_per_s, allreduce_latency_s : as in communication_s
    returns : t_v; with K = 0 a plain decode step [s]
    limits : weights and cache are read once for all K + 1 tokens, whose arithmetic hides behind the read.
    source : decode_s with a message K + 1 times as large

    >>> round(verify_s(3, 20e9, 2, 448e9, 1, 32768, 0, 128, 10240, 2e9, 0) * 1e3, 1)
    24.9
    """
    return decode_s(
        read_bytes, ranks, memory_bytes_per_s, achieved_frac, kv_bytes_per_token, context_tokens,
        allreduces, (drafts + 1) * message_bytes, link_bytes_per_s, allreduce_latency_s,
    )


@formula
def round_s(verify_s, drafts, draft_s, round_overhead_s):
    r"""Time of one round, $t_r = t_v + K t_d + t_o$.

    verify_s : t_v [s]
    drafts : K [1]
    draft_s : t_d [s]
    round_overhead_s : t_o; draft steps outside the CUDA graphs make it the largest part [s]
    returns : t_r [s]
    limits : drafting and verifying take turns.
    source : the sum of the three

    >>> round_s(verify_s=0.020, drafts=3, draft_s=0.004, round_overhead_s=0.001)
    0.033
    """
    return verify_s + drafts * draft_s + round_overhead_s


@formula
def confirmed_tokens_per_s(round_tokens, round_s):
    r"""Confirmed tokens a second of one stream, $r_c = e / t_r$.

    round_tokens : e [token]
    round_s : t_r [s]
    returns : r_c; below the plain rate when t_r grows more than e [token/s]
    limits : one stream.
    source : a quotient

    >>> confirmed_tokens_per_s(round_tokens=2, round_s=0.04)
    50.0
    """
    return round_tokens / round_s
