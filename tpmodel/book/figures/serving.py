"""Serving: a measured speed beside the model's range for its engine and link, and what speculative decoding gains."""

from ...formula import ops
from ...formula.units import GB, MS
from ...planner.engine.versions import Setting
from ...planner.evidence.articles import GPU, MODEL
from ...planner.evidence.measured import SLOW, rate
from ...planner.evidence.rows import printed
from ...planner.plan import assume, one_pass
from ...planner.plan.placement import cache_bytes
from ..live import Axes, Curve, Figure, Line, Marker, Table, bar, holding, quantity, rows, slider, stack
from . import ends
from .ends import BOUND, HIGH, LOW, MID
from .options import (AS_COUNTED, BEYOND, CONFIG, COUNTED, NO_CACHE, NO_DRAFTS, PASS, SHM, STATES_BYTES, cache_format,
                      gpus, latency, sources)

AXIS_MS, AXIS_RATE = 100, 200
NOTHING_S = 0.05 * MS  # what is printed as 0.0 ms
MOST_DRAFTS = 8
DRAFT_STATES_BYTES = cache_bytes(CONFIG, Setting(drafts=1), 0)[2] - STATES_BYTES  # of one draft, before the split
DRAFTS = {"draft_allreduces": assume.DRAFT_ALLREDUCES}
SHAPE = ends.SHAPE | DRAFTS | {"attention_s": 0, "draft_gap_s": assume.draft_gap(assume.ENGINE).base}
RECIPES = PASS | {
    "tokens": "verify_tokens",
    "state_bytes": lambda v: (v.states_bytes + v.drafts * DRAFT_STATES_BYTES) / v.ranks,
    "drafting_s": lambda v: v.drafts * v.draft_s,
    "plain_tokens_per_s": lambda v: undrafted(v).decode_tokens_per_s,
    "gain": lambda v: v.confirmed_tokens_per_s / v.plain_tokens_per_s,
    "loses": lambda v: ops.where(v.gain < 1, 1, 0)}
GIVEN = ("read_bytes", "state_bytes", "linear_s", "attention_s")

undrafted = holding(drafts=0.0)  # the same without drafts: a plain decode step


def _drafts(silent=()):
    return (slider("drafts", "Tokens drafted a step", 0, MOST_DRAFTS, 3, step=1, whole=True),
            slider("acceptance_frac", "Chance that a draft is accepted", 0, 0.98, 0.7, step=0.02, silent=silent))


def _model(silent=()):
    """Sliders of the build and its context that start at what `plan` uses."""
    draft = one_pass.draft_bytes(CONFIG, 1) / GB
    return (*ends.loads(), slider("draft_bytes", "Weights a draft step reads, all GPUs", 0.1, 20, draft, "GB",
                                  silent=silent))


# --- is my speed what it should be? --------------------------------------------------------------

ARTICLE, PLANNED = f"{printed('a1.measured_mtp'):g}", f"{round(rate(context_tokens=assume.PROMPT_TOKENS), 1):g}"
PARTS = (("weights", "blue", "weight read", "weight_read_s/MS"), ("kv", "green", "cache read", "busy_s/MS"),
         ("comm", "red", "all-reduces", "working_s/MS"), ("wait", "gray", "engine waits", "pass_s/MS"),
         ("drafts", "gold", "drafts", "round_s/MS"))


def _verdict(v):
    """Where the measured rate lies: its place in VERDICTS."""
    measured = v.measured_tokens_per_s
    inside = ops.where(measured >= v.low_tokens_per_s, 2, 3)
    above = ops.where(measured > v.high_tokens_per_s, 1, inside)
    return ops.where(measured > v.bound_tokens_per_s, 0, above)


