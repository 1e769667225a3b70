"""Why is mine lower? From what the data sheet's bandwidth allows to what people measure, term by term."""

from functools import reduce
from operator import add

from ...catalog.gpus import by_name
from ...formula import ops
from ...formula.units import GB
from ...planner.evidence.articles import MODEL
from ...planner.evidence.cases import cases
from ...planner.shapes.models import by_name as model_by_name
from ..live import Axes, Figure, Label, Marker, Table, bar, quantity
from . import ends
from .options import CONFIG, NO_CACHE, cache_format, gpus, sources

STEPS = {  # words -> color, the time with this term and all before it, where the book explains it
    "bandwidth lost": ("blue", "weight_read_s", "decode.html#the-weight-read"),
    "cache read": ("green", "busy_s", "decode.html#a-long-context"),
    "small kernels": ("brown", "started_s", "measured.html#the-same-sum-for-all"),
    "all-reduces": ("red", "sent_s", "link.html"),
    "engine waits": ("gray", "pass_s", "measured.html#the-same-sum-for-all")}
TIMES = ("bound_s", *(time for _, time, _ in STEPS.values()))
ALIKE_FRAC, ALIKE_TOKENS = 0.15, 32768  # a run counts where its build and its context are near yours
NOWHERE = -1e3
LINKS = dict(zip(ends.TRANSPORTS, ("shm", "pcie-unknown", "staged", "mailbox", "p2p", "nvlink")))
RANKS = (1, 2, 4)


def runs():
    """Public runs of a model of this size, on one card or a tensor-parallel group that the figure offers."""
    def alike(line):
        try:
            card, model = by_name(line["gpu"]), model_by_name(line["model"])
        except ValueError:
            return False
        told = line["tp"] == line["gpus"] and line.text("weight_read_gb")
        return told and card in ends.CARDS and model.parameters == CONFIG.parameters
    return [case for case in cases() if alike(case.line) and int(case.line["tp"]) in RANKS]


def _fits(case):
    """1 where a run is of the setting: its card, engine, number of cards, and link unless nobody said it; else 0."""
    engines, links = [words.lower() for words in ends.ENGINES], list(LINKS.values())
    read_bytes = float(case.line["weight_read_gb"]) * GB
    is_number = {"card_number": ends.CARDS.index(by_name(case.line["gpu"])), "ranks": int(case.line["tp"]),
                 "engine_number": engines.index(case.engine if case.engine in engines else "another")}
    if case.link in links and case.link != "pcie-unknown":
        is_number["link_number"] = links.index(case.link)

    def fits(v):
        off = [ops.maximum(getattr(v, name) - at, at - getattr(v, name)) for name, at in is_number.items()]
        off += [ops.maximum(v.read_bytes / read_bytes, read_bytes / v.read_bytes) - 1 - ALIKE_FRAC,
                (ops.maximum(v.context_tokens - case.tokens, case.tokens - v.context_tokens)) / ALIKE_TOKENS - 1]
        return ops.where(reduce(ops.maximum, off) <= 0, 1, 0)
    return fits


def _last(found):
    """The place of the last run that fits among `found`, from 1; 0 where none does."""
    return lambda v: reduce(lambda at, i: ops.where(found[i][0](v) > 0, i + 1, at), range(len(found)), 0)


def _told(found):
    """How many runs fit and between which rates; `found` in the order of their rates."""
    count = lambda v: reduce(add, (fits(v) for fits, _ in found))
    words = lambda text, pairs: ("", *(text.format(case.measured) for _, case in pairs))
    back = found[::-1]
    return ("Public runs of this setting: ", (count, 0), (_last(back), words(", from {:.1f}", back)),
            (_last(found), words(" to {:.1f} tokens/s", found)), ".")


