"""How a number of a plan came about: the tree of quantities under it."""

from ... import inputs
from ...catalog.gpus import memory as card_memory
from ...formula.units import fixed
from ...formula.view import View
from ...formula.vocabulary import NAMES
from . import assume, drafts, one_pass, overhead, ways

SHOWN = 6  # significant digits
DECODES = ("decode_tokens_per_s", "confirmed_tokens_per_s", "round_s", "draft_s")
BLOCK_RULES = "the engine's own block rules: the longest sequence that the pool holds"


def why(plan, name):
    """The derivation of the quantity `name` as plain values: name, symbol, value, unit, how, source, parts."""
    behind = overhead.of_plan(plan).behind
    views = [*_views(plan), behind]
    for view in views:
        if (name in NAMES or name in view) and not (plan.setting.pooling and name in DECODES):
            try:
                return _document(view.why(name), behind)
            except AttributeError:
                continue
    known = sorted({held for view in views for held in view.names()})
    such = "pass_s or kv_pool_bytes" if plan.setting.pooling else "decode_tokens_per_s, kv_pool_bytes, prefill_s"
    raise inputs.refused("why", name, f"it must be a quantity of this plan, such as {such}, or what they rest on: "
                         f"{inputs.nearest(known, name[:60])}")


def _views(plan):
    """The plan's decode and its prompt, each as one view of the slowest GPU, with the memory of the fullest."""
    best, ask = plan.best, plan.ask

    def of_all_sequences(v):
        """what a round confirms, of all sequences together"""
        return ask.batch * (v.confirmed_tokens_per_s if ask.mtp else 1 / v.pass_s)

    memory = min(best.memories, key=lambda memory: memory["kv_pool_bytes"])
    card = next(card for card in plan.machine.cards if card.key == memory["name"])
    size = card_memory(card)
    held = {"vram_bytes": (size.base, size), "utilisation_frac": (best.util, "asked for, or what is free"),
            "weights_bytes": (memory["weights_bytes"], "counted: the modules on this GPU"),
            "overhead_bytes": (memory["overhead_bytes"], "part by part, as vLLM counts at its start"),
            "max_context_tokens": (best.holds_tokens, BLOCK_RULES),
            "native_tokens": (plan.config.native_tokens or best.holds_tokens, "the setting"),
            "ranks": (1, "the setting")}
    values, sources = ({name: pair[i] for name, pair in held.items()} for i in (0, 1))
    room = View(values, given=("max_context_tokens",), sources=sources)
    if not best.fits:
        return [room]
    setting, tokens = plan.setting, best.prefill.prompt_tokens
    view = lambda job, speed: one_pass.whole(plan.config, best.placement, plan.machine.link, job, speed.terms)
    jobs = ways.jobs(setting, best.placement, ask, best.context_tokens, tokens)
    prompt = view(jobs["prefill"], best.prefill)
    if setting.pooling:
        return [prompt, room]
    decode = view(jobs["decode"], best.decode)
    prompt = prompt.extended(prompt_tokens=tokens, chunk_tokens=min(tokens, ask.batch_tokens))
    if ask.mtp:
        chance = drafts.chances(ask)[assume.MID]
        draft_s = best.decode.terms["drafts"][assume.MID] / ask.mtp
        decode = decode.extended(drafts=ask.mtp, acceptance_frac=chance).given(draft_s=draft_s)
        decode = decode.sourced(draft_s="the draft layer and the head, read once a draft")
    if ask.mtp or ask.batch > 1:
        decode = decode.derived(decode_tokens_per_s=of_all_sequences)
    return [decode, prompt, room]


def _document(why, behind):
    symbol, unit = (NAMES[why.name].symbol, NAMES[why.name].unit) if why.name in NAMES else ("", "")
    under = why.parts
    if why.name == "overhead_bytes" and "overhead_bytes" not in behind:
        under = (behind.why("parts_bytes"),)
    return {"name": why.name, "symbol": symbol, "value": why.value, "unit": unit, "how": why.how, "source": why.source,
            "parts": [_document(part, behind) for part in under]}


def lines(tree, depth=0):
    """The tree as indented lines, numbers with six significant digits."""
    value = tree["value"]
    text = fixed(value, 0) if abs(value) >= 10**SHOWN else f"{value:.{SHOWN}g}"
    symbol, unit = f" [{tree['symbol']}]" * bool(tree["symbol"]), f" {tree['unit']}" * bool(tree["unit"])
    here = f"{'  ' * depth}{tree['name']}{symbol} = {text}{unit}   ({tree['how']}: {tree['source']})"
    return "\n".join([here, *(lines(part, depth + 1) for part in tree["parts"])])
