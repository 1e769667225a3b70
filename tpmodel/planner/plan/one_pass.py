"""The time of a pass, or of several: the structure folds into totals for each GPU, a `View` finds the rest by name."""

from dataclasses import dataclass, replace

from ...catalog.assumptions import assumed
from ...formula.view import View
from ...formula.vocabulary import NAMES
from ...formulas import passes, pipeline
from ..engine.memory import FULL
from . import assume, wire
from .placement import FIRST, LAST, bytes_of, cache_bytes, head_bytes, reads, stage_layers

BF16_BYTES = 2
WORK = ("weight read", "cache read", "linear layers", "attention")  # terms in which GPUs work
SENT = ("all-reduces", "hand-overs", "offload copies")
UNSPLIT = FIRST + LAST  # modules that no token of a prompt is multiplied with
GIVEN = ("attention_s", "read_bytes", "cache_read_bytes", "linear_s", "allreduces")
FOLDED = {"read_bytes": "counted: the modules that these tokens touch", "allreduces": "counted from the layers",
          "cache_read_bytes": "counted: the cached layers, and each state read and written",
          "linear_s": "the sum over modules of 2 p T / (N mu R), each in its format",
          "element_bytes": "activations in 16 bits",
          **dict.fromkeys(("hidden", "heads", "head_elements", "full_layers"), "the model's shape"),
          **dict.fromkeys(("tokens", "context_tokens", "ranks"), "asked for")}


@dataclass(frozen=True)
class Job:
    """What is asked of the machine: so many passes of so many tokens in all, each over a context, of some sequences."""

    setting: object  # the engine's rules for the cache
    tokens: float
    context_tokens: float
    sequences: float = 1
    passes: float = 1
    drafts: int = 0
    engine: str = "vllm"
    formats: tuple = ()  # slow to fast, of all weights, where they are not multiplied in their own
    waits: bool = True  # passes of a queue that never runs dry do not wait for the engine
    graph: bool = False  # a decode step is one CUDA graph, in which an all-reduce starts sooner


def prompt(setting, prompt_tokens, chunk_tokens=assume.CHUNK_TOKENS, **more):
    """The Job of one prompt, chunk by chunk: as many passes, each over the mean context."""
    v = View({"prompt_tokens": prompt_tokens, "chunk_tokens": min(prompt_tokens, chunk_tokens)})
    return Job(setting, v.pass_tokens, v.mean_context_tokens, passes=v.chunks, **more)


def decode(setting, context_tokens, sequences=1, drafts=0, **more):
    """The Job of one step of `sequences` sequences, or of one verify pass."""
    return Job(setting, sequences * (1 + drafts), context_tokens, sequences, drafts=drafts, **{"graph": True} | more)


def terms(config, placement, link, job):
    """{term: (slow, middle, fast) seconds} of the job; their sums are its times."""
    ends, slowest = zip(*(_end(config, placement, link, job, end) for end in range(len(assume.ENDS))))
    found, v = {name: tuple(here[name] for here in ends) for name in ends[0]}, slowest[assume.MID]
    busy = found.pop("busy")  # divides as the reads or the products of the middle do, whichever take longer
    longer = max({"weight read": v.weight_read_s, "cache read": v.kv_read_s},
                 {"linear layers": v.linear_s, "attention": v.attention_s}, key=lambda parts: sum(parts.values()))
    shares = {name: seconds / sum(longer.values()) for name, seconds in longer.items()}
    return {name: tuple(share * seconds for seconds in busy) for name, share in shares.items()} | found


def rates(terms, tokens):
    """(low, middle, high) tokens/s from the terms of a job that gives so many tokens at each end."""
    return tuple(number / sum(seconds[end] for seconds in terms.values()) for end, number in enumerate(tokens))


def view(config, placement, link, job, end):
    """The job's pass on its slowest GPU, by name."""
    return max(stages(config, placement, link, job, end), key=lambda v: v.busy_s)