def _bars(low, high):
    """The bound, a bar for each term with the rate that it leaves, the model and its range."""
    rows, share = len(STEPS) + 2, lambda time, by=0: lambda v: v.bound_s / getattr(v, time) + by
    yield bar("bound", 0, 0, 1, "teal")
    yield Label("bound-rate", 1.02, 0, "{rate_0:1}", align="left")
    for i, (color, time, _) in enumerate(STEPS.values(), 1):
        yield bar(f"step-{i}", -i, share(time), share(TIMES[i - 1]), color)
        yield Label(f"left-{i}", share(time, -0.02), -i, f"{{rate_{i}:1}}", align="right")
    yield bar("model", 1 - rows, 0, share("pass_s"), "teal")
    yield Label("model-rate", share("pass_s", 0.02), 1 - rows, "{decode_tokens_per_s:1}", align="left")
    yield bar("range", -rows, *(lambda v, rate=rate: v.bound_s * rate(v) for rate in (low, high)), "teal",
              "the model's range", ghost=True)


def _dot(fits, case, label):
    """A run on the last row, where it fits."""
    here = lambda place: lambda v: ops.where(fits(v) > 0, place(v), NOWHERE)
    return Marker(f"run-{case.id}", here(lambda v: case.measured * v.bound_s), here(lambda v: -2 - len(STEPS)),
                  "purple", label, title=f"{case.setting}: {case.measured:g} tokens/s measured")


def why_lower():
    """The waterfall of one token, live, with the public runs of the same setting."""
    found = sorted(((_fits(case), case) for case in runs()), key=lambda pair: pair[1].measured)
    low, high = (quantity("decode_tokens_per_s", at) for at in (ends.LOW, ends.HIGH))
    lost = [f"lost_{i}" for i in range(1, len(TIMES))]
    return Figure(
        name="why-lower", title="Why is mine lower?", size=(4.6, 3.6),
        caption="One user, one token, in tokens/s: from the bound of your cards' memory bandwidth each term takes its "
                "part, down to the model and to what people measured. A run whose link nobody told stands with each.",
        controls=(*ends.choices(), gpus(*RANKS), *ends.loads(), cache_format(NO_CACHE)),
        constants=ends.CONSTANTS | {"tokens": 1}, sources=sources(ends.SHAPE, MODEL), given=ends.GIVEN,
        recipes=ends.RECIPES | {
            "bound_s": lambda v: ends.BOUND(v).weight_read_s,
            "started_s": lambda v: v.busy_s + v.kernels_s,
            "sent_s": lambda v: v.started_s + v.communication_s,
            **{f"rate_{i}": lambda v, time=time: 1 / getattr(v, time) for i, time in enumerate(TIMES)},
            **{name: lambda v, a=a, b=b: getattr(v, a) - getattr(v, b) for name, a, b in zip(lost, TIMES[1:], TIMES)},
            "most_s": lambda v: reduce(ops.maximum, (getattr(v, name) for name in lost)),
            "most": lambda v: reduce(lambda at, i: ops.where(getattr(v, lost[i]) >= v.most_s, i, at),
                                     range(len(lost)), 0)},
        axes=(Axes("of the bound, %", xlim=(0, 1.2), ylim=(-2.5 - len(STEPS), 0.5), legend=2,
                   xticks=tuple((n / 4, f"{25 * n}") for n in range(5)),
                   yticks=tuple((-i, words) for i, words in enumerate(
                       ("the bound", *STEPS, "the model", "measured")))),),
        marks=(*_bars(low, high), *(_dot(*pair, "" if i else "public runs") for i, pair in enumerate(found))),
        readouts={
            "why": ("At most {rate_0:1} tokens/s by bandwidth alone. The model expects {decode_tokens_per_s:1}, from ",
                    (low, 1), " to ", (high, 1), "."),
            "most": f"Most goes to: {{most?{'|'.join(STEPS)}}}, {{most_s/MS:1}} of {{pass_s/MS:1}} ms a token.",
            "runs": _told(found)},
        table=Table("One token, term by term", ("", "ms", "tokens/s left"), (
            ("the bound", "{bound_s/MS:1}", "{rate_0:1}"),
            *((words, f"{{{lost[i - 1]}/MS:1}}", f"{{rate_{i}:1}}") for i, words in enumerate(STEPS, 1)),
            ("the model", "{pass_s/MS:1}", "{decode_tokens_per_s:1}")),
            {words: f"../book/{address}" for words, (_, _, address) in STEPS.items()}))
