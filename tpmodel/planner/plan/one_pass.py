"""The time of a pass, or of several in a row: decode, drafts under test, many users, a prompt and a long run are calls of it.

Plain Python folds the model's structure into totals for each GPU; a `View` holds them and finds the rest by name.
"""

from dataclasses import dataclass, replace

from ...formula.view import View
from ...formula.vocabulary import NAMES
from ...formulas import passes as one
from ...formulas import pipeline
from . import assume, wire
from .placement import body_bytes, cache_bytes, head_bytes, loads, reads, touched

BF16_BYTES = 2
FAST = assume.ENDS.index("high")
FULL = ("full", "latent")
WORK = ("weight read", "cache read", "linear layers", "attention")  # terms in which GPUs work
UNSPLIT = ("embedding", "vision", "mtp", "head")  # modules that no token of a prompt is multiplied with


@dataclass(frozen=True)
class Job:
    """What is asked of the machine: so many passes of so many tokens in all, each over a context, of a number of sequences.

    setting : the engine's rules for the cache
    formats : what all weights are multiplied in at the slow end, in the middle, at the fast end, where it is not their own
    """

    setting: object
    tokens: float
    context_tokens: float
    sequences: float = 1
    passes: float = 1
    drafts: int = 0
    engine: str = "vllm"
    formats: tuple = ()
    waits: bool = True


def prompt(setting, prompt_tokens, chunk_tokens=assume.CHUNK_TOKENS, **more):
    """The Job of one prompt, chunk by chunk: as many passes, each over the mean context."""
    v = View({"prompt_tokens": prompt_tokens, "chunk_tokens": min(prompt_tokens, chunk_tokens)})
    return Job(setting, v.pass_tokens, v.mean_context_tokens, passes=v.chunks, **more)


def decode(setting, context_tokens, sequences=1, drafts=0, **more):
    """The Job of one step of `sequences` sequences, or of one verify pass."""
    return Job(setting, sequences * (1 + drafts), context_tokens, sequences, drafts=drafts, **more)


def terms(config, placement, link, job):
    """{term: (slow, middle, fast) seconds} of the job; their sums are its times."""
    ends = [_end(config, placement, link, job, end) for end in range(len(assume.ENDS))]
    shares = ends[1].pop("shares")
    found = {}
    for name in ends[1]:
        seconds = tuple(here[name] for here in ends)
        if name == "busy":
            found |= {part: tuple(share * s for s in seconds) for part, share in shares.items()}
        else:
            found[name] = seconds
    return found


def long_run(setting, sequence_tokens, batch_tokens, passes, **more):
    """The Job of many batches of whole documents, one behind the other: each token meets all of its own document, the queue never runs dry."""
    return Job(setting, batch_tokens, sequence_tokens / 2, batch_tokens / sequence_tokens, passes=passes, waits=False, **more)


def rates(terms, tokens):
    """(low, middle, high) tokens/s from the terms of a job that gives so many tokens at each end."""
    return tuple(number / sum(seconds[end] for seconds in terms.values()) for end, number in enumerate(tokens))


def busy_s(config, placement, link, job, end):
    """Work of each stage in one pass, in seconds."""
    return [v.busy_s for v in _stages(config, placement, link, job, end)]


def view(config, placement, link, job, end):
    """The job's pass on its slowest GPU, by name."""
    return max(_stages(config, placement, link, job, end), key=lambda v: v.busy_s)


def whole(config, placement, link, job, end, found):
    """The job's pass as one view: of the slowest GPU, and where stages or copies follow each other, with their sums from the terms `found`."""
    v = view(config, placement, link, job, end)
    if len(placement.layers) == 1 and not placement.offloaded_bytes:
        return v
    sent = ("all-reduces", "hand-overs", "offload copies")
    sums = {"busy_s": [name for name in found if name in WORK], "communication_s": [name for name in found if name in sent]}
    means = {name: sum(found[part][end] for part in parts) / job.passes for name, parts in sums.items()}
    said = {name: "the sum of " + ", ".join(f"{part} {found[part][end] / job.passes * 1e3:.3g} ms" for part in parts) for name, parts in sums.items()}
    return v.given(**means).sourced(**said)


