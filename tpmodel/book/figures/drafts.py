"""Draft and verify on a time line: rounds of drafts above, plain steps below, on one clock."""

from ...formula import ops
from ..live import Axes, Box, Figure, Label, Table, slider, steps
from .options import COUNTED, note
from .serving import GIVEN, MOST_DRAFTS, RECIPES, speculation, undrafted

TICKS, ROUNDS, MOST_PLAIN = 12, 3, 16  # moments of the clock; rounds drawn; plain steps drawn at most
HALF, ABOVE, BELOW = 0.3, 1.3, 0.0  # of a row's height; the two rows
PARTS = (("read", "blue"), ("link", "red"), ("wait", "gray"))  # of a pass, behind each other
NONE = "\N{NO-BREAK SPACE}"  # an empty text has no place


def _start():
    """The numbers that the figure of the gain starts from."""
    figure = speculation()
    found = dict(figure.constants)
    for control in figure.controls:
        found |= control.value(control.start)
    return {name: number for name, number in found.items() if name not in ("drafts", "acceptance_frac", "gap_s")}


def _brick(name, row, begin, end, color, **more):
    """A brick as far as the clock has come."""
    share = lambda place: lambda v: ops.minimum(place(v), v.now_s) / v.whole_s
    return Box(name, share(begin), share(end), row - HALF, row + HALF, color, ghost=True, **more)


def _pass(name, row, begin, of):
    """Reading, all-reduces and the engine's wait of one pass that begins at `begin`."""
    ends = (lambda v: begin(v) + of(v).busy_s, lambda v: begin(v) + of(v).working_s, lambda v: begin(v) + of(v).pass_s)
    for (part, color), start, end in zip(PARTS, (begin, *ends), ends):
        yield _brick(f"{name}-{part}", row, start, end, color)


def _earned(when, count):
    """How many tokens came, once they did."""
    return ((lambda v: ops.where(when(v) <= v.now_s, getattr(v, count), 0),
             (NONE, *(f"+{n + 1}" for n in range(MOST_DRAFTS + 1)))),)


def _rounds():
    for i in range(ROUNDS):
        begin = lambda v, i=i: i * v.round_s
        for k in range(MOST_DRAFTS):
            at = lambda v, begin=begin, k=k: begin(v) + ops.minimum(k, v.drafts) * v.draft_s
            yield _brick(f"draft-{i + 1}-{k + 1}", ABOVE, at, lambda v, begin=begin, k=k: (
                begin(v) + ops.minimum(k + 1, v.drafts) * v.draft_s), "gold")
        verify = lambda v, begin=begin: begin(v) + v.drafting_s
        yield from _pass(f"verify-{i + 1}", ABOVE, verify, lambda v: v)
        yield Label(f"got-{i + 1}", lambda v, verify=verify: (verify(v) + v.working_s / 2) / v.whole_s, ABOVE + 0.45,
                    _earned(lambda v, verify=verify: verify(v) + v.working_s, "confirmed"))
    for i in range(MOST_PLAIN):
        begin = lambda v, i=i: i * v.plain_s
        yield from _pass(f"plain-{i + 1}", BELOW, begin, undrafted)
        yield Label(f"one-{i + 1}", lambda v, begin=begin: (begin(v) + undrafted(v).working_s / 2) / v.whole_s,
                    BELOW + 0.45, _earned(lambda v, begin=begin: begin(v) + undrafted(v).working_s, "one"))


def draft_steps():
    """What a round of drafts does in the time of plain steps, live."""
    return Figure(
        name="draft-steps", title="Draft, then verify.", size=(4.6, 2.6),
        caption="Above, rounds: drafts (gold), one pass that checks them all (blue: the cards; red: all-reduces), the "
                "engine's wait (grey). Below, plain steps on the same clock. Numbers: tokens confirmed.",
        controls=(
            steps("clock", TICKS, TICKS, "Clock"),
            slider("drafts", "Tokens drafted a round", 1, MOST_DRAFTS, 3, step=1, whole=True),
            slider("accepted", "Of them accepted", 0, MOST_DRAFTS, 2, step=1, whole=True,
                   silent=note(lambda v: v.accepted > v.drafts, "no more than were drafted")),
            slider("gap_s", "Wait of the engine, a step or a round", 0, 60, COUNTED["gap_s"], "ms", step=0.5)),
        constants=_start(), given=GIVEN,
        recipes=RECIPES | {
            "one": lambda v: v.verify_tokens - v.drafts,
            "confirmed": lambda v: ops.minimum(v.accepted, v.drafts) + 1,
            "plain_s": lambda v: undrafted(v).pass_s,
            "plain_work_s": lambda v: undrafted(v).working_s,
            "whole_s": lambda v: ROUNDS * v.round_s,
            "now_s": lambda v: v.clock / TICKS * v.whole_s,
            "got": lambda v: v.confirmed * ops.floor((v.now_s + v.gap_s) / v.round_s),
            "got_plain": lambda v: ops.floor((v.now_s + v.gap_s) / v.plain_s),
            "drafted_tokens_per_s": lambda v: v.confirmed / v.round_s,
            "plainly_tokens_per_s": lambda v: 1 / v.plain_s,
            "slower": lambda v: ops.where(v.drafted_tokens_per_s < v.plainly_tokens_per_s, 1, 0)},
        axes=(Axes(xlim=(0, 1.01), ylim=(-0.4, 2.0), bare=True),),
        marks=tuple(_rounds()),
        readouts={
            "now": "At {now_s/MS:0} ms: {got:0} tokens with drafts, {got_plain:0} without.",
            "rate": "If every round went so: {drafted_tokens_per_s:1} tokens/s, plain {plainly_tokens_per_s:1}"
                    "{slower?.|: these drafts cost more than they gain.}"},
        table=Table("In ms", ("", "a round", "a plain step"), (
            ("drafts", "{drafting_s/MS:1}", "–"), ("the pass", "{working_s/MS:1}", "{plain_work_s/MS:1}"),
            ("wait", "{gap_s/MS:1}", "{gap_s/MS:1}"), ("together", "{round_s/MS:1}", "{plain_s/MS:1}"),
            ("tokens", "{confirmed:0}", "1"))))
