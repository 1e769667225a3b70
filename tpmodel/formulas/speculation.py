"""Speculative decoding in its plain form: draft K tokens, verify them in one pass, keep the accepted prefix."""

from .. import ops
from ..formula import formula

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
