"""How fast a placement decodes and reads prompts: low, mid, high, and which term decides."""

from ..formulas import collectives, decode, pipeline, prefill, speculation
from . import assume, wire
from .placement import body_bytes, cache_bytes, head_bytes, loads, reads, touched

BF16_BYTES = 2


def calls(config):
    """All-reduces of one pass. Where mixers and FFNs are layers of their own, each has one."""
    count = collectives.allreduces(len(config.order))
    return count / collectives.ALLREDUCES_PER_LAYER if any(layer.kind == "none" for layer in config.order) else count


def _memory(card, end):
    return card.numbers["memory_bytes_per_s"].base_range[end]


def decode_terms(config, placement, setting, link, context_tokens, batch, drafts, end):
    """{term: seconds} of one step of `batch` sequences; with drafts, of one round."""
    tokens = batch * (1 + drafts)
    message = collectives.allreduce_payload_bytes(tokens, config.hidden, BF16_BYTES)
    weight_s = cache_s = 0.0
    for card, order, read in loads(config, placement, tokens):
        _, cache, states = cache_bytes(config, setting, context_tokens, order)
        rate, eta = _memory(card, end), assume.achieved_frac(card, end)
        one = decode.weight_read_s(max(1.0, read), 1, rate, eta), decode.kv_read_s(1, batch * (cache + 2 * states), rate, eta)
        weight_s, cache_s = (weight_s + one[0], cache_s + one[1]) if placement.kind == "pp" else (max(weight_s, one[0]), max(cache_s, one[1]))
    terms = {"weight read": weight_s, "cache read": cache_s}
    if placement.offloaded_bytes:
        terms["offload copies"] = pipeline.copy_s(1, reads(config, placement, tokens)[1], assume.HOST_BYTES_PER_S[end])
    if placement.kind == "tp":
        terms["all-reduces"] = calls(config) * wire.allreduce_s(link, message, placement.ranks, end)
    if placement.kind == "pp":
        terms["hand-overs"] = (len(placement.layers) - 1) * handover_s(link, message, end)
    terms["between steps"] = assume.gap_range_s("vllm")[end]
    if drafts:
        drafting = placement.cards[-1:] if placement.kind == "pp" else placement.cards  # the last stage has layer and head
        slowest, eta = min((_memory(card, end), assume.achieved_frac(card, end)) for card in drafting)
        one = speculation.draft_s(draft_bytes(config, batch), placement.ranks, slowest, eta,
                                  assume.DRAFT_ALLREDUCES, 0, wire.bandwidth(link, end),
                                  wire.allreduce_s(link, message / (1 + drafts), placement.ranks, end))
        terms["drafts"] = drafts * one
    return terms


def handover_s(link, message, end):
    """One hidden vector a token from one stage to the next."""
    return wire.latency(link, 2, end) + pipeline.transfer_s(message, wire.bandwidth(link, end))


def draft_bytes(config, tokens):
    """What one draft step reads: one MTP layer, of its experts the share that the model's own layers read, and the head."""
    layer = sum(m.bytes for m in config.modules if m.name == "mtp") / max(1, config.draft_layers)
    return layer * body_bytes(config, touched(tokens)) / body_bytes(config) + head_bytes(config)


def decode_speed(config, placement, setting, link, context_tokens, batch=1, drafts=0, acceptance_frac=None):
    """The decode part of a plan: tokens/s of all sequences together."""
    ends = {}
    for end, name in enumerate(assume.ENDS):
        terms = decode_terms(config, placement, setting, link, context_tokens, batch, drafts, end)
        confirmed = speculation.round_tokens(drafts, assume.ACCEPTANCE[end] if acceptance_frac is None else acceptance_frac)
        ends[name] = batch * speculation.confirmed_tokens_per_s(confirmed, sum(terms.values())), terms
    return _part(ends)


def prompt_terms(config, placement, link, prompt_tokens, end):
    """{term: seconds} of one prompt, chunk by chunk."""
    chunk = min(prompt_tokens, assume.CHUNK_TOKENS)
    passes = prefill.chunks(prompt_tokens, chunk)
    full = [layer for layer in config.order if layer.kind in ("full", "latent")]
    width = config.heads * full[0].product_elements if full else 0
    linear = attention = 0.0
    slowest = []
    for card, order, read in loads(config, placement, chunk):
        share = len(order) / len(config.order) / placement.ranks
        one = sum(_linear_s(card, module, prompt_tokens * share, end) for module in config.modules
                  if module.name not in ("embedding", "vision", "mtp", "head"))
        one = max(one, passes * decode.weight_read_s(max(1.0, read), 1, _memory(card, end), assume.achieved_frac(card, end)))  # a short prompt waits for them
        counted = sum(layer.kind in ("full", "latent") for layer in order)
        bf16 = _rate(card, "bf16", end)
        two = prefill.attention_s(counted, 1, width, prompt_tokens, 0, placement.ranks, bf16, assume.mfu_frac(card, "bf16", end)) if counted else 0.0
        slowest.append((one + two, one, two))
    total, linear, attention = max(slowest)
    if placement.kind == "pp":  # chunks follow each other through the stages; the first fills the line
        fill = (sum(s[0] for s in slowest) - total) / passes
        linear, attention = linear + fill * linear / total, attention + fill * attention / total
    terms = {"linear layers": linear, "attention": attention}
    message = collectives.allreduce_payload_bytes(prompt_tokens, config.hidden, BF16_BYTES)
    if placement.kind == "tp":
        terms["all-reduces"] = calls(config) * passes * wire.allreduce_s(link, message / passes, placement.ranks, end)
    if placement.kind == "pp":
        terms["hand-overs"] = (len(placement.layers) - 1) * passes * handover_s(link, message / passes, end)
    if placement.offloaded_bytes:
        terms["offload copies"] = passes * pipeline.copy_s(1, placement.offloaded_bytes, assume.HOST_BYTES_PER_S[end])
    return terms


def _rate(card, format, end):
    """The card's dense rate in a format at one end of its range."""
    return card.numbers[assume.RATE[format]].base_range[end]


def _linear_s(card, module, tokens, end):
    """Time of one module's products; at the low end in 16 bits, as weight-only kernels do."""
    best = assume.arithmetic(module.format) if end else "bf16"
    if assume.RATE[best] not in card.numbers:
        best = "bf16"
    active = module.parameters * module.read
    return prefill.linear_s(active, tokens, 1, _rate(card, best, end), assume.mfu_frac(card, best, end)) if active else 0.0


def prefill_speed(config, placement, link, prompt_tokens):
    """The prefill part of a plan: prompt tokens/s."""
    ends = {}
    for end, name in enumerate(assume.ENDS):
        terms = prompt_terms(config, placement, link, prompt_tokens, end)
        ends[name] = pipeline.tokens_per_s(prompt_tokens, sum(terms.values())), terms
    return _part(ends) | {"prompt_tokens": prompt_tokens}


def _part(ends):
    """{"low", "mid", "high", "unit", "limited_by", "terms"} from {end: (rate, terms)}; terms in ms of the middle."""
    terms = ends["mid"][1]
    return {**{name: rate for name, (rate, _) in ends.items()}, "unit": "token/s", "limited_by": max(terms, key=terms.get),
            "terms": {name: {"low_ms": ends["high"][1].get(name, 0.0) * 1e3, "mid_ms": seconds * 1e3,
                             "high_ms": ends["low"][1].get(name, 0.0) * 1e3} for name, seconds in terms.items()}}
