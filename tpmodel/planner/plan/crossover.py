"""Where the best way to split changes: the link bandwidth and the batch at which tensor and pipeline parallel meet."""

from dataclasses import replace

from ...catalog.sourced import Sourced
from . import one_pass, placement

SLOWEST_BYTES_PER_S, FASTEST_BYTES_PER_S = 1e8, 2e12
HALVINGS = 30  # of the range on a log scale: nine digits
MID = 1
BATCHES = tuple(2**i for i in range(1, 11))


def with_bandwidth(link, bytes_per_s):
    """The same link at another bandwidth, exactly known."""
    rate = Sourced(bytes_per_s, "byte/s", "computed", "the crossover's search", "today")
    return replace(link, numbers={**link.numbers, "link_bytes_per_s": rate})


def meeting_bytes_per_s(link, tp_rate, pp_rate):
    """The bandwidth at which two rates, functions of a link, are equal; None if one wins at every bandwidth.

    A tensor-parallel step sends far more than a pipeline, so it gains more from every GB/s: at most one meeting.
    """
    gap = lambda bytes_per_s: (lambda here: tp_rate(here) - pp_rate(here))(with_bandwidth(link, bytes_per_s))
    low, high = SLOWEST_BYTES_PER_S, FASTEST_BYTES_PER_S
    if (gap(low) > 0) == (gap(high) > 0):
        return None
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if (gap(middle) > 0) == (gap(low) > 0) else (low, middle)
    return high


def meeting_batch(tp_rate, pp_rate, fits):
    """The smallest power of two at which the winner of batch 1 loses; None if it never does up to the largest whose cache fits both ways."""
    first = tp_rate(1) > pp_rate(1)
    return next((batch for batch in BATCHES if (tp_rate(batch) > pp_rate(batch)) != first and fits(batch)), None)


def of_ways(config, machine, tried, setting, best, ask):
    """Where tensor parallel meets the fastest pipeline, in what is compared; None unless both were tried and fit.

    {"ahead": the faster on this link, "link_bytes_per_s", "batch"}: at which bandwidth and at which batch they are equal, None where they never are.
    """
    fitting = [way for way in tried if way.fits]
    pipelines = [way for way in fitting if way.placement.kind == "pp"]
    tensor = next((way for way in fitting if way.placement.kind == "tp"), None)
    if not pipelines or not tensor:
        return None
    both = {"tp": tensor, "pp": max(pipelines, key=lambda way: way.rate(ask.part))}

    def rate(kind, wire, sequences=ask.batch):
        placed = both[kind].placement
        here = replace(setting, ranks=placed.ranks)
        tokens = best.prefill.prompt_tokens if ask.part == "prefill" else sequences
        job = one_pass.prompt(here, tokens) if ask.part == "prefill" else one_pass.decode(here, best.context_tokens, sequences, ask.mtp)
        return tokens / sum(seconds[MID] for seconds in one_pass.terms(config, placed, wire, job).values())

    def fits(sequences):
        return all(placement.longest(config, way.placement, setting, way.memories, sequences) >= best.context_tokens for way in both.values())

    link = machine.link
    met = ask.part == "decode" and meeting_batch(lambda b: rate("tp", link, b), lambda b: rate("pp", link, b), fits) or None
    return {"ahead": max(both, key=lambda kind: rate(kind, link)), "batch": met,
            "link_bytes_per_s": meeting_bytes_per_s(link, lambda wire: rate("tp", wire), lambda wire: rate("pp", wire))}
