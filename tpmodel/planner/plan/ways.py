"""Every way to split a model over a machine, and how well each does."""

from dataclasses import replace

from ...formula.units import GIB
from ...formulas.speculation import round_tokens
from ..engine import architectures, starts
from ..engine.versions import Refused
from . import apart, assume, drafts, one_pass, partition, placement, uneven, users
from .split import documents
from .values import Speed, Way

def candidates(config, machine, setting, ask):
    """Every way that `auto` compares: (name, layers of each stage)."""
    n, most = len(machine.cards), len(config.order)
    mixed = [(ranks, n // ranks) for ranks in range(2, n) if n % ranks == 0]
    pipes = [("pp", n), *((f"tp{ranks}xpp{stages}", stages) for ranks, stages in mixed)]
    whole = ["one", *(("tp", "replicas") if n > 1 else ()), *(f"replicas{r}xtp{ranks}" for ranks, r in mixed)]
    even = 2 ** (n.bit_length() - 1)  # heads seldom divide by 3, 5, 6 or 7
    whole += [f"tp{even}"] if 1 < even < n else []
    found, offloads = [(name, None) for name in whole], [("offload", None), ("tp+offload", None)][: min(n, 2)]
    for name, stages in pipes:
        if 1 < stages <= most:
            searched = uneven.searched(config, machine, setting, ask, name)
            found += [(name, layers) for layers in (None, *searched)]
            offloads += [(f"{name}+offload", (None, *searched)[-1])] if name == "pp" else []  # of the longest context
    return found + (offloads if ask.cpu_offload_gib is None else [])


def jobs(setting, placed, ask, context_tokens, prompt_tokens):
    """{decode, prefill: the Job} of the fullest replica of a way; of an embedding model, documents alone."""
    if setting.pooling:  # a pass holds no more documents than may run at once
        full = min(ask.batch_tokens, prompt_tokens * setting.sequences)
        return {"prefill": documents(setting, prompt_tokens, full, engine=ask.engine)}
    batch = placed.share(ask.batch)
    return {"decode": one_pass.decode(setting, context_tokens, batch, ask.mtp, engine=ask.engine),
            "prefill": one_pass.prompt(setting, prompt_tokens, ask.batch_tokens, engine=ask.engine)}


def _at_once(config, placed, setting, ask, budget):
    """The setting with the sequences that may run at once, and --max-num-seqs where the line must have it.

    Fewer sequences leave more memory to the cache: as many fewer as one context needs to fit, and in a model with
    states no more than blocks, at the low end too. None are given up where that gains nothing: where what the engine
    takes was measured, and of documents, which come in many lengths.
    """
    default, asked = max(map(starts.default_sequences, placed.cards)), ask.max_num_seqs
    first = asked or starts.sequences(config, placed.cards, starts.SEQUENCES, placed.share(ask.batch))
    if (first or default) > setting.batch_tokens:  # a pass has room for a token of each
        first = int(setting.batch_tokens)
    states = any(layer.state for layer in config.order)
    wanted = ask.context or ask.prompt or min(assume.PROMPT_TOKENS, setting.context_tokens)

    def started(told):
        """(the setting so, what its pool holds at the low end)"""
        found = replace(setting, sequences=told or default)
        least = placement.memories(config, placed, found, budget, 0)
        return found, placement.pool(config, placed, replace(found, context_tokens=wanted), least)

    told = first
    found, pool = started(told)
    room, given = pool.pool_blocks, asked or placed.share(ask.batch) > 1
    while found.sequences > 1 and not (given or pool.fits and (not states or pool.pool_blocks >= found.sequences)):
        told = max(1, int(pool.pool_blocks)) if pool.fits else found.sequences // 4
        found, pool = started(told)
    if not pool.fits and (setting.pooling or pool.pool_blocks == room):
        return started(first)[0], first
    return found, told


def way(config, machine, setting, ask, kind, layers=None):
    """One Way: memory of each GPU, longest context, speeds. What the engine would refuse is Refused."""
    placed = placement.place(config, machine.cards, kind, layers)
    used, budget = placement.budgets(placed.cards, ask.util, machine.reserves_bytes, placed.together)
    starts.check_free(placed.cards, machine.reserves_bytes, used, placed.together, setting.rules)
    architectures.check_architecture(config, setting.rules, len(placed.layers))
    starts.check_build(config, placed.cards, setting.rules)
    starts.check_cache(config, setting.kv_dtype, placed.cards)
    starts.check_ranks(config, placed.cards, placed.ranks, setting.rules)
    kernels, ends = starts.kernels(config, setting.kv_dtype, placed.cards), range(len(assume.ENDS))
    setting = replace(setting, ranks=placed.ranks, **kernels)
    asked = ask.cpu_offload_gib and ask.cpu_offload_gib * GIB
    if asked or partition.split(kind, len(machine.cards)).offload:
        tokens = ask.context or ask.prompt or min(assume.PROMPT_TOKENS, setting.context_tokens)
        setting = replace(setting, rules=replace(setting.rules, graphs=False))  # the line says --enforce-eager
        short = replace(setting, context_tokens=tokens, sequences=ask.max_num_seqs or placed.share(ask.batch))
        placed = placement.with_offload(config, placed, short, budget, ask.batch, asked)
        if not placed.offloaded_bytes:
            where = "all GPUs together" if len(placed.cards) > 1 else "the first GPU"
            raise Refused(f"offload is not needed: the weights fit on {where}")
    setting, at_once = _at_once(config, placed, setting, ask, budget)
    found = [placement.memories(config, placed, setting, budget, end) for end in ends]
    longest = tuple(placement.longest(config, placed, setting, memories, ask.batch) for memories in found)
    middle, holds = found[assume.MID], longest[assume.MID]
    usual = 0 if setting.pooling and ask.prompt else assume.PROMPT_TOKENS  # documents need no more than their length
    at = ask.context or min(max(usual, ask.prompt or 0), holds)
    line = replace(setting, context_tokens=ask.context or holds or setting.context_tokens)  # as vLLM is started
    pool = placement.pool(config, placed, line, middle)
    made = Way(placed, used, middle, longest, at, holds >= (ask.context or ask.prompt or 1), pool, at_once, setting)
    if made.fits:
        starts.check_sequences(config, ask.max_num_seqs, pool.pool_blocks)
    return _with_speeds(config, machine.link, setting, ask, made, budget)


def _with_speeds(config, link, setting, ask, made, budget):
    """The Way with its speeds, where it fits, and what it gives to many users."""
    placed, at = made.placement, made.context_tokens
    confirmed = [round_tokens(ask.mtp, chance) for chance in drafts.chances(ask)]
    if made.fits:
        tokens = ask.prompt or min(assume.PROMPT_TOKENS, at)
        work = jobs(setting, placed, ask, at, tokens)
        spent = {part: one_pass.terms(config, placed, link, job) for part, job in work.items()}
        copies = placed.replicas if setting.pooling else 1  # one prompt goes to one of them, a queue to all
        done, prompts = copies * work["prefill"].passes * work["prefill"].tokens, spent["prefill"]
        together = setting.pooling  # one number was measured for all its kernels
        rates = one_pass.rates(prompts, [done] * len(confirmed)) if together else apart.rates(prompts, done)
        made = replace(made, prefill=Speed(rates, prompts, tokens))
        if "decode" in spent:
            rates = one_pass.rates(spent["decode"], [ask.batch * one for one in confirmed])
            made = replace(made, decode=Speed(rates, spent["decode"]))
    if setting.pooling:
        return made
    return replace(made, count=lambda: _users(config, link, setting, ask, made, budget, confirmed[assume.MID]))


def _users(config, link, setting, ask, made, budget, confirmed):
    """The Users of a Way."""
    placed, at = made.placement, made.context_tokens
    if not made.fits:  # fewer may fit
        at = ask.context or ask.prompt or min(assume.PROMPT_TOKENS, setting.context_tokens)
    step = lambda sequences: one_pass.decode(setting, at, sequences, ask.mtp, engine=ask.engine)
    most = placement.most(config, placed, setting, budget, max(1, at), ask.max_num_seqs)
    line = placement.at_once(config, placed, setting, made.memories, max(1, at)) if made.fits else 0
    full = bool(ask.max_num_seqs) and most >= ask.max_num_seqs * placed.replicas
    return users.users(config, placed, link, step, ask.batch, most, line, confirmed, at, full)
