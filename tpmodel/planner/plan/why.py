"""How a number of a plan came about: the tree of quantities under it."""

from dataclasses import replace

from ...formula.units import fixed
from ...formula.view import View
from ...formula.vocabulary import NAMES
from . import assume, one_pass

MID = assume.ENDS.index("mid")
SHOWN = 6  # significant digits


def why(plan, name):
    """The derivation of the quantity `name` as plain values: name, symbol, value, unit, how, source, parts."""
    views = _views(plan)
    for view in views:
        if name in NAMES or name in view:
            try:
                return _document(view.why(name))
            except AttributeError:
                continue
    known = sorted({held for view in views for held in view.names()})
    raise ValueError(f"why = {name[:60]!r} is not accepted: it must be a quantity of this plan, such as decode_tokens_per_s, kv_pool_bytes, "
                     f"prefill_s, or what they rest on: {', '.join(known)}")


def _views(plan):
    """The plan's decode and its prompt, each as one view of the slowest GPU, with the memory of the fullest."""
    best = plan.best
    setting = replace(plan.setting, ranks=best.placement.ranks)
    memory = min(best.memories, key=lambda memory: memory.kv_pool_bytes)
    card = next(card for card in plan.machine.cards if card.key == memory.name)
    number = card.numbers.get("reported_bytes", card.numbers["vram_bytes"])
    held = {"vram_bytes": number.base, "utilisation_frac": best.util, "weights_bytes": memory.weights_bytes, "overhead_bytes": memory.overhead_bytes,
            "max_context_tokens": best.holds_tokens, "native_tokens": plan.config.native_tokens or best.holds_tokens}
    sources = {"vram_bytes": number, "weights_bytes": "counted: the modules on this GPU", "overhead_bytes": "assumed, or measured with this model or card",
               "max_context_tokens": "the engine's own block rules: the longest sequence that the pool holds", "utilisation_frac": "asked for, or what is free"}
    room = View({**held, "ranks": 1}, given=("max_context_tokens",), sources=sources)
    return [room] if not best.fits else [_decode(plan, setting), _prompt(plan, setting), room]


def _decode(plan, setting):
    """A step, or a round with drafts, of all sequences together."""
    best, ask = plan.best, plan.ask
    job = one_pass.decode(setting, best.context_tokens, ask.batch, ask.mtp)
    v = one_pass.whole(plan.config, best.placement, plan.machine.link, job, MID, best.decode.terms)
    if not ask.mtp and ask.batch == 1:
        return v
    chance = assume.ACCEPTANCE[MID] if ask.acceptance is None else ask.acceptance
    draft_s = best.decode.terms["drafts"][MID] / ask.mtp if ask.mtp else 0

    def of_all_sequences(v):
        """what a round confirms, of all sequences together"""
        return ask.batch * v.confirmed_tokens_per_s

    v = v.extended(drafts=ask.mtp, acceptance_frac=chance).given(draft_s=draft_s).sourced(draft_s="the draft layer and the head, read once a draft")
    return v.derived(decode_tokens_per_s=of_all_sequences)


def _prompt(plan, setting):
    """A pass of the prompt, and all of them."""
    tokens = plan.best.prefill.prompt_tokens
    job = one_pass.prompt(setting, tokens)
    v = one_pass.whole(plan.config, plan.best.placement, plan.machine.link, job, MID, plan.best.prefill.terms)
    return v.extended(prompt_tokens=tokens, chunk_tokens=min(tokens, assume.CHUNK_TOKENS))


def _document(why):
    term = NAMES.get(why.name)
    return {"name": why.name, "symbol": term.symbol if term else "", "value": why.value, "unit": term.unit if term else "", "how": why.how,
            "source": why.source, "parts": [_document(part) for part in why.parts]}


def lines(tree, depth=0):
    """The tree as indented lines."""
    unit = f" {tree['unit']}" if tree["unit"] else ""
    symbol = f" [{tree['symbol']}]" if tree["symbol"] else ""
    here = f"{'  ' * depth}{tree['name']}{symbol} = {_shown(tree['value'])}{unit}   ({tree['how']}: {tree['source']})"
    return "\n".join([here, *(lines(part, depth + 1) for part in tree["parts"])])


def _shown(value):
    """A number with six significant digits."""
    return fixed(value, 0) if abs(value) >= 10**SHOWN else f"{value:.{SHOWN}g}"