def _blame(v):
    """Which term, alone at its slow end, would explain what the middle leaves: its place in BLAMED."""
    found = ops.where(v.step_s <= v.low_s, len(TERMS) + 1, len(TERMS) + 2)
    for place, names in reversed(list(enumerate(TERMS.values(), 1))):
        found = ops.where(v.step_s <= ends.at(SLOW, *names)(v).round_s, place, found)
    found = ops.where(MID(v).unexplained_s < NOTHING_S, 0, found)
    drafted = ops.where(found > len(TERMS) + 1, len(TERMS) + 4, ops.where(found > 0, len(TERMS) + 3, 0))
    return ops.where(v.drafts > 0, drafted, found)


TERMS = {"the engine's wait": (*ends.WAIT, "draft_gap_s"), "a slow link of this kind": ends.NAMES["link"],
         "a low share of the bandwidth": ends.REACH}
OTHERS = "launches without CUDA graphs, a slot with fewer lanes, a power cap or heat."
CHECK = "check drafts and the bytes that are read"
VERDICTS = (f"beyond the bound: {CHECK}", f"faster than the model: {CHECK}", "plausible",
            "below all of it. The alarm rings")
BLAMED = ("nothing to explain.", *(f"{term} alone may explain it." for term in TERMS),
          "no single range explains it, all of them at their slow ends do.", f"no range explains it. Look for {OTHERS}",
          "see first how many drafts are accepted; the ranges explain the rest.",
          f"see first how many drafts are accepted. If so many are, look for {OTHERS}")


def alarm():
    """A measured rate beside the low end of the model for its engine, as a calculator."""
    model = (("low", LOW), ("mid", MID), ("high", HIGH))
    return Figure(
        name="alarm", title="Is my speed what it should be?", size=(4.6, 3.2),
        caption="Top: your measured step. Below: the model's step for this card, engine and link, in the "
                "middle and at the low end. Behind the line the alarm rings.",
        first=6, controls=(
            *_drafts(NO_DRAFTS),
            slider("measured_tokens_per_s", "Measured, one stream", 1, 400, ARTICLE, "tokens/s", PLANNED),
            *ends.choices(), gpus(), *_model(NO_DRAFTS), cache_format(NO_CACHE)),
        presets={f"article 1's {ARTICLE} tokens/s, with three drafts": {},
                 AS_COUNTED: {"measured_tokens_per_s": PLANNED, "drafts": "0"}},
        constants=ends.CONSTANTS | DRAFTS, sources=sources(ends.SHAPE, MODEL), given=(*ends.GIVEN, "draft_allreduce_s"),
        recipes=ends.RECIPES | RECIPES | {
            "draft_allreduce_s": lambda v: ends.allreduce(v, v.message_bytes / v.verify_tokens),
            "step_s": lambda v: v.round_tokens / v.measured_tokens_per_s,
            "measured_s": "step_s",
            "bound_s": lambda v: BOUND(v).weight_read_s + BOUND(v).kv_read_s,
            "bound_tokens_per_s": lambda v: v.round_tokens / v.bound_s,
            "ratio": lambda v: v.measured_tokens_per_s / v.bound_tokens_per_s,
            **{f"{end}_s": quantity("round_s", at) for end, at in model},
            **{f"{end}_tokens_per_s": quantity("confirmed_tokens_per_s", at) for end, at in model},
            "more_s": lambda v: ops.maximum(0, MID(v).unexplained_s),
            "wait_s": lambda v: ops.maximum(0, MID(v).gap_s + MID(v).unexplained_s),
            "each_s": quantity("gap_allreduce_s", MID),
            "verdict": _verdict, "blame": _blame},
        axes=(Axes("time of one step, ms", xlim=(0, AXIS_MS), ylim=(-2.5, 0.5), legend=3, beyond=BEYOND,
                   yticks=((0, "yours"), (-1, "middle"), (-2, "low end"))),),
        marks=(bar("measured", 0, 0, "step_s/MS", "purple", "measured"),
               *stack(-1, PARTS, MID, "mid-{}"), *stack(-2, PARTS, LOW, "low-{}", ghost=True),
               Line("limit", "low_s/MS", -2.5, "low_s/MS", 0.5, "purple", dashed=True)),
        readouts={
            "verdict": "{measured_tokens_per_s:1} tokens/s, {round_tokens:2} a step, where the model says "
                       f"{{low_tokens_per_s:1}} to {{high_tokens_per_s:1}}: {{verdict?{'|'.join(VERDICTS)}}}.",
            "gap": "The middle leaves {more_s/MS:1} ms a step. As a wait of the engine that makes {wait_s/MS:1} ms, "
                   f"as all-reduces {{each_s/US:1}} µs each: {{blame?{'|'.join(BLAMED)}}}",
            "ratio": "{ratio:2}× the bound of {bound_tokens_per_s:1} tokens/s, which reads alone would reach."},
        table=Table("The step", ("", "ms", "tokens/s"), tuple(
            (words, f"{{{name}_s/MS:1}}", f"{{{name}_tokens_per_s:1}}") for words, name in (
                ("measured", "measured"), ("the bound", "bound"), ("the model, high end", "high"),
                ("the model, middle", "mid"), ("the model, low end: the alarm", "low")))))


