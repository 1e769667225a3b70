"""Where the best way to split changes: the link bandwidth and the batch at which tensor and pipeline parallel meet."""

from dataclasses import replace

from ...catalog.sourced import Sourced
from . import one_pass, placement
from .assume import ENDS, MID

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
        prompt = best.prefill.prompt_tokens if ask.goal == "prefill" else 0
        job = one_pass.decode(setting, at, sequences, ask.mtp)
        job = one_pass.prompt(setting, prompt, ask.batch_tokens) if prompt else job
        terms = one_pass.terms(config, both[kind].placement, link, job)
        return one_pass.rates(terms, (prompt or sequences,) * len(ENDS))[MID]

    tp_ahead = lambda *at: rate("tp", *at) > rate("pp", *at)
    holds = lambda way, batch: placement.longest(config, way.placement, setting, way.memories, batch)
    fits = lambda batch: all(holds(way, batch) >= at for way in both.values())
    met = None
    if ask.goal == "decode":
        first = tp_ahead(link, 1)
        met = next((batch for batch in BATCHES if tp_ahead(link, batch) != first and fits(batch)), None)
    return {"ahead": max(both, key=lambda kind: rate(kind, link)), "batch": met,
            "link_bytes_per_s": meeting_bytes_per_s(link, tp_ahead)}
