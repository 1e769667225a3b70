"""The products of a pass on one card: every module in the format that its kernel multiplies in, experts apart."""

from dataclasses import dataclass

from ...catalog.assumptions import ends
from ...formulas import passes
from ..engine import kernels
from . import assume
from .placement import FIRST, LAST, touched

UNSPLIT = FIRST + LAST  # modules that no token of a prompt is multiplied with
PLAIN_BITS = 16  # of a weight that no build has quantised
PRODUCTS = 4  # of a layer: into and out of the mixer, into and out of the FFN
HALF_TOKENS, ROUTING_S = ends("experts", "half_tokens"), ends("experts", "routing_s")


@dataclass(frozen=True)
class Work:
    """What the modules take of one GPU in a pass, and what it reads of its experts."""

    linear_s: float
    experts_s: float
    expert_bytes: float
    floor_s: float


def work(config, card, share, ranks, job, held, end):
    """The Work of a share of all layers, of whose weights the GPU holds a part `held` itself."""
    dense = sparse = read = 0
    for module in config.modules:
        if module.name not in UNSPLIT and module.parameters * module.read:
            drawn = module.read < 1
            tokens = expert_tokens(job.tokens, module.read, end) if drawn else job.tokens
            asked = job.setting.kernels if module.bits < PLAIN_BITS else ()
            met = asked[end] if asked else [kernels.decide(job.engine, module.format, card).kernel]
            keeps = [assume.grouped(card, one, end) if drawn else 1 for one in met]
            times = [multiply_s(card, one, module.parameters, tokens * share, ranks, end, config.name) / kept
                     for one, kept in zip(met, keeps)]
            seconds = sum(times) / len(times)
            dense, sparse = (dense, sparse + seconds) if drawn else (dense + seconds, sparse)
            read += touched(module, job.tokens) * share * held / ranks if drawn else 0
    layers = share * len(config.order)
    experts_s = roof_s(card, read, sparse, end, job.engine) + layers * ROUTING_S[2 - end] if read else 0
    return Work(dense, experts_s, read, floor_s(card, PRODUCTS * layers, end))


def multiply_s(card, kernel, parameters, tokens, ranks, end, model=""):
    """Time of the products of `tokens` tokens with so many parameters."""
    rate, mfu = card.numbers[kernels.rate_of(kernel)], assume.mfu_number(card, kernel, model)
    return passes.linear_s(parameters, tokens, ranks, rate.base_range[end], mfu.base_range[end])


def expert_tokens(tokens, drawn, end):
    """Tokens that an expert multiplies, where each of `tokens` draws a part `drawn` of all."""
    return passes.expert_tokens(tokens, drawn, 1 - (1 - drawn) ** tokens, HALF_TOKENS[2 - end])


def roof_s(card, read_bytes, compute_s, end, engine=assume.ENGINE):
    """The roofline of the experts on one card."""
    achieved, hides = assume.achieved_number(engine, card), assume.of_card(card, "unhidden_frac")
    read_s = passes.weight_read_s(read_bytes, 1, card.memory_bytes_per_s, achieved.base_range[end])
    return passes.roofline_s(read_s, compute_s, hides.base_range[2 - end])


def floor_s(card, products, end):
    """What so many products take beside their work, on a card of which it is known apart."""
    return products * assume.of_card(card, "kernel_s").base_range[2 - end]
