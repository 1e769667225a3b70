"""Serving: a measured speed beside the model's range for its engine and link, and what speculative decoding gains."""

from ...catalog.links import link
from ...formula import ops
from ...formula.units import GB, MS
from ...planner.engine.versions import Setting
from ...planner.evidence.articles import GPU, MODEL, PLAIN
from ...planner.evidence.measured import FAST, MIDDLE, SLOW, rate, waits_s
from ...planner.evidence.rows import printed
from ...planner.plan import assume, one_pass, wire
from ...planner.plan.placement import cache_bytes
from ..live import Axes, Choice, Curve, Figure, Line, Marker, Table, bar, holding, quantity, rows, slider, stack
from .options import (AS_COUNTED, BEYOND, CONFIG, COUNTED, NO_CACHE, NO_DRAFTS, ONE_GPU, PASS, SHM,
                      STATES_BYTES, cache_format, gpus, latency, note, sources)

AXIS_MS, AXIS_RATE = 100, 200
NOTHING_S = 0.05 * MS  # what is printed as 0.0 ms
MOST_DRAFTS = 8
DRAFT_STATES_BYTES = cache_bytes(CONFIG, Setting(drafts=1), 0)[2] - STATES_BYTES  # of one draft, before the split
SHAPE = {name: CONFIG.numbers[name]
         for name in ("layers", "full_layers", "hidden", "kv_heads", "head_elements", "element_bytes")}
SHAPE |= PLAIN | {"states_bytes": STATES_BYTES, "draft_allreduces": assume.DRAFT_ALLREDUCES,
                  "draft_gap_s": assume.draft_gap(assume.ENGINE).base,
                  "linear_s": 0, "attention_s": 0}  # a card multiplies nine tokens while it reads the weights once
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


def _machine(silent=()):
    """Sliders that start at what `plan` uses."""
    draft, memory = one_pass.draft_bytes(CONFIG, 1) / GB, GPU.memory_bytes_per_s / GB
    return (slider("read_bytes", "Weights read per step, all GPUs", 2, 200, COUNTED["read_bytes"], "GB"),
            slider("memory_bytes_per_s", "Memory bandwidth of a GPU", 200, 8000, memory, "GB/s"),
            slider("achieved_frac", "Achieved fraction of it", 0.5, 1, COUNTED["achieved_frac"], step=0.01),
            slider("draft_bytes", "Weights a draft step reads, all GPUs", 0.1, 20, draft, "GB", silent=silent),
            slider("context_tokens", "Context in the cache", 0, 262144, COUNTED["context_tokens"], "tokens", step=4096))


# --- is my speed what it should be? --------------------------------------------------------------

ENGINES = {"vLLM": assume.ENGINE, "SGLang": "sglang", "llama.cpp": "llama.cpp", "NInfer": "ninfer",
           "another": "another"}
TRANSPORTS = {"NCCL through host memory": "shm", "not known": "pcie-unknown", "copies staged in host memory": "staged",
              "mailbox in host memory": "mailbox", "peer access, PCIe 5.0 x8": "p2p-pcie5-x8", "NVLink": "nvlink-h200"}
ARTICLE, PLANNED = f"{printed('a1.measured_mtp'):g}", f"{round(rate(context_tokens=assume.PROMPT_TOKENS), 1):g}"
NAMES = ("gap_s", "draft_gap_s", "link_bytes_per_s", "pair_latency_s", "link_latency_s", "bulk_latency_s")
PARTS = (("weights", "blue", "weight read", "weight_read_s/MS"), ("kv", "green", "cache read", "busy_s/MS"),
         ("comm", "red", "all-reduces", "working_s/MS"), ("wait", "gray", "engine waits", "pass_s/MS"),
         ("drafts", "gold", "drafts", "round_s/MS"))
ENDS = (SLOW, MIDDLE, FAST)
AS_VLLM = note(lambda v: v.as_vllm > 0, "taken as vLLM's: no public rows of its own")


def _engine(name):
    waits = {f"gap_s_{end}": wait for end, wait in enumerate(waits_s(name))}
    waits |= {f"draft_gap_s_{2 - end}": wait for end, wait in enumerate(assume.draft_gap(name).base_range)}
    return waits | {"as_vllm": float(name == "sglang")}


