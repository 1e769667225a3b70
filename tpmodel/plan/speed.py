"""How fast a placement decodes and reads prompts: low, mid, high, and which term decides."""

from ..formulas import collectives, decode, pipeline, prefill, speculation
from . import assume
from .placement import cache_bytes, stage_layers

BF16_BYTES = 2


def _wire(link, end):
    """(bandwidth, latency) of the link at one end: slow to fast."""
    bandwidth = link.numbers["link_bytes_per_s"].base_range[end]
    latency = link.numbers["allreduce_latency_s"].base_range[2 - end] if "allreduce_latency_s" in link.numbers else 0.0
    return bandwidth, latency


def decode_terms(config, placement, setting, link, context_tokens, batch, drafts, end):
    """{term: seconds} of one step of `batch` sequences; with drafts, of one round."""
    eta, (bandwidth, latency) = assume.ACHIEVED[end], _wire(link, end)
    tokens = batch * (1 + drafts)
    message = collectives.allreduce_payload_bytes(tokens, config.hidden, BF16_BYTES)
    spread = min(batch, _experts(config))
    reads = caches = 0.0
    for card, read, order in zip(placement.cards, placement.read_bytes, stage_layers(config, placement)):
        _, cache, states = cache_bytes(config, setting, context_tokens, order)
        rate = card.memory_bytes_per_s
        one = decode.weight_read_s(read * spread, 1, rate, eta), decode.kv_read_s(1, batch * (cache + 2 * states), rate, eta)
        reads, caches = (reads + one[0], caches + one[1]) if placement.kind == "pp" else (max(reads, one[0]), max(caches, one[1]))
    terms = {"weight read": reads, "cache read": caches}
    if placement.offloaded_bytes:
        terms["offload copies"] = pipeline.copy_s(1, min(placement.copied_bytes * spread, placement.offloaded_bytes), assume.HOST_BYTES_PER_S[end])
    if placement.kind == "tp":
        calls = collectives.allreduces(len(config.order))
        terms["all-reduces"] = collectives.communication_s(calls, message, placement.ranks, bandwidth, latency)
    if placement.kind == "pp":
        terms["hand-overs"] = (len(placement.layers) - 1) * (latency + pipeline.transfer_s(message, bandwidth))
    if drafts:
        one = speculation.draft_s(_draft_bytes(config), placement.ranks, min(c.memory_bytes_per_s for c in placement.cards), eta,
                                  assume.DRAFT_ALLREDUCES, message / (1 + drafts), bandwidth, latency)
        terms["drafts"] = drafts * one
    return terms


def _experts(config):
    """How much more a large batch reads: all experts in place of those of one token."""
    total = sum(m.bytes for m in config.modules if m.read)
    return max(1.0, total / config.read_bytes)


def _draft_bytes(config):
    return sum(m.bytes for m in config.modules if m.name in ("mtp", "head"))


def decode_speed(config, placement, setting, link, context_tokens, batch=1, drafts=0, acceptance_frac=0.0):
    """The decode part of a plan: tokens/s of all sequences together."""
    confirmed = speculation.round_tokens(drafts, acceptance_frac)
    ends = {}
    for end, name in enumerate(assume.ENDS):
        terms = decode_terms(config, placement, setting, link, context_tokens, batch, drafts, end)
        ends[name] = batch * speculation.confirmed_tokens_per_s(confirmed, sum(terms.values())), terms
    return _part(ends)


def prompt_terms(config, placement, link, prompt_tokens, end):
    """{term: seconds} of one prompt, chunk by chunk."""
    bandwidth, latency = _wire(link, end)
    chunk = min(prompt_tokens, assume.CHUNK_TOKENS)
    passes = prefill.chunks(prompt_tokens, chunk)
    full = [layer for layer in config.order if layer.kind in ("full", "latent")]
    width = config.heads * (full[0].head_elements or full[0].latent_elements) if full else 0
    linear = attention = 0.0
    slowest, orders = [], stage_layers(config, placement)
    for card, order in zip(placement.cards, orders):
        share = len(order) / len(config.order) / placement.ranks
        one = sum(_linear_s(card, module, prompt_tokens * share, end) for module in config.modules
                  if module.name not in ("embedding", "vision", "mtp", "head"))
        counted = sum(layer.kind in ("full", "latent") for layer in order)
        bf16 = _rate(card, "bf16")
        two = prefill.attention_s(counted, 1, width, prompt_tokens, 0, placement.ranks, bf16, assume.MFU["bf16"][end]) if counted else 0.0
        slowest.append((one + two, one, two))
    total, linear, attention = max(slowest)
    if placement.kind == "pp":  # chunks follow each other through the stages; the first fills the line
        fill = (sum(s[0] for s in slowest) - total) / passes
        linear, attention = linear + fill * linear / total, attention + fill * attention / total
    terms = {"linear layers": linear, "attention": attention}
    message = collectives.allreduce_payload_bytes(prompt_tokens, config.hidden, BF16_BYTES)
    if placement.kind == "tp":
        calls = collectives.allreduces(len(config.order))
        terms["all-reduces"] = prefill.prefill_communication_s(prompt_tokens, chunk, calls, config.hidden, BF16_BYTES, placement.ranks,
                                                               bandwidth, latency)
    if placement.kind == "pp":
        terms["hand-overs"] = (len(placement.layers) - 1) * (passes * latency + pipeline.transfer_s(message, bandwidth))
    if placement.offloaded_bytes:
        terms["offload copies"] = passes * pipeline.copy_s(1, placement.offloaded_bytes, assume.HOST_BYTES_PER_S[end])
    return terms


def _rate(card, format):
    """The card's dense rate in a format; BF16 where the card does not multiply in it."""
    rates = card.values()
    return rates.get(assume.RATE[format], rates.get("bf16_flop_per_s"))


def _linear_s(card, module, tokens, end):
    """Time of one module's products; at the low end in 16 bits, as weight-only kernels do."""
    best = assume.arithmetic(module.format) if end else "bf16"
    if assume.RATE[best] not in card.values():
        best = "bf16"
    active = module.parameters * module.read
    return prefill.linear_s(active, tokens, 1, _rate(card, best), assume.MFU[best][end]) if active else 0.0


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
