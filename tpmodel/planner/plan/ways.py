"""Every way to split a model over a machine, and how well each does."""

from dataclasses import replace

from ...formulas import speculation
from ..engine.versions import Refused
from . import assume, one_pass, placement
from .partition import fastest
from .values import Speed, Way

SHARED = "offload on all"  # tensor parallel, and offload on every GPU


def candidates(config, machine):
    """Every way that `auto` compares: (kind, layers)."""
    n, count, cards = len(machine.cards), len(config.order), machine.cards
    found = [("one", None), ("offload", None)]
    if n > 1:
        found += [("tp", None), (SHARED, None)]
    if 1 < n <= count:
        found.append(("pp", None))
        for rates in ([card.bf16_flop_per_s for card in cards], [card.vram_bytes for card in cards]):  # as fast as each is, as large as each is
            uneven = "pp", tuple(fastest(count, rates, [count] * n))
            if len(set(rates)) > 1 and uneven not in found:
                found.append(uneven)
    return found


def way(config, machine, setting, ask, kind, layers=None):
    """One Way: memory of each GPU, longest context, speeds. What the engine would refuse is Refused."""
    placed = placement.place(config, machine.cards, {"offload": "one", SHARED: "tp"}.get(kind, kind), layers)
    used, budget = placement.budgets(placed.cards, ask.util, machine.reserves_bytes)
    setting = replace(setting, ranks=placed.ranks)
    if kind in ("offload", SHARED):
        tokens = ask.context or min(assume.PROMPT_TOKENS, setting.context_tokens)
        placed = placement.with_offload(config, placed, replace(setting, context_tokens=tokens), budget, ask.batch)
        if not placed.offloaded_bytes:
            raise Refused(f"offload is not needed: the weights fit on {'all GPUs together' if placed.ranks > 1 else 'the first GPU'}")
    found = [placement.memories(config, placed, setting, budget, end) for end in range(len(assume.ENDS))]
    longest = tuple(placement.longest(config, placed, setting, memories, ask.batch) for memories in found)
    pool = placement.pool(config, placed, setting, max(0.0, min(memory.kv_pool_bytes for memory in found[1])))
    at, fits = ask.context or min(assume.PROMPT_TOKENS, longest[1]), longest[1] >= (ask.context or 1)
    made = Way(placed, used, found[1], longest, at, fits, pool)
    if not fits:
        return made
    return replace(made, decode=decode_speed(config, placed, setting, machine.link, at, ask), prefill=prefill_speed(config, placed, setting, machine.link, at))


def decode_speed(config, placed, setting, link, context_tokens, ask):
    """Decode of all sequences together, at a context; with drafts, of confirmed tokens."""
    terms = one_pass.terms(config, placed, link, one_pass.decode(setting, context_tokens, ask.batch, ask.mtp))
    accepted = assume.ACCEPTANCE if ask.acceptance is None else (ask.acceptance,) * len(assume.ENDS)
    return Speed(one_pass.rates(terms, [ask.batch * speculation.round_tokens(ask.mtp, chance) for chance in accepted]), terms)


def prefill_speed(config, placed, setting, link, context_tokens):
    """One prompt, of the usual length or of as much as fits."""
    prompt_tokens = min(assume.PROMPT_TOKENS, context_tokens)
    terms = one_pass.terms(config, placed, link, one_pass.prompt(setting, prompt_tokens))
    return Speed(one_pass.rates(terms, [prompt_tokens] * len(assume.ENDS)), terms, prompt_tokens)