def _end(config, placement, link, job, end):
    """{term: seconds} at one end of all ranges; `busy` is what the GPUs work, `shares` how that divides in the slowest."""
    stages = _stages(config, placement, link, job, end)
    busy = [v.busy_s for v in stages]
    slowest = stages[busy.index(max(busy))]
    piped = len(placement.layers) > 1
    work = pipeline.run_s(job.passes, max(busy), sum(busy) if piped else max(busy), 0, len(placement.layers))
    hidden = work if end == FAST else 0  # at best a copy or a hand-over hides behind the work; an all-reduce is waited for
    found = {"busy": work, "shares": _shares(slowest)}
    if placement.offloaded_bytes:
        found["offload copies"] = max(0, job.passes * copies_s(placement, reads(config, placement, job.tokens)[1], end) - hidden)
    if placement.ranks > 1:
        found["all-reduces"] = job.passes * slowest.communication_s
    if piped:
        handed = handover_s(link, slowest.allreduce_payload_bytes, end)
        found["hand-overs"] = max(0, pipeline.run_s(job.passes, 0, 0, handed, len(placement.layers)) - (hidden if job.passes > 1 else 0))
    if job.waits:
        found["engine's wait"] = job.passes * slowest.gap_s
    if job.drafts:
        drafting = placement.cards[-1:] if placement.kind == "pp" else placement.cards  # the last stage has layer and head
        found["drafts"] = job.drafts * draft_view(config, drafting, link, placement.ranks, job.sequences, job.drafts, end).draft_s
    return found


def _shares(v):
    """How the busy time of a pass divides: between the reads, or between the products, whichever takes longer."""
    reading = {"weight read": v.weight_read_s, "cache read": v.kv_read_s}
    computing = {"linear layers": v.linear_s, "attention": v.attention_s}
    longer = max((reading, computing), key=lambda parts: sum(parts.values()))
    whole = sum(longer.values())
    return {name: seconds / whole for name, seconds in longer.items()}


def _stages(config, placement, link, job, end):
    """One view for each stage of a pipeline; without one, for each kind of card."""
    found = []
    for card, order, read in loads(config, placement, job.tokens):
        _, cache, states = cache_bytes(config, job.setting, job.context_tokens, order)
        folded = shape(config, order) | {
            "read_bytes": max(1.0, read * placement.ranks), "cache_read_bytes": job.sequences * (cache + 2 * states),
            "mfu_frac": mfu_frac(config, card, "bf16", end),
            "linear_s": linear_s(config, card, len(order) / len(config.order), placement.ranks, job, end)}
        gap_s = assume.gap_range_s(job.engine)[end] if job.waits else 0
        v = stage(card, link, end, ranks=placement.ranks, tokens=job.tokens, context_tokens=job.context_tokens, gap_s=gap_s,
                  sequences=job.sequences, **folded)
        found.append(v.sourced(gap_s=assume.gap_source(job.engine), **assume.mfu_source(config, card)))
    return found


def shape(config, order):
    """What attention and messages need of a model, of the layers in `order`."""
    full = [layer for layer in config.order if layer.kind in FULL]
    return {"hidden": config.hidden, "heads": config.heads, "full_layers": sum(layer.kind in FULL for layer in order),
            "head_elements": full[0].product_elements if full else 1, "allreduces": calls(config)}


def stage(card, link, end, sequences=1, **folded):
    """The view of one card's part of a pass, from totals that were folded from a structure, at one end of all ranges.

    folded : ranks, tokens, context_tokens, read_bytes, cache_read_bytes, linear_s, gap_s, mfu_frac, and what `shape` gives
    """
    held = {"element_bytes": BF16_BYTES, "memory_bytes_per_s": card.numbers["memory_bytes_per_s"].base_range[end],
            "achieved_frac": assume.achieved_frac(card, end), "attention_flop_per_s": rate(card, "bf16", end)}
    sources = {name: number for entry in (card, link) for name, number in entry.numbers.items() if name in ("memory_bytes_per_s", *LINK_NAMES)}
    sources |= {"attention_flop_per_s": card.numbers["bf16_flop_per_s"], "achieved_frac": assume.source(card, "achieved_frac", "card")}
    def each_meets_its_own(v):
        """the attention of one sequence, as many times as there are sequences"""
        return sequences * v(one.attention_s, tokens=v.tokens / sequences)

    recipes = {"message_bytes": "allreduce_payload_bytes"} | ({"attention_s": each_meets_its_own} if sequences != 1 else {})
    v = View(held | wire.numbers(link, folded["ranks"], end) | folded, recipes, GIVEN, FOLDED | sources)
    return v.given(protocol_allreduce_s=wire.allreduce_s(link, v.message_bytes, v.ranks, end)) if wire.oneshot(link) else v


