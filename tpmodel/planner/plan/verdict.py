"""Which way to split is best, by how much, and why, in words."""

from ...formula.units import GB, GIB, many

TIE = 0.05  # of the rate: ways nearer than that are equally fast, and the longer context decides
MORE = 1.1  # times the context: a way that holds so much more than the best is named
LEAST_TOKENS = 1024  # of context: where every way without offload holds less, one that offloads may be the best


def choose(tried, part):
    """The best way: it fits, without offload if that is of use, at the longest context that rates are for, and of those
    about as fast it holds most."""
    fitting = [way for way in tried if way.fits]
    resident = [way for way in fitting if not way.placement.offloaded_bytes and way.context_tokens >= LEAST_TOKENS]
    depth = max((way.context_tokens for way in resident or fitting), default=0)
    pool = [way for way in resident or fitting if way.context_tokens == depth]
    if not pool and any(way.users and way.users.largest_batch for way in tried):  # fewer sequences would fit
        return max(tried, key=lambda way: way.users.largest_together or 0)
    if not pool:
        return max(tried, key=lambda way: (way.holds_tokens, min(gpu["kv_pool_bytes"] for gpu in way.memories)))
    top = max(way.rate(part) for way in pool)
    level = [way for way in pool if way.rate(part) >= top * (1 - TIE)]
    return max(level, key=lambda way: (way.holds_tokens, way.rate(part)))


def sentence(best, tried, part, batch, rival=None):
    """Whether it fits, by how much, which way wins by how much, and what limits it."""
    holds = f"{many(best.holds_tokens, 'token')}{f' for each of {batch:,} sequences' if batch > 1 else ''}"
    if not best.fits:
        short = -min(gpu["kv_pool_bytes"] for gpu in best.memories)
        over = f"the weights and buffers exceed the budget of a GPU by {short / GIB:.2f} GiB"
        some = f"only {holds} fit{'s' * (best.holds_tokens == 1)}"
        return f"does not fit: {over if short > 0 else some}{_queued(best, tried, batch)}"
    said = "fits"
    if best.placement.offloaded_bytes:
        said += f" with {best.placement.offloaded_bytes / GIB:,.1f} GiB of the weights in main memory"
    if best.placement.idle:
        count = len(best.memories)
        where = "GPU alone" if count == 1 else f"{count} GPUs"
        said += f" on the first {where}, the {'others are' if best.placement.idle > 1 else 'other is'} idle"
    low, _, high = best.longest
    said += f": up to {holds}" + (f" ({low:,} to {high:,} by the overhead)" if low != high else "")
    said += _beside(best, tried, part, rival) + undecided(best, rival, part) + _queued(best, tried, batch)
    return f"{said}; {part} is limited by the {getattr(best, part).limited_by}"


def _queued(best, tried, batch):
    """The way that gives most together, where it takes fewer sequences at once than were asked for: others wait."""
    if batch == 1:
        return ""
    other = max((way for way in tried if way.users), key=lambda way: way.users.largest_together or 0, default=None)
    together = (other and other.users.largest_together) or 0
    if together <= best.rate("decode") or other.users.largest_batch >= batch:
        return ""
    each = "" if best.context_tokens else f" with {many(other.users.context_tokens, 'token')} each"
    return (f"; {other.label} takes {other.users.largest_batch:,} of the {batch:,} at once{each}, {together:,.1f} "
            "tokens/s together, and the others wait")


def undecided(best, rival, part):
    """Where the order of the two best ways hangs on what is not known: by how much, and what would decide it."""
    if rival is None or rival.decided:
        return ""
    other = rival.other
    less, holds = other.holds_tokens < best.holds_tokens, many(other.holds_tokens, "token")
    holds = f" ({other.label} holds {holds})" if less else ""
    return (f"; undecided: in {part} {best.label} is {rival.mid:.2f} times as fast as {other.label}{holds} in the "
            f"middle, {rival.low:.2f} to {rival.high:.2f} times by what is not known; to decide it: {rival.words}")


def _beside(best, tried, part, rival):
    """The next best way at the same context; one that holds more; and a faster one that does not hold as much."""
    others = [way for way in tried if way is not best and way.fits]
    same = [way for way in others if way.context_tokens == best.context_tokens]
    said = ""
    other = max(same, key=lambda way: way.rate(part), default=None)
    if other and (rival is None or other is not rival.other or rival.decided):
        times = best.rate(part) / other.rate(part)
        apart = abs(times - 1) > TIE
        said = f"; {best.label} is {f'{times:.2f} times ' if apart else ''}as fast in {part} as {other.label}"
        holds = f", which holds {other.holds_tokens:,}" if best.holds_tokens > other.holds_tokens else ""
        said += ", the next best" if apart else holds
    longer = max(same, key=lambda way: way.holds_tokens, default=best)
    if longer.holds_tokens > MORE * best.holds_tokens:
        slower = longer.rate(part) / best.rate(part)
        said += f"; {longer.label} holds {many(longer.holds_tokens, 'token')}, at {slower:.2f} times the speed"
    deeper = [way for way in others if way.context_tokens > best.context_tokens]
    if deeper:
        far = max(deeper, key=lambda way: (way.holds_tokens, way.rate(part)))
        said += f"; {far.label} holds {many(far.holds_tokens, 'token')}, at {far.rate(part):,.1f} tokens/s"
    shorter = [way for way in others if way.context_tokens < best.context_tokens]
    faster = max(shorter, key=lambda way: way.rate(part), default=best)
    if faster.rate(part) > best.rate(part):
        said += f"; {faster.label} gives {faster.rate(part):,.1f} tokens/s, but holds {faster.holds_tokens:,}"
    return said


def meeting(met, part):
    """Where tensor parallel and the pipeline change places; `met` as crossover.of_ways gives it."""
    if met is None:
        return ""
    link, ahead = met["link_bytes_per_s"], met["ahead"]
    other = "pp" if ahead == "tp" else "tp"
    said = f"; {ahead} is ahead of {other} in {part} at any bandwidth of the link"
    if link:
        said = f"; {other} is ahead of {ahead} in {part} {'below' if ahead == 'tp' else 'above'} {link / GB:,.1f} GB/s"
    return said + (f"; from a batch of {met['batch']} on the order turns" if met["batch"] else "")
