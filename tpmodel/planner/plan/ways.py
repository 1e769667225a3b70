"""Every way to split a model over a machine, and how well each does."""

from dataclasses import replace

from ...formulas.speculation import round_tokens
from ..engine import architectures, starts
from ..engine.versions import Refused
from . import assume, one_pass, placement
from .partition import fastest
from .values import Speed, Way

SHARED = "tp+offload"


def candidates(config, machine):
    """Every way that `auto` compares: (kind, layers)."""
    n, count, cards = len(machine.cards), len(config.order), machine.cards
    found = [(kind, None) for kind in ("one", "offload", *(("tp", SHARED) if n > 1 else ()))]
    if 1 < n <= count:
        found.append(("pp", None))
        for rates in ([card.bf16_flop_per_s for card in cards], [card.vram_bytes for card in cards]):
            uneven = "pp", tuple(fastest(count, rates, [count] * n))  # by speed, by size
            if len(set(rates)) > 1 and uneven not in found:
                found.append(uneven)
    return found


def way(config, machine, setting, ask, kind, layers=None):
    """One Way: memory of each GPU, longest context, speeds. What the engine would refuse is Refused."""
    placed = placement.place(config, machine.cards, kind, layers)
    used, budget = placement.budgets(placed.cards, ask.util, machine.reserves_bytes)
    architectures.check_architecture(config, setting.rules, len(placed.layers))
    starts.check_build(config, placed.cards, setting.rules)
    starts.check_cache(config, setting.kv_dtype, placed.cards)
    starts.check_ranks(config, placed.ranks, setting.rules)
    kernels, ends = starts.kernels(config, setting.kv_dtype, placed.cards), range(len(assume.ENDS))
    setting = replace(setting, ranks=placed.ranks, **kernels)
    if kind in ("offload", SHARED):
        tokens = ask.context or ask.prompt or min(assume.PROMPT_TOKENS, setting.context_tokens)
        placed = placement.with_offload(config, placed, replace(setting, context_tokens=tokens), budget, ask.batch)
        if not placed.offloaded_bytes:
            where = "all GPUs together" if placed.ranks > 1 else "the first GPU"
            raise Refused(f"offload is not needed: the weights fit on {where}")
    found = [placement.memories(config, placed, setting, budget, end) for end in ends]
    longest = tuple(placement.longest(config, placed, setting, memories, ask.batch) for memories in found)
    middle, holds = found[assume.MID], longest[assume.MID]
    at = ask.context or min(max(assume.PROMPT_TOKENS, ask.prompt or 0), holds)
    line = replace(setting, context_tokens=ask.context or holds or setting.context_tokens)  # as vLLM is started
    pool = placement.pool(config, placed, line, middle)
    blocks = placement.pool(config, placed, line, found[0]).pool_blocks  # at the low end: a line must start there too
    at_once = ask.max_num_seqs or starts.sequences(config, placed.cards, blocks, ask.batch)
    most = placement.most(config, placed, setting, middle, at)
    made = Way(placed, used, middle, longest, at, holds >= (ask.context or ask.prompt or 1), pool, at_once, most)
    if not made.fits:
        return made
    starts.check_sequences(config, ask.max_num_seqs, pool.pool_blocks)
    accepted = assume.ACCEPTANCE if ask.acceptance is None else (ask.acceptance,) * len(ends)
    confirmed = [ask.batch * round_tokens(ask.mtp, chance) for chance in accepted]
    tokens = ask.prompt or min(assume.PROMPT_TOKENS, at)
    jobs = one_pass.decode(setting, at, ask.batch, ask.mtp), one_pass.prompt(setting, tokens, setting.batch_tokens)
    decode, prefill = (one_pass.terms(config, placed, machine.link, job) for job in jobs)
    return replace(made, decode=Speed(one_pass.rates(decode, confirmed), decode),
                   prefill=Speed(one_pass.rates(prefill, [tokens] * len(ends)), prefill, tokens))
