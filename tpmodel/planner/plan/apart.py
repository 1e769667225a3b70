"""The range of a prompt's speed: its kernels and its link were each measured apart, so their ends seldom meet."""

from .assume import MID

SHARED = (("weight read", "cache read", "kernel starts", "engine's wait"), ("linear layers",), ("attention",),
          ("all-reduces", "hand-overs"), ("offload copies",))  # terms that one uncertain number moves are one part
EXPANDED = 2 / 3**0.5  # twice the standard deviation of a value that is anywhere in its range, over half of that range


def rates(terms, tokens):
    """(low, middle, high) tokens/s of a prompt of so many tokens, from its terms, slow to fast.

    Limits : no further out than with all terms at their worst; a decode step is, as its numbers come from whole steps.
    Source : JCGM 100:2008, 4.3.7, 5.1.2, 6.3: a value anywhere in its range, one as far off as the next; the root of
    the sum of squares of what each part alone changes; k = 2

    >>> [round(rate, 3) for rate in rates({"linear layers": (5, 2, 1), "all-reduces": (6, 2, 2)}, 1)]
    [0.102, 0.25, 0.333]
    """
    middle = sum(ends[MID] for ends in terms.values())

    def time_s(end):
        alone = [sum(terms[name][end] - terms[name][MID] for name in names if name in terms) for names in SHARED]
        spread = min(sum(map(abs, alone)), EXPANDED * sum(change * change for change in alone) ** 0.5)
        return middle + (spread if end < MID else -spread)

    return tokens / time_s(0), tokens / middle, tokens / time_s(2)
