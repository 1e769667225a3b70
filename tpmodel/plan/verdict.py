"""Which way to split is best, by how much, and why, in words."""

from ..units import GB, GIB

TIE = 0.03  # of the rate: ways nearer than that are equally fast, and the longer context decides


def _rate(found, part):
    return found[part]["mid"] if found[part] else 0.0


def choose(tried, part):
    """The best of all ways: fits, at the longest of the contexts that rates are for, fastest; of equally fast ones the one that holds most."""
    depth = max((found["context_tokens"] for found in tried if found["fits"]), default=0)
    pool = [found for found in tried if found["fits"] and found["context_tokens"] == depth]
    if not pool:
        return max(tried, key=lambda found: (found["max_context_tokens"], min(gpu["kv_pool_bytes"] for gpu in found["gpus"])))
    top = max(_rate(found, part) for found in pool)
    level = [found for found in pool if _rate(found, part) >= top * (1 - TIE)]
    return max(level, key=lambda found: (found["max_context_tokens"], _rate(found, part)))


def label(found):
    """One way to split in words: one, tp, tp with offload, or pp with its layers."""
    kind, layers = found["split"]["kind"], found["split"]["layers"]
    if kind == "pp":
        return f"pp {','.join(map(str, layers))}"
    return "tp with offload" if kind == "offload" and found["split"]["ranks"] > 1 else kind


def sentence(best, tried, part, batch, cards):
    """Whether it fits, by how much, which way wins by how much, and what limits it."""
    each = f" for each of {batch} sequences" if batch > 1 else ""
    if not best["fits"]:
        return f"does not fit: {_missing(best, each)}"
    split, ends = best["split"], best["max_context_range"]
    said = "fits"
    if split["offloaded_bytes"]:
        said += f" with {split['offloaded_bytes'] / GIB:,.1f} GiB of the weights in main memory"
    if len(best["gpus"]) < cards:
        said += f" on the first GPU alone, the {'others are' if cards > 2 else 'other is'} idle"
    said += f": up to {best['max_context_tokens']:,} tokens{each}"
    if ends["low"] != ends["high"]:
        said += f" ({ends['low']:,} to {ends['high']:,} by the overhead)"
    return f"{said}{_beside(best, tried, part)}; {part} is limited by the {best[part]['limited_by']}"


def _missing(best, each):
    short = min(gpu["kv_pool_bytes"] for gpu in best["gpus"])
    if short < 0:
        return f"the weights and buffers exceed the budget of a GPU by {-short / GIB:.2f} GiB"
    return f"only {best['max_context_tokens']:,} tokens{each} fit"


def _beside(best, tried, part):
    """The next best way at the same context, and a faster one that does not hold as much."""
    others = [found for found in tried if found is not best and found["fits"] and found[part]]
    same = [found for found in others if found["context_tokens"] == best["context_tokens"]]
    said = ""
    if same:
        other = max(same, key=lambda found: _rate(found, part))
        ratio = _rate(best, part) / _rate(other, part)
        if abs(ratio - 1) <= TIE:
            said += f"; {label(best)} is as fast in {part} as {label(other)}"
            if best["max_context_tokens"] > other["max_context_tokens"]:
                said += f", which holds {other['max_context_tokens']:,}"
        else:
            said += f"; {label(best)} is {ratio:.2f} times as fast in {part} as {label(other)}, the next best"
    shorter = max((found for found in others if found["context_tokens"] < best["context_tokens"]), key=lambda found: _rate(found, part), default=None)
    if shorter and _rate(shorter, part) > _rate(best, part):
        said += f"; {label(shorter)} gives {_rate(shorter, part):,.1f} tokens/s, but holds {shorter['max_context_tokens']:,}"
    return said


def meeting(met, part):
    """Where tensor parallel and the pipeline change places, at these starts of the link; `met` as crossover.crossovers gives it."""
    if met is None:
        return ""
    link, batch, ahead = met["link_bytes_per_s"], met["batch"], met["ahead"]
    other = "pp" if ahead == "tp" else "tp"
    if link is None:
        said = f"; {ahead} is ahead of {other} in {part} at any bandwidth of the link"
    else:
        said = f"; {other} is ahead of {ahead} in {part} {'below' if ahead == 'tp' else 'above'} {link / GB:,.1f} GB/s"
    return said + (f"; from a batch of {batch} on the order turns" if batch else "")
