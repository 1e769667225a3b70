"""Where the best way to split changes: the link bandwidth and the batch at which tensor and pipeline parallel meet."""

from dataclasses import replace

from ...catalog.sourced import Sourced
from . import one_pass, placement, versus, ways
from .assume import MID

SLOWEST_BYTES_PER_S, FASTEST_BYTES_PER_S = 1e8, 2e12
HALVINGS = 30  # of the range on a log scale: nine digits
BATCHES = tuple(2**i for i in range(1, 11))


def meeting_bytes_per_s(link, tp_ahead):
    """The bandwidth at which two rates are equal, which `tp_ahead` compares over a link; None if one always wins.

    A tensor-parallel step sends far more than a pipeline, so it gains more from every GB/s: at most one meeting.
    """
    def ahead(bytes_per_s):
        rate = Sourced(bytes_per_s, "byte/s", "computed", "the crossover's search", "today")
        return tp_ahead(replace(link, numbers=link.numbers | {"link_bytes_per_s": rate}))

    low, high = SLOWEST_BYTES_PER_S, FASTEST_BYTES_PER_S
    first = ahead(low)
    if first == ahead(high):
        return None
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if ahead(middle) == first else (low, middle)
    return high


def rival(config, machine, tried, setting, best, ask):
    """The Ratio of the best way to the fastest that differs in more than layers, at the same context; None without."""
    several = ask.batch > 1 or setting.pooling  # a copy of the model makes one stream no faster
    structure = lambda way: (way.placement.ranks, len(way.placement.layers), several and way.placement.replicas,
                             bool(way.placement.offloaded_bytes))
    others = [way for way in tried if way.fits and best.fits and structure(way) != structure(best)
              and way.context_tokens == best.context_tokens]
    if not others:
        return None
    other = max(others, key=lambda way: way.rate(ask.goal))

    def arm(way):
        work = ways.jobs(way.setting, way.placement, ask, best.context_tokens, best.prefill.prompt_tokens)
        return versus.Arm(config, way.placement, machine.link, ((1, work[ask.goal]),))

    return replace(versus.compare(arm(best), arm(other)), other=other)


def of_ways(config, machine, tried, setting, best, ask):
    """Where tensor parallel meets the fastest pipeline, in what is compared; None unless both were tried and fit.

    {"ahead": the faster on this link, "link_bytes_per_s", "batch"}: the bandwidth at which they are equal, and the
    smallest power of two at which the winner of batch 1 loses and the cache fits both ways; None where there is none.
    """
    of_kind = lambda kind: max((way for way in tried if way.fits and way.placement.kind == kind),
                               key=lambda way: way.rate(ask.goal), default=None)
    both, link, at = {kind: of_kind(kind) for kind in ("tp", "pp")}, machine.link, best.context_tokens
    if not all(both.values()):
        return None

    def rate(kind, link, sequences=ask.batch):
        way, asked = both[kind], replace(ask, batch=sequences)
        work = ways.jobs(way.setting, way.placement, asked, at, best.prefill.prompt_tokens)
        return 1 / one_pass.seconds(config, way.placement, link, work[ask.goal], MID)

    tp_ahead = lambda *at: rate("tp", *at) > rate("pp", *at)
    holds = lambda way, batch: placement.longest(config, way.placement, setting, way.memories, batch)
    fits = lambda batch: all(holds(way, batch) >= at for way in both.values())
    met = None
    if ask.goal == "decode":
        first = tp_ahead(link, 1)
        met = next((batch for batch in BATCHES if not fits(batch) or tp_ahead(link, batch) != first), None)
        met = met if met and fits(met) else None  # where one does not fit, no larger one does
    return {"ahead": max(both, key=lambda kind: rate(kind, link)), "batch": met,
            "link_bytes_per_s": meeting_bytes_per_s(link, tp_ahead)}
