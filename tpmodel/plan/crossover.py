"""Where the best way to split changes: the link bandwidth and the batch at which tensor and pipeline parallel meet."""

from dataclasses import replace

from ..catalog.sourced import Sourced
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


def crossovers(config, cards, link, layers, pools, setting, context_tokens, prompt_tokens, batch, mtp, part):
    """{"ahead": the faster on this link, "link_bytes_per_s", "batch"} at which tensor parallel and the pipeline of these layers meet in `part`; None where they do not.

    pools : {"tp", "pp"} -> bytes that the fullest GPU has for its cache
    """
    placed = {kind: placement.place(config, cards, kind, stages) for kind, stages in (("tp", None), ("pp", tuple(layers)))}

    def rate(kind, wire, sequences):
        here = placed[kind]
        here_setting = replace(setting, ranks=here.ranks)
        job = one_pass.prompt(here_setting, prompt_tokens) if part == "prefill" else one_pass.decode(here_setting, context_tokens, sequences, mtp)
        tokens = prompt_tokens if part == "prefill" else sequences
        return tokens / sum(seconds[MID] for seconds in one_pass.terms(config, here, wire, job).values())

    def fits(sequences):
        return all(placement.room_tokens(config, placed[kind], setting, pool, sequences) >= context_tokens for kind, pool in pools.items())

    return {
        "ahead": max(("tp", "pp"), key=lambda kind: rate(kind, link, batch)),
        "link_bytes_per_s": meeting_bytes_per_s(link, lambda wire: rate("tp", wire, batch), lambda wire: rate("pp", wire, batch)),
        "batch": meeting_batch(lambda b: rate("tp", link, b), lambda b: rate("pp", link, b), fits) if part == "decode" else None,
    }
