"""How many drafts are accepted: three ways to say it, two of which engines print, as the chance that counts."""

from ...formulas import speculation
from .assume import ACCEPTANCE, MID


WAYS = ("acceptance", "accepted_per_draft", "acceptance_length")


def asked(ask):
    """(flag, value, whether it is fine, what it must be) of each way to say it, for the check of what was asked."""
    ends = {"acceptance": (0, 1), "accepted_per_draft": (0, 1), "acceptance_length": (1, 1 + ask.mtp)}
    said = [name for name in ends if getattr(ask, name) is not None]
    for name in said:
        value, (low, high) = getattr(ask, name), ends[name]
        yield name, value, ask.mtp, "given with --mtp only"
        yield name, value, low <= value < high, f"a number from {low} up to but not {high}"
        yield name, value, len(said) == 1, f"the only one of {', '.join(said)}, which say the same"


def chances(ask):
    """The chance of each next draft, slow to fast: as said, as what an engine printed comes to, or a stated range."""
    length = ask.acceptance_length
    if ask.accepted_per_draft is not None:
        length = speculation.printed_round_tokens(ask.accepted_per_draft, ask.mtp)
    said = ask.acceptance if length is None else speculation.chance(length, ask.mtp)
    return ACCEPTANCE if said is None else (said,) * len(ACCEPTANCE)


def document(ask):
    """The middle of the drafts as JSON has it, each way to say it; None where nothing is drafted."""
    if not ask.mtp:
        return None
    chance = chances(ask)[MID]
    length = speculation.round_tokens(ask.mtp, chance)
    return {"tokens": ask.mtp, "acceptance": chance, "acceptance_length": length,
            "accepted_per_draft": speculation.accepted_frac(length, ask.mtp)}
