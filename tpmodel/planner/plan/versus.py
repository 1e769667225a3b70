"""Two ways on one machine against each other: a range that both share stands at the same end in both."""

from dataclasses import dataclass
from itertools import product

from . import one_pass, wire
from .assume import ENDS, MID

WAIT = "engine's wait"
DECIDES = {"link": "the link: measure it with `tpmodel measure`",
           "cards": "what the cards reach of their rates: measure it with `tpmodel measure`",
           "wait": "the engine's wait: time a step"}


@dataclass(frozen=True)
class Arm:
    """One way, and the work it is given: so many times each job, for so many tokens in all."""

    config: object
    placement: object
    link: object
    jobs: tuple  # (times, Job)
    tokens: float = 1


@dataclass(frozen=True)
class Ratio:
    """The speed of one way over that of another, slow to fast, and which shared terms turn it alone."""

    low: float
    mid: float
    high: float
    turned_by: tuple
    other: object = None  # the other way, where both are of a plan

    @property
    def decided(self):
        """Whether the order is the same wherever in their ranges the terms are."""
        return not self.low <= 1 <= self.high

    def document(self):
        """As JSON has it."""
        return {"label": self.other.label, "ratio": {"low": self.low, "mid": self.mid, "high": self.high},
                "decided": self.decided, "decided_by": self.words}

    @property
    def words(self):
        """What would decide it."""
        named = self.turned_by or (() if self.decided else tuple(DECIDES))
        return " and ".join(DECIDES[name] for name in named)


def compare(a, b):
    """The Ratio of a's speed to b's. Links of two kinds stand each at an end of its own; all else is shared."""
    ends, shared = range(len(ENDS)), _kind(a.link) == _kind(b.link)
    first, second = _seconds(a), _seconds(b)
    found = {(i, j, cards, wait): b_s / a_s * a.tokens / b.tokens
             for i, j, cards, wait in product(ends, ends, ends, ends) if i == j or not shared
             for a_s, b_s in [(first[i, cards, wait], second[j, cards, wait])]}
    places = {"link": (0, 1), "cards": (2,), "wait": (3,)}

    def turns(own):
        """Whether the order changes with these terms alone, the others in the middle."""
        moved = [ratio for at, ratio in found.items() if all(at[i] == MID for i in range(4) if i not in own)]
        return min(moved) <= 1 <= max(moved)

    turned = tuple(name for name, own in places.items() if turns(own))
    return Ratio(min(found.values()), found[(MID,) * 4], max(found.values()), turned)


def _kind(link):
    """What two links share that differ in their slots only."""
    return link.said.get("transport", link.key)


def _seconds(arm):
    """{(end of the link, end of the cards, end of the wait): seconds} of an arm's work."""
    ends, found = range(len(ENDS)), {}
    for at in ends:
        link, work = wire.at_end(arm.link, at), []
        for times, job in arm.jobs:
            terms = one_pass.terms(arm.config, arm.placement, link, job)
            waits = terms.pop(WAIT, (0,) * len(ENDS))
            work.append((times, [sum(seconds[end] for seconds in terms.values()) for end in ends], waits))
        for cards, wait in product(ends, ends):
            found[at, cards, wait] = sum(times * (busy[cards] + waits[wait]) for times, busy, waits in work)
    return found
