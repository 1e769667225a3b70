"""The time of a pass, or of several: the structure folds into totals for each GPU, a `View` finds the rest by name."""

from dataclasses import dataclass, replace

from ...formula.view import View
from ...formulas import passes, pipeline
from ..engine.memory import FULL
from . import assume, products, wire
from .placement import bytes_of, cache_bytes, head_bytes, reads, stage_layers

BF16_BYTES = 2
WORK = ("weight read", "cache read", "linear layers", "attention", "kernel starts")  # terms in which GPUs work
SENT = ("all-reduces", "hand-overs", "offload copies")
GIVEN = ("attention_s", "read_bytes", "cache_read_bytes", "linear_s", "allreduces")
FOLDED = {"read_bytes": "counted: the modules that these tokens touch", "allreduces": "counted from the layers",
          "cache_read_bytes": "counted: the cached layers, and each state read and written",
          "linear_s": "the sum over modules of 2 p T / (N mu R), each in its format",
          "experts_s": "the roofline of the experts that are drawn", "floor_s": "counted: four products a layer",
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
    engine: str = assume.ENGINE  # its name, and where known its version
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
    busy = found.pop("busy")  # divides as that of the middle does: each kind of layer reads, or multiplies
    shares = {name: seconds / v.busy_s for name, seconds in _kinds(v).items()}
    return {name: tuple(share * seconds for seconds in busy) for name, share in shares.items()} | found


def seconds(config, placement, link, job, end):
    """The time of the job at one end of all ranges."""
    return sum(_end(config, placement, link, job, end)[0].values())


def _kinds(v):
    """{term: seconds} of what the GPU of a view works: the name is that of the longer of reading and computing."""
    reads, roof = v.weight_read_s >= v.linear_s, lambda *pair: passes.roofline_s(*pair, v.unhidden_frac)
    found = dict.fromkeys(WORK, 0.0)
    found["weight read" if reads else "linear layers"] += roof(v.weight_read_s, v.linear_s) + v.experts_s
    found["cache read" if v.kv_read_s >= v.attention_s else "attention"] += roof(v.kv_read_s, v.attention_s)
    found["kernel starts"] += v.floor_s
    kept = WORK[:2] if reads else WORK[2:4]  # a pass that reads weights tells what it reads of the cache, be it nothing
    return {name: seconds for name, seconds in found.items() if seconds or name in kept}


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
    groups = groups_of(placement, job)
    found, slowest = _in_groups(config, placement, link, job, end, groups)
    if groups > 1 and end == 0:  # whether an engine fills every stage, its requests decide
        at_once, _ = _in_groups(config, placement, link, job, end, 1)
        found = {name: max(seconds, at_once[name]) for name, seconds in found.items()}
    return found, slowest


def _in_groups(config, placement, link, job, end, groups):
    """The same of a step whose sequences go through the stages in so many groups."""
    count, kind = len(placement.layers), assume.pipeline(job.engine)
    if groups > 1:
        job = replace(job, tokens=job.tokens / groups, sequences=job.sequences / groups)
    views = stages(config, placement, link, job, end)
    parts = [layers / sum(placement.layers) for layers in placement.layers]  # of the all-reduces of all layers
    sent = [part * v.communication_s if placement.ranks > 1 else 0 for part, v in zip(parts, views)]
    times = [v.busy_s + seconds for v, seconds in zip(views, sent)]
    i = times.index(max(times))
    paced = groups * times[i] > sum(times)  # groups follow each other round and round: the slowest stage never waits

    def run(longest, through):
        if kind == "in turn" or groups > 1:
            return groups * longest if paced else job.passes * through
        return pipeline.run_s(job.passes, longest, through, 0, count)

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
        handed = groups * one_s if paced else job.passes * (count - 1) * one_s if kind == "in turn" else (
            pipeline.run_s(job.passes, 0, 0, one_s, count))
        hides = job.passes > 1 and (kind == "overlapped" and end or end == assume.FAST and kind != "in turn")
        found["hand-overs"] = max(0, handed - (work if hides else 0))
    if job.waits:
        found["engine's wait"] = job.passes * slowest.gap_s
    if job.drafts:
        cards = placement.cards[-1:] if count > 1 else placement.cards  # the last stage has layer and head
        way = wire.in_step(link) if job.graph else link
        draft = draft_view(config, cards, way, placement.ranks, job.sequences, job.drafts, end, job.engine)
        found["drafts"] = job.drafts * draft.draft_s
    return found, slowest


def groups_of(placement, job):
    """In how many groups a step of many sequences goes through a pipeline that keeps all its stages busy."""
    apart = job.passes == 1 and assume.pipeline(job.engine) == "stages"
    return min(len(placement.layers), int(job.sequences)) if apart else 1


def stages(config, placement, link, job, end):
    """One view for each stage of a pipeline, of the slowest of the GPUs that share it."""
    found, setting = {}, replace(job.setting, ranks=placement.ranks)
    link = wire.in_step(link) if job.graph else link
    each, waits = range(len(placement.cards)), waiting(config)
    rows = zip(map(placement.stage, each), placement.cards, stage_layers(config, placement),
               *reads(config, placement, job.tokens))
    for place, card, order, read, copied in {(row[0], row[1].key): row for row in rows}.values():
        _, cache, states = cache_bytes(config, setting, job.context_tokens, order)
        mfu, part = assume.mfu_number(card, "attention", config.name), len(order) / len(config.order)
        work = products.work(config, card, part, placement.ranks, job, read / (read + copied), end)
        gap = assume.wait(job.engine, *waits, card, work.floor_s / part)
        v = stage(card, link, end, job.sequences, job.engine, **shape(config, order), ranks=placement.ranks,
                  tokens=job.tokens, context_tokens=job.context_tokens,
                  gap_s=gap.base_range[2 - end] if job.waits else 0,
                  read_bytes=max(1.0, (read - work.expert_bytes) * placement.ranks),
                  cache_read_bytes=job.sequences * (cache + 2 * states),
                  linear_s=work.linear_s, experts_s=work.experts_s, floor_s=work.floor_s, mfu_frac=mfu.base_range[end],
                  sources={"gap_s": gap, "mfu_frac": mfu})
        found.setdefault(place, []).append(v)
    return [max(views, key=lambda v: v.busy_s) for views in found.values()]


def waiting(config):
    """(layers, those with a recurrent state) that an engine starts its kernels for; a mixer and its FFN are one."""
    return shape(config, config.order)["allreduces"] / 2, sum(bool(layer.state) for layer in config.order)


def shape(config, order):
    """What attention and messages need of a model, of the layers in `order`."""
    full = [layer for layer in config.order if layer.kind in FULL]
    alone = any(layer.kind == "none" for layer in config.order)  # mixers and FFNs are layers: one all-reduce each
    return {"hidden": config.hidden, "heads": config.heads, "full_layers": sum(layer.kind in FULL for layer in order),
            "head_elements": full[0].product_elements if full else 1,
            "allreduces": View({"layers": len(config.order)}).allreduces / (2 if alone else 1)}


def _given(card, link, engine, ranks, end):
    """({name: value}, {name: source}, the link) of what card, link and engine give to a view, at one end."""
    numbers = {"memory_bytes_per_s": card.numbers["memory_bytes_per_s"],
               "attention_flop_per_s": card.numbers["bf16_flop_per_s"],
               "achieved_frac": assume.achieved_number(engine, card)}
    unhidden = assume.of_card(card, "unhidden_frac")
    link = wire.of_engine(link, assume.engine(engine)[-1].said.get("allreduce"), ranks)
    values = {name: number.base_range[end] for name, number in numbers.items()} | wire.numbers(link, ranks, end)
    values |= {"unhidden_frac": unhidden.base_range[2 - end], "element_bytes": BF16_BYTES, "ranks": ranks}
    return values, FOLDED | link.numbers | numbers | {"unhidden_frac": unhidden}, link


def _on_card(card, link, engine, ranks, end, allreduce, share, held, recipes, sources):
    """A view that reads weights on a card, and over a link sends a share of its message in each `allreduce`."""
    values, known, link = _given(card, link, engine, ranks, end)
    v = View(held | values, recipes | {"message_bytes": "allreduce_payload_bytes"}, GIVEN, known | sources)
    if wire.protocol(link) == "ring":  # a formula gives it
        return v
    return v.given(**{allreduce: wire.allreduce_s(link, v.message_bytes / share, ranks, end)})


def stage(card, link, end, sequences=1, engine=assume.ENGINE, *, ranks, experts_s=0, floor_s=0, sources=None, **folded):
    """The view of one card's part of a pass, from totals that were folded from a structure, at one end of all ranges.

    sources : name -> where a folded value is from
    folded : tokens, context_tokens, read_bytes, cache_read_bytes, linear_s, gap_s, mfu_frac, what `shape` gives
    """
    folded |= {"experts_s": experts_s, "floor_s": floor_s}

    def each_meets_its_own(v):
        """the attention of one sequence, as many times as there are sequences"""
        return sequences * v(passes.attention_s, tokens=v.tokens / sequences)

    recipes = {"attention_s": each_meets_its_own} if sequences != 1 else {}
    return _on_card(card, link, engine, ranks, end, "protocol_allreduce_s", 1, folded, recipes, sources or {})


def draft_view(config, cards, link, ranks, sequences, drafts, end, engine=assume.ENGINE, packed=1):
    """A draft step of `sequences` sequences on the slowest of the cards that draft; it reads `packed` times ours."""
    held = {"draft_bytes": packed * draft_bytes(config, sequences), "drafts": drafts, "hidden": config.hidden,
            "tokens": sequences * (1 + drafts), "draft_gap_s": assume.draft_gap(engine).base_range[2 - end],
            "draft_allreduces": assume.DRAFT_ALLREDUCES if ranks > 1 else 0}
    views = [_on_card(card, link, engine, ranks, end, "draft_allreduce_s", 1 + drafts, held, {}, {})
             for card in {card.key: card for card in cards}.values()]
    return max(views, key=lambda v: v.draft_s)


def handover_s(link, message, end):
    """One hidden vector a token from one stage to the next."""
    return pipeline.handover_s(wire.latency(link, 2, end), pipeline.transfer_s(message, wire.bandwidth(link, end)))


def draft_bytes(config, tokens):
    """What one draft step reads: one MTP layer, of its experts the share that the model's layers read, and the head."""
    layer = bytes_of(config, ("mtp",)) / max(1, config.draft_layers)
    return layer * bytes_of(config, tokens=tokens) / bytes_of(config) + head_bytes(config)