def at_end(link, end):
    """The link with one end of its ranges as all that is known of it."""
    at = {name: replace(number, value=number.base_range[i], unit=NAMES[name].unit, low=None, high=None, kind="computed")
          for name, number in link.numbers.items() for i in [end if name == "link_bytes_per_s" else 2 - end]}
    return replace(link, numbers=at)


LINK_NAMES = ("link_bytes_per_s", "allreduce_latency_s", "bulk_latency_s")
GIVEN = ("attention_s", "read_bytes", "cache_read_bytes", "linear_s", "allreduces")
FOLDED = {"read_bytes": "counted: the modules that these tokens touch", "cache_read_bytes": "counted: the cached layers, and each state read and written",
          "linear_s": "the sum over modules of 2 p T / (N mu R), each in its format", "allreduces": "counted from the layers",
          **dict.fromkeys(("hidden", "heads", "head_elements", "full_layers"), "the model's shape"), "element_bytes": "activations in 16 bits",
          **dict.fromkeys(("tokens", "context_tokens", "ranks"), "asked for")}


def draft_view(config, cards, link, ranks, sequences, drafts, end):
    """A draft step of `sequences` sequences on the slowest of the cards that draft."""
    card = min(cards, key=lambda card: card.numbers["memory_bytes_per_s"].base_range[end] * assume.achieved_frac(card, end))
    held = {"draft_bytes": draft_bytes(config, sequences), "ranks": ranks, "drafts": drafts, "tokens": sequences * (1 + drafts),
            "hidden": config.hidden, "element_bytes": BF16_BYTES, "memory_bytes_per_s": card.numbers["memory_bytes_per_s"].base_range[end],
            "achieved_frac": assume.achieved_frac(card, end), "draft_allreduces": assume.DRAFT_ALLREDUCES if ranks > 1 else 0}
    v = View(held | wire.numbers(link, ranks, end), {"message_bytes": "allreduce_payload_bytes"})
    return v.given(draft_allreduce_s=wire.allreduce_s(link, v.message_bytes / (1 + drafts), ranks, end)) if wire.oneshot(link) else v


def calls(config):
    """All-reduces of one pass. Where mixers and FFNs are layers of their own, each has one."""
    count = View({"layers": len(config.order)}).allreduces
    return count / 2 if any(layer.kind == "none" for layer in config.order) else count


def copies_s(placement, copied_bytes, end):
    """Each GPU copies its share in, at once with the others."""
    return max(pipeline.copy_s(1, copied_bytes / placement.ranks, assume.host_bytes_per_s(card, end)) for card in placement.cards)


def handover_s(link, message, end):
    """One hidden vector a token from one stage to the next."""
    return pipeline.handover_s(wire.latency(link, 2, end), pipeline.transfer_s(message, wire.bandwidth(link, end)))


def draft_bytes(config, tokens):
    """What one draft step reads: one MTP layer, of its experts the share that the model's own layers read, and the head."""
    layer = sum(m.bytes for m in config.modules if m.name == "mtp") / max(1, config.draft_layers)
    return layer * body_bytes(config, touched(tokens)) / body_bytes(config) + head_bytes(config)


def rate(card, format, end):
    """The card's dense rate in a format at one end of its range."""
    return card.numbers[assume.RATE[format]].base_range[end]


def mfu_frac(config, card, format, end):
    """Of that rate: as measured with this model, else as measured on this card, else as assumed."""
    own = assume.of_model(config.name, "mfu_frac")
    return own[end] if own else assume.mfu_frac(card, format, end)


def linear_s(config, card, share, ranks, job, end):
    """Time of a share of all linear layers; a format's own rate at the middle and fast end, 16 bits at the slow one, as weight-only kernels do."""
    def module_s(module):
        best = job.formats[end] if job.formats else assume.arithmetic(module.format) if end else "bf16"
        best = best if assume.RATE[best] in card.numbers else "bf16"
        return one.linear_s(module.parameters * module.read, job.tokens * share, ranks, rate(card, best, end), mfu_frac(config, card, best, end))

    return sum(module_s(module) for module in config.modules if module.name not in UNSPLIT and module.parameters * module.read)
