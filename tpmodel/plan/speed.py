"""How fast a placement decodes and reads prompts: low, mid, high, and which term decides."""

from ..formulas import speculation
from . import assume, one_pass


def decode_speed(config, placement, setting, link, context_tokens, batch=1, drafts=0, acceptance_frac=None):
    """The decode part of a plan: tokens/s of all sequences together."""
    found = one_pass.terms(config, placement, link, one_pass.decode(setting, context_tokens, batch, drafts))
    accepted = assume.ACCEPTANCE if acceptance_frac is None else (acceptance_frac,) * len(assume.ENDS)
    return _part(found, [batch * speculation.round_tokens(drafts, chance) for chance in accepted])


def prefill_speed(config, placement, setting, link, prompt_tokens):
    """The prefill part of a plan: prompt tokens/s."""
    found = one_pass.terms(config, placement, link, one_pass.prompt(setting, prompt_tokens))
    return _part(found, [prompt_tokens] * len(assume.ENDS)) | {"prompt_tokens": prompt_tokens}


def _part(terms, tokens):
    """{"low", "mid", "high", "unit", "limited_by", "terms"}; terms in ms."""
    return {**dict(zip(assume.ENDS, one_pass.rates(terms, tokens))), "unit": "token/s", "limited_by": max(terms, key=lambda name: terms[name][1]),
            "terms": {name: {"low_ms": fast * 1e3, "mid_ms": middle * 1e3, "high_ms": slow * 1e3} for name, (slow, middle, fast) in terms.items()}}
