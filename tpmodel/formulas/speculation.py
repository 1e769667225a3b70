"""Speculative decoding in its plain form: draft K tokens, verify them in one pass, keep the accepted prefix."""

from ..formula import formula, ops
from .collectives import protocol_allreduce_s
from .passes import weight_read_s


@formula
def round_tokens(drafts, acceptance_frac):
    r"""Tokens confirmed a round.
    returns : e, 1 to K + 1: the verify pass itself always gives one
    limits : real acceptance falls with the position, so this is the upper form.
    source : Leviathan et al. 2023, arXiv:2211.17192, equation 1
    >>> round_tokens(drafts=3, acceptance_frac=0.5)
    1.875
    """
    return (1 - ops.power(acceptance_frac, drafts + 1)) / (1 - acceptance_frac)


@formula
def accepted_frac(round_tokens, drafts):
    r"""Accepted drafts as a share of all that were drafted, which is what engines print as a rate of acceptance.
    returns : 0 without drafts; below the chance of the next draft, since what follows a refused draft counts as refused
    limits : every round drafts K; an engine that stops early when it is unsure drafts fewer.
    source : a quotient; vLLM, v1/spec_decode/metrics.py
    >>> round(accepted_frac(round_tokens=1.875, drafts=3), 4)
    0.2917
    """
    return (round_tokens - 1) / ops.maximum(1, drafts)


@formula
def printed_round_tokens(accepted_frac, drafts):
    r"""Tokens confirmed a round, from the accepted share of the drafts: the mean acceptance length that vLLM prints.
    limits : as accepted_frac.
    source : vLLM, v1/spec_decode/metrics.py
    >>> printed_round_tokens(accepted_frac=0.5, drafts=3)
    2.5
    """
    return 1 + drafts * accepted_frac


def chance(tokens, drafts):
    """The chance of each next draft that confirms so many `tokens` a round: round_tokens the other way round.

    tokens : 1 to K + 1; e grows with a, so halving finds the place, to the last bit

    >>> round(chance(1.875, 3), 12), round(chance(1.7, 1), 12)
    (0.5, 0.7)
    """
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if round_tokens(drafts, middle) < tokens else (low, middle)
    return low


@formula
def verify_tokens(drafts):
    r"""Tokens of one verify pass: the drafts, and one token more.
    returns : with K = 0 a plain decode step
    limits : one stream.
    source : Leviathan et al. 2023, arXiv:2211.17192, section 2
    >>> verify_tokens(drafts=3)
    4.0
    """
    return drafts + 1


@formula
def round_allreduces(allreduces, drafts, draft_allreduces):
    r"""All-reduces of one round: one verify pass, and every draft step.
    limits : the verify pass carries K + 1 tokens, so its messages are K + 1 times as large.
    source : a sum
    >>> round_allreduces(allreduces=128, drafts=3, draft_allreduces=3)
    137.0
    """
    return allreduces + drafts * draft_allreduces


@formula
def allreduces_per_confirmed_token(round_allreduces, round_tokens):
    r"""All-reduces per confirmed token.
    limits : the count falls; the bytes do not, as each round carries K + 1 tokens.
    source : a quotient
    >>> allreduces_per_confirmed_token(round_allreduces=137, round_tokens=1.875)
    73.06666666666666
    """
    return round_allreduces / round_tokens


@formula
def draft_allreduce_s(message_bytes, drafts, ranks, link_bytes_per_s, allreduce_latency_s, bulk_latency_s):
    r"""Time of one all-reduce of a draft step, whose message is $1 / (K + 1)$ of that of the verify pass.
    limits : as protocol_allreduce_s.
    source : protocol_allreduce_s of the smaller message
    >>> draft_allreduce_s(40960, 3, 2, 2.2e9, 9e-6, 35e-6) == protocol_allreduce_s(10240, 2, 2.2e9, 9e-6, 35e-6)
    True
    """
    message = message_bytes / (drafts + 1)
    return protocol_allreduce_s(message, ranks, link_bytes_per_s, allreduce_latency_s, bulk_latency_s)


@formula
def draft_s(draft_bytes, ranks, memory_bytes_per_s, achieved_frac, draft_allreduces, draft_allreduce_s, draft_gap_s):
    r"""Time of one draft step: read the draft layer and the output head, sum over the link, wait for the engine.
    limits : one draft after the other; the draft layer's own KV cache is left out.
    source : weight_read_s, the all-reduces of the draft layer, and the wait
    >>> round(draft_s(3.4e9, 2, 448e9, 1, 3, 20e-6, draft_gap_s=1e-3) * 1e3, 2)
    4.85
    """
    sent_s = draft_allreduces * draft_allreduce_s
    return weight_read_s(draft_bytes, ranks, memory_bytes_per_s, achieved_frac) + sent_s + draft_gap_s


@formula
def round_s(pass_s, drafts, draft_s):
    r"""Time of one round: the verify pass with its wait, and the draft steps.
    limits : drafting and verifying take turns; draft steps inside the CUDA graphs.
    source : the sum of the two
    >>> round_s(pass_s=0.021, drafts=3, draft_s=0.004)
    0.033
    """
    return pass_s + drafts * draft_s


@formula
def confirmed_tokens_per_s(round_tokens, round_s):
    r"""Confirmed tokens a second of one stream.
    returns : r_c; below the plain rate when t_r grows more than e
    limits : one stream.
    source : a quotient
    >>> confirmed_tokens_per_s(round_tokens=2, round_s=0.04)
    50.0
    """
    return round_tokens / round_s