# --- what do drafts gain? ------------------------------------------------------------------------

def speculation():
    """Tokens/s against the number of drafts."""
    samples, counts = tuple(float(k) for k in range(MOST_DRAFTS + 1)), (0, 1, 2, 3, 5)
    return Figure(
        name="speculation", title="What do drafts gain?",
        caption="Confirmed tokens/s against tokens drafted a round. "
                "Dashed: no drafts; and drafts that would cost nothing.",
        controls=(
            *_drafts()[::-1],
            slider("gap_s", "Wait of the engine, a step or a round", 0, 60, COUNTED["gap_s"], "ms", step=0.5),
            latency(COUNTED["allreduce_latency_s"]),
            slider("link_bytes_per_s", "Achieved bandwidth of the link", 1, 400, SHM["link_bytes_per_s"] / GB, "GB/s"),
            slider("memory_bytes_per_s", "Memory bandwidth of a GPU", 200, 8000, GPU.memory_bytes_per_s / GB, "GB/s"),
            slider("achieved_frac", "Achieved fraction of it", 0.5, 1, COUNTED["achieved_frac"], step=0.01),
            *_model()),
        presets={AS_COUNTED: {}},
        constants=SHAPE | {"ranks": 2, "kv_element_bytes": 1, "bulk_latency_s": SHM["bulk_latency_s"]},
        sources=sources(SHAPE, MODEL), given=GIVEN, recipes=RECIPES,
        axes=(Axes("drafts a round", "tokens/s", (0, MOST_DRAFTS), (0, AXIS_RATE), legend=2),),
        marks=(
            Curve("free", "drafts", samples, lambda v: v.plain_tokens_per_s * v.round_tokens, "gray",
                  "drafts for nothing", dashed=True),
            Line("plain", 0, "plain_tokens_per_s", MOST_DRAFTS, "plain_tokens_per_s", "green", "no drafts",
                 dashed=True),
            Curve("confirmed", "drafts", samples, "confirmed_tokens_per_s", "blue", "confirmed"),
            Marker("here", "drafts", "confirmed_tokens_per_s", "purple", "yours")),
        readouts={
            "rate": "{confirmed_tokens_per_s:1} tokens/s, {gain:2}× plain decoding at {plain_tokens_per_s:1} tokens/s"
                    "{loses?.|: the drafts cost more than they gain.}",
            "round": "{round_tokens:2} tokens a round of {round_s/MS:1} ms: "
                     "verify {working_s/MS:1}, drafts {drafting_s/MS:1}, wait {gap_s/MS:1}. "
                     "{allreduces_per_confirmed_token:0} all-reduces a confirmed token."},
        table=Table("By drafts a round", ("", *map(str, counts)), rows(
            [holding(drafts=float(k)) for k in counts],
            ("tokens a round", "{round_tokens:2}"), ("round, ms", "{round_s/MS:1}"),
            ("all-reduces a token", "{allreduces_per_confirmed_token:0}"), ("tokens/s", "{confirmed_tokens_per_s:1}"))))
