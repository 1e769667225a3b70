"""How fast a placement decodes and reads prompts: low, mid, high, and which term decides."""

from ..formulas import collectives, decode, pipeline, prefill, speculation
from . import assume
from .placement import body_bytes, cache_bytes, head_bytes, loads, reads, touched

BF16_BYTES = 2


def _wire(link, ranks, end):
    """(bandwidth, latency of an all-reduce) of the link at one end: slow to fast.

    The catalog's latency is of two GPUs. More take longer, as a tree does (measured: four 1.6, eight 2.8 times); one-shot
    kernels, at the best end, do not.
    """
    bandwidth = link.numbers["link_bytes_per_s"].base_range[end]
    hop = link.numbers["allreduce_latency_s"].base_range[2 - end] / collectives.HOPS_PER_ROUND
    levels = 1 if end == 2 else (max(2, ranks) - 1).bit_length()
    return bandwidth, collectives.tree_latency_s(levels, hop)


def _calls(config):
    """All-reduces of one pass. Where mixers and FFNs are layers of their own, each has one."""
    calls = collectives.allreduces(len(config.order))
    return calls / collectives.ALLREDUCES_PER_LAYER if any(layer.kind == "none" for layer in config.order) else calls


def _memory(card, end):
    return card.numbers["memory_bytes_per_s"].base_range[end]


def decode_terms(config, placement, setting, link, context_tokens, batch, drafts, end):
    """{term: seconds} of one step of `batch` sequences; with drafts, of one round."""
    eta, (bandwidth, latency) = assume.ACHIEVED[end], _wire(link, placement.ranks, end)
    tokens = batch * (1 + drafts)
    message = collectives.allreduce_payload_bytes(tokens, config.hidden, BF16_BYTES)
    weight_s = cache_s = 0.0
    for card, order, read in loads(config, placement, tokens):
        _, cache, states = cache_bytes(config, setting, context_tokens, order)
        rate = _memory(card, end)
        one = decode.weight_read_s(max(1.0, read), 1, rate, eta), decode.kv_read_s(1, batch * (cache + 2 * states), rate, eta)
        weight_s, cache_s = (weight_s + one[0], cache_s + one[1]) if placement.kind == "pp" else (max(weight_s, one[0]), max(cache_s, one[1]))
    terms = {"weight read": weight_s, "cache read": cache_s}
    if placement.offloaded_bytes:
        terms["offload copies"] = pipeline.copy_s(1, reads(config, placement, tokens)[1], assume.HOST_BYTES_PER_S[end])
    if placement.kind == "tp":
        terms["all-reduces"] = collectives.communication_s(_calls(config), message, placement.ranks, bandwidth, latency)
    if placement.kind == "pp":
        terms["hand-overs"] = (len(placement.layers) - 1) * (latency + pipeline.transfer_s(message, bandwidth))
    if drafts:
        drafting = placement.cards[-1:] if placement.kind == "pp" else placement.cards  # the last stage has layer and head
        one = speculation.draft_s(draft_bytes(config, batch), placement.ranks, min(_memory(card, end) for card in drafting), eta,
                                  assume.DRAFT_ALLREDUCES, message / (1 + drafts), bandwidth, latency)
        terms["drafts"] = drafts * one
    return terms


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
    bandwidth, latency = _wire(link, placement.ranks, end)
    chunk = min(prompt_tokens, assume.CHUNK_TOKENS)
    passes = prefill.chunks(prompt_tokens, chunk)
    full = [layer for layer in config.order if layer.kind in ("full", "latent")]
    width = config.heads * (full[0].head_elements or full[0].latent_elements) if full else 0
    linear = attention = 0.0
    slowest = []
    for card, order, read in loads(config, placement, chunk):
        share = len(order) / len(config.order) / placement.ranks
        one = sum(_linear_s(card, module, prompt_tokens * share, end) for module in config.modules
                  if module.name not in ("embedding", "vision", "mtp", "head"))
        one = max(one, passes * decode.weight_read_s(max(1.0, read), 1, _memory(card, end), assume.ACHIEVED[end]))  # a short prompt waits for them
        counted = sum(layer.kind in ("full", "latent") for layer in order)
        bf16 = _rate(card, "bf16", end)
        two = prefill.attention_s(counted, 1, width, prompt_tokens, 0, placement.ranks, bf16, assume.MFU["bf16"][end]) if counted else 0.0
        slowest.append((one + two, one, two))
    total, linear, attention = max(slowest)
    if placement.kind == "pp":  # chunks follow each other through the stages; the first fills the line
        fill = (sum(s[0] for s in slowest) - total) / passes
        linear, attention = linear + fill * linear / total, attention + fill * attention / total
    terms = {"linear layers": linear, "attention": attention}
    message = collectives.allreduce_payload_bytes(prompt_tokens, config.hidden, BF16_BYTES)
    if placement.kind == "tp":
        terms["all-reduces"] = prefill.prefill_communication_s(prompt_tokens, chunk, _calls(config), config.hidden, BF16_BYTES, placement.ranks,
                                                               bandwidth, latency)
    if placement.kind == "pp":
        terms["hand-overs"] = (len(placement.layers) - 1) * (passes * latency + pipeline.transfer_s(message, bandwidth))
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
    return prefill.linear_s(active, tokens, 1, _rate(card, best, end), assume.MFU[best][end]) if active else 0.0


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
