"""Which way to split is best, by how much, and why, in words."""

from ...formula.units import GB, GIB

TIE = 0.05  # of the rate: ways nearer than that are equally fast, and the longer context decides
MORE = 1.1  # times the context: a way that holds so much more than the best is named


def choose(tried, part):
    """The best of all ways: fits, at the longest context that rates are for, fastest; of equally fast ones the one that holds most."""
    depth = max((way.context_tokens for way in tried if way.fits), default=0)
    pool = [way for way in tried if way.fits and way.context_tokens == depth]
    if not pool:
        return max(tried, key=lambda way: (way.holds_tokens, min(memory.kv_pool_bytes for memory in way.memories)))
    top = max(way.rate(part) for way in pool)
    level = [way for way in pool if way.rate(part) >= top * (1 - TIE)]
    return max(level, key=lambda way: (way.holds_tokens, way.rate(part)))


def sentence(best, tried, part, batch, cards):
    """Whether it fits, by how much, which way wins by how much, and what limits it."""
    each = f" for each of {batch} sequences" if batch > 1 else ""
    if not best.fits:
        return f"does not fit: {_missing(best, each)}"
    said = "fits"
    if best.placement.offloaded_bytes:
        said += f" with {best.placement.offloaded_bytes / GIB:,.1f} GiB of the weights in main memory"
    if len(best.memories) < cards:
        said += f" on the first GPU alone, the {'others are' if cards > 2 else 'other is'} idle"
    said += f": up to {best.holds_tokens:,} tokens{each}"
    low, _, high = best.longest
    if low != high:
        said += f" ({low:,} to {high:,} by the overhead)"
    return f"{said}{_beside(best, tried, part)}; {part} is limited by the {best.speed(part).limited_by}"


def _missing(best, each):
    short = min(memory.kv_pool_bytes for memory in best.memories)
    if short < 0:
        return f"the weights and buffers exceed the budget of a GPU by {-short / GIB:.2f} GiB"
    return f"only {best.holds_tokens:,} tokens{each} fit"


def _beside(best, tried, part):
    """The next best way at the same context; one that holds more; and a faster one that does not hold as much."""
    others = [way for way in tried if way is not best and way.fits]
    said = ""
    same = [way for way in others if way.context_tokens == best.context_tokens]
    if same:
        other = max(same, key=lambda way: way.rate(part))
        said += _against(best, other, part)
    longer = max(same, key=lambda way: way.holds_tokens, default=best)
    if longer.holds_tokens > MORE * best.holds_tokens:
        said += f"; {longer.label} holds {longer.holds_tokens:,} tokens, at {longer.rate(part) / best.rate(part):.2f} times the speed"
    faster = max((way for way in others if way.context_tokens < best.context_tokens), key=lambda way: way.rate(part), default=best)
    if faster.rate(part) > best.rate(part):
        said += f"; {faster.label} gives {faster.rate(part):,.1f} tokens/s, but holds {faster.holds_tokens:,}"
    return said


def _against(best, other, part):
    """How the best compares with the fastest other."""
    ratio = best.rate(part) / other.rate(part)
    if abs(ratio - 1) > TIE:
        return f"; {best.label} is {ratio:.2f} times as fast in {part} as {other.label}, the next best"
    holds = f", which holds {other.holds_tokens:,}" if best.holds_tokens > other.holds_tokens else ""
    return f"; {best.label} is as fast in {part} as {other.label}{holds}"


def meeting(met, part):
    """Where tensor parallel and the pipeline change places, at these starts of the link; `met` as crossover.of_ways gives it."""
    if met is None:
        return ""
    link, batch, ahead = met["link_bytes_per_s"], met["batch"], met["ahead"]
    other = "pp" if ahead == "tp" else "tp"
    if link is None:
        said = f"; {ahead} is ahead of {other} in {part} at any bandwidth of the link"
    else:
        said = f"; {other} is ahead of {ahead} in {part} {'below' if ahead == 'tp' else 'above'} {link / GB:,.1f} GB/s"
    return said + (f"; from a batch of {batch} on the order turns" if batch else "")