def whole(config, placement, link, job, found):
    """The job's pass in the middle, on its slowest GPU; of stages or copies in a row, the sums of `found`."""
    v = view(config, placement, link, job, assume.MID)
    if len(placement.layers) == 1 and not placement.offloaded_bytes:
        return v
    for name, kinds in (("busy_s", WORK), ("communication_s", SENT)):
        parts = {part: ends[assume.MID] for part, ends in found.items() if part in kinds}
        said = ", ".join(f"{part} {seconds / job.passes * 1e3:.3g} ms" for part, seconds in parts.items())
        v = v.given(**{name: sum(parts.values()) / job.passes}).sourced(**{name: f"the sum of {said}"})
    return v


def _end(config, placement, link, job, end):
    """({term: seconds} at one end of all ranges, the slowest GPU's view); `busy` is what the GPUs work."""
    views, count = stages(config, placement, link, job, end), len(placement.layers)
    parts = [layers / sum(placement.layers) for layers in placement.layers]  # of the all-reduces of all layers
    sent = [part * v.communication_s if placement.ranks > 1 else 0 for part, v in zip(parts, views)]
    times = [v.busy_s + seconds for v, seconds in zip(views, sent)]
    i = times.index(max(times))
    kind = assume.pipeline(job.engine)
    run = lambda longest, through: (job.passes * through if kind == "in turn" else
                                    pipeline.run_s(job.passes, longest, through, 0, count))
    slowest, work = views[i], run(views[i].busy_s, sum(v.busy_s for v in views))
    hidden = work if end == assume.FAST else 0  # at best a copy or a hand-over hides behind it, never an all-reduce
    found = {"busy": work}
    if placement.offloaded_bytes:
        shares = reads(config, placement, job.tokens)[1]  # all GPUs of a stage copy at once
        copies = [pipeline.copy_s(1, share, assume.host_bytes_per_s(card, end))
                  for card, share in zip(placement.cards, shares)]
        longest = [max(s for gpu, s in enumerate(copies) if placement.stage(gpu) == stage) for stage in range(count)]
        found["offload copies"] = max(0, run(max(longest), sum(longest)) - hidden)
    if placement.ranks > 1:
        found["all-reduces"] = run(sent[i], sum(sent))
    if count > 1:
        one_s = handover_s(link, slowest.allreduce_payload_bytes, end)
        handed = job.passes * (count - 1) * one_s if kind == "in turn" else pipeline.run_s(
            job.passes, 0, 0, one_s, count)
        hides = job.passes > 1 and (kind == "overlapped" and end or end == assume.FAST and kind != "in turn")
        found["hand-overs"] = max(0, handed - (work if hides else 0))
    if job.waits:
        found["engine's wait"] = job.passes * slowest.gap_s
    if job.drafts:
        cards = placement.cards[-1:] if count > 1 else placement.cards  # the last stage has layer and head
        way = wire.in_step(link) if job.graph else link
        draft = draft_view(config, cards, way, placement.ranks, job.sequences, job.drafts, end)
        found["drafts"] = job.drafts * draft.draft_s
    return found, slowest


def stages(config, placement, link, job, end):
    """One view for each stage of a pipeline, of the slowest of the GPUs that share it."""
    found, setting = {}, replace(job.setting, ranks=placement.ranks)
    gap, each = assume.gap_number(job.engine), range(len(placement.cards))
    link = wire.in_step(link) if job.graph else link
    rows = zip(map(placement.stage, each), placement.cards, stage_layers(config, placement),
               reads(config, placement, job.tokens)[0])
    for place, card, order, read in {(row[0], row[1].key): row for row in rows}.values():
        _, cache, states = cache_bytes(config, setting, job.context_tokens, order)
        mfu = assume.mfu_number(card, "bf16", config.name)
        v = stage(card, link, end, job.sequences, **shape(config, order), ranks=placement.ranks, tokens=job.tokens,
                  context_tokens=job.context_tokens, gap_s=gap.base_range[2 - end] if job.waits else 0,
                  read_bytes=max(1.0, read * placement.ranks), cache_read_bytes=job.sequences * (cache + 2 * states),
                  linear_s=linear_s(config, card, len(order) / len(config.order), placement.ranks, job, end),
                  mfu_frac=mfu.base_range[end])
        found.setdefault(place, []).append(v.sourced(gap_s=gap, mfu_frac=mfu))
    return [max(views, key=lambda v: v.busy_s) for views in found.values()]