def _transport(key):
    """Of a pair at each end, and of each hop that more GPUs add, there and back."""
    way = wire.in_step(link(key))
    pair = [wire.numbers(way, 2, end) for end in ENDS]
    hops = [(wire.latency(way, 3, end) - pair[end]["allreduce_latency_s"]) / 2 for end in ENDS]
    found = {"pair_latency_s": [here["allreduce_latency_s"] for here in pair], "link_latency_s": hops}
    found |= {name: [here[name] for here in pair] for name in ("link_bytes_per_s", "bulk_latency_s")}
    return {f"{name}_{end}": number for name, numbers in found.items() for end, number in enumerate(numbers)}


def at(end):
    """A function that puts the wait, the link and the achieved fraction of any view at one end of their ranges."""
    off = assume.ACHIEVED[end] - assume.ACHIEVED[MIDDLE]
    here = holding(achieved_frac=lambda v: ops.minimum(1.0, v.achieved_frac + off),
                   **{name: f"{name}_{end}" for name in NAMES})
    return lambda v: holding(allreduce_latency_s="group_latency_s")(here(v))


LOW, MID, HIGH = map(at, ENDS)
BOUND = holding(achieved_frac=1.0)


def _verdict(v):
    """Where the measured rate lies: its place in VERDICTS."""
    measured = v.measured_tokens_per_s
    inside = ops.where(measured >= v.low_tokens_per_s, 2, 3)
    above = ops.where(measured > v.high_tokens_per_s, 1, inside)
    return ops.where(measured > v.bound_tokens_per_s, 0, above)


def _blame(v):
    """Which term explains what the middle leaves: its place in BLAMED; with drafts the last two stand for any."""
    here, slow = MID(v), LOW(v)
    by_all = ops.where(v.step_s <= v.low_s, 3, 4)
    by_link = ops.where(here.gap_allreduce_s * here.allreduces <= slow.communication_s, 2, by_all)
    found = ops.where(here.unexplained_s < NOTHING_S, 0, ops.where(v.wait_s <= slow.gap_s, 1, by_link))
    return ops.where(v.drafts > 0, ops.where(found > 3, 6, ops.where(found > 0, 5, 0)), found)


OTHERS = "launches without CUDA graphs, a slot with fewer lanes, a power cap or heat."
CHECK = "check drafts and the bytes that are read"
VERDICTS = (f"beyond the bound: {CHECK}", f"faster than the model: {CHECK}", "plausible",
            "below all of it. The alarm rings")
BLAMED = ("nothing to explain.", "the engine's wait alone may explain it.",
          "a slow link of this kind alone may explain it.",
          "no single range explains it, all of them at their slow ends do.", f"no range explains it. Look for {OTHERS}",
          "see first how many drafts are accepted; the ranges explain the rest.",
          f"see first how many drafts are accepted. If so many are, look for {OTHERS}")


def alarm():
    """A measured rate beside the low end of the model for its engine, as a calculator."""
    model = (("low", LOW), ("mid", MID), ("high", HIGH))
    return Figure(
        name="alarm", title="Is my speed what it should be?", size=(4.6, 3.2),
        caption="Top: your measured step. Below: the model's step for this engine and link, in the middle "
                "and at the low end. Behind the line the alarm rings.",
        first=5, controls=(
            slider("measured_tokens_per_s", "Measured, one stream", 1, 400, ARTICLE, "tokens/s", PLANNED),
            *_drafts(NO_DRAFTS),
            Choice("engine", "Engine", {words: _engine(name) for words, name in ENGINES.items()}, "vLLM", AS_VLLM),
            Choice("transport", "Link", {words: _transport(key) for words, key in TRANSPORTS.items()},
                   "NCCL through host memory", ONE_GPU),
            gpus(),
            *_machine(NO_DRAFTS),
            cache_format(NO_CACHE)),
        presets={f"article 1's {ARTICLE} tokens/s, with three drafts": {},
                 AS_COUNTED: {"measured_tokens_per_s": PLANNED, "drafts": "0"}},
        constants=SHAPE, sources=sources(SHAPE, MODEL), given=GIVEN,
        recipes=RECIPES | {
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
            *_machine()),
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