def shape(config, order):
    """What attention and messages need of a model, of the layers in `order`."""
    full = [layer for layer in config.order if layer.kind in FULL]
    alone = any(layer.kind == "none" for layer in config.order)  # mixers and FFNs are layers: one all-reduce each
    return {"hidden": config.hidden, "heads": config.heads, "full_layers": sum(layer.kind in FULL for layer in order),
            "head_elements": full[0].product_elements if full else 1,
            "allreduces": View({"layers": len(config.order)}).allreduces / (2 if alone else 1)}


def _on_card(card, link, ranks, end, allreduce, share, held, recipes):
    """A view that reads weights on a card, and over a link sends a share of its message in each `allreduce`."""
    numbers = {"memory_bytes_per_s": card.numbers["memory_bytes_per_s"],
               "attention_flop_per_s": card.numbers["bf16_flop_per_s"],
               "achieved_frac": assume.number("achieved_frac", card, assumed("card"))}
    held = held | {name: number.base_range[end] for name, number in numbers.items()} | wire.numbers(link, ranks, end)
    v = View(held | {"element_bytes": BF16_BYTES, "ranks": ranks},
             recipes | {"message_bytes": "allreduce_payload_bytes"}, GIVEN, FOLDED | link.numbers | numbers)
    if wire.protocol(link) == "ring":  # a formula gives it
        return v
    return v.given(**{allreduce: wire.allreduce_s(link, v.message_bytes / share, ranks, end)})


def stage(card, link, end, sequences=1, *, ranks, **folded):
    """The view of one card's part of a pass, from totals that were folded from a structure, at one end of all ranges.

    folded : tokens, context_tokens, read_bytes, cache_read_bytes, linear_s, gap_s, mfu_frac, what `shape` gives
    """
    def each_meets_its_own(v):
        """the attention of one sequence, as many times as there are sequences"""
        return sequences * v(passes.attention_s, tokens=v.tokens / sequences)

    recipes = {"attention_s": each_meets_its_own} if sequences != 1 else {}
    return _on_card(card, link, ranks, end, "protocol_allreduce_s", 1, folded, recipes)


def draft_view(config, cards, link, ranks, sequences, drafts, end):
    """A draft step of `sequences` sequences on the slowest of the cards that draft."""
    held = {"draft_bytes": draft_bytes(config, sequences), "drafts": drafts, "tokens": sequences * (1 + drafts),
            "hidden": config.hidden, "draft_allreduces": assume.DRAFT_ALLREDUCES if ranks > 1 else 0}
    views = [_on_card(card, link, ranks, end, "draft_allreduce_s", 1 + drafts, held, {})
             for card in {card.key: card for card in cards}.values()]
    return max(views, key=lambda v: v.draft_s)


def at_end(link, end):
    """The link with one end of its ranges as all that is known of it."""
    return replace(link, numbers={
        name: replace(number, value=number.base_range[end if name == "link_bytes_per_s" else 2 - end],
                      unit=NAMES[name].unit, low=None, high=None, kind="computed")
        for name, number in link.numbers.items()})


def handover_s(link, message, end):
    """One hidden vector a token from one stage to the next."""
    return pipeline.handover_s(wire.latency(link, 2, end), pipeline.transfer_s(message, wire.bandwidth(link, end)))


def draft_bytes(config, tokens):
    """What one draft step reads: one MTP layer, of its experts the share that the model's layers read, and the head."""
    layer = bytes_of(config, ("mtp",)) / max(1, config.draft_layers)
    return layer * bytes_of(config, tokens=tokens) / bytes_of(config) + head_bytes(config)


def linear_s(config, card, share, ranks, job, end):
    """Time of a share of all linear layers; in 16 bits at the slow end, as weight-only kernels do."""
    total = 0
    for module in config.modules:
        if module.name not in UNSPLIT and module.parameters * module.read:
            best = job.formats[end] if job.formats else assume.arithmetic(module.format) if end else "bf16"
            best = best if assume.RATE[best] in card.numbers else "bf16"
            rate, mfu = card.numbers[assume.RATE[best]].base_range[end], assume.mfu_frac(card, best, end, config.name)
            total += passes.linear_s(module.parameters * module.read, job.tokens * share, ranks, rate, mfu)
    return total
