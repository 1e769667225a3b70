"""Serving: a measured speed beside the model's range for its engine and link, and what speculative decoding gains."""

from ...catalog.links import link
from ...formula import ops
from ...formula.units import GB, MS, US
from ...planner.engine.versions import Setting
from ...planner.evidence.articles import GPU
from ...planner.evidence.measured import FAST, MIDDLE, SLOW, rate
from ...planner.evidence.rows import printed
from ...planner.plan import assume, one_pass, wire
from ...planner.plan.placement import cache_bytes
from ..live.controls import Choice, Slider, linear_texts, log_texts
from ..live.figure import Figure
from ..live.marks import Axes, Curve, Line, Marker, Table, bar, quantity, rows, template
from .options import (
    AS_COUNTED,
    CONFIG,
    COUNTED,
    KV_DTYPES,
    NO_CACHE,
    NO_DRAFTS,
    ONE_GPU,
    ONE_LINE,
    SHM,
    STATES_BYTES,
    TP,
    note,
)

AXIS_MS = 100
AXIS_RATE = 200
NOTHING_S = 0.05 * MS  # what is printed as 0.0 ms
MOST_DRAFTS = 8
ROWS = (0, 1, 2, 3, 5)
DRAFT_STATES_BYTES = cache_bytes(CONFIG, Setting(drafts=1), 0)[2] - STATES_BYTES  # of each drafted token, before the split
SHAPE = {name: CONFIG.numbers[name] for name in ("layers", "full_layers", "hidden", "kv_heads", "head_elements", "element_bytes")} | {
    "states_bytes": STATES_BYTES, "draft_allreduces": assume.DRAFT_ALLREDUCES,
    "linear_s": 0, "attention_s": 0}  # a card multiplies nine tokens while it reads the weights once
RECIPES = {
    "tokens": "verify_tokens",
    "message_bytes": "allreduce_payload_bytes",
    "state_bytes": lambda v: (v.states_bytes + v.drafts * DRAFT_STATES_BYTES) / v.ranks,
    "working_s": lambda v: v.busy_s + v.communication_s,
    "drafting_s": lambda v: v.drafts * v.draft_s,
    "gain": lambda v: v.confirmed_tokens_per_s / undrafted(v).decode_tokens_per_s,
    "loses": lambda v: ops.where(v.gain < 1, 1, 0),
}
GIVEN = ("read_bytes", "state_bytes", "linear_s", "attention_s")


def undrafted(v):
    """The same without drafts: a plain decode step."""
    return v.extended(drafts=0.0)


def _counted(name, label, texts, unit, suffix, start=None, silent=()):
    """A slider that starts at what `plan` uses."""
    start = start or COUNTED[name]
    return Slider(name, label, texts(start), start, unit, suffix, silent=silent)


def _drafts(note_drafts=()):
    return (Slider("drafts", "Drafted a step (num_speculative_tokens)", linear_texts(0, MOST_DRAFTS, 1), "3", whole=True),
            Slider("acceptance_frac", "Chance that a draft is accepted", linear_texts(0, 0.98, 0.02), "0.7", silent=note_drafts))


def _machine(draft_note=()):
    log = lambda lo, hi: lambda start: log_texts(lo, hi, 20, start=float(start))
    draft = f"{one_pass.draft_bytes(CONFIG, 1) / GB:.10g}"
    return (_counted("read_bytes", "Weights read per step, all GPUs", log(2, 200), "GB", "e9"),
            _counted("memory_bytes_per_s", "Memory bandwidth of a GPU", log(200, 8000), "GB/s", "e9", f"{GPU.memory_bytes_per_s / GB:.10g}"),
            _counted("achieved_frac", "Achieved fraction of it", lambda start: linear_texts(0.5, 1, 0.01), "", ""),
            _counted("draft_bytes", "Weights a draft step reads, all GPUs", log(0.1, 20), "GB", "e9", draft, draft_note),
            _counted("context_tokens", "Context in the cache", lambda start: linear_texts(0, 262144, 4096), "tokens", ""))


# --- is my speed what it should be? --------------------------------------------------------------

ENGINES = {"vLLM": "vllm", "SGLang": "sglang", "llama.cpp": "llama.cpp", "NInfer": "ninfer", "another": "another"}
TRANSPORTS = {"NCCL through host memory": "shm", "not known": "pcie-unknown", "copies staged in host memory": "staged", "mailbox in host memory": "mailbox",
              "peer access, PCIe 5.0 x8": "p2p-pcie5-x8", "NVLink": "nvlink-h200"}
ARTICLE, PLANNED = f"{printed('a1.measured_mtp'):g}", f"{rate(context_tokens=assume.PROMPT_TOKENS):.1f}"
NAMES = ("gap_s", "link_bytes_per_s", "pair_latency_s", "link_latency_s", "bulk_latency_s")
PARTS = (("weights", "blue", "weight read", "weight_read_s/MS"), ("kv", "green", "cache read", "busy_s/MS"), ("comm", "red", "all-reduces", "working_s/MS"),
         ("wait", "gray", "engine waits", "pass_s/MS"), ("drafts", "gold", "drafts", "round_s/MS"))


def _ends(found):
    """Names of the view from (slow, middle, fast) of each quantity: "gap_s_0"."""
    return {f"{name}_{end}": number for name, numbers in found.items() for end, number in enumerate(numbers)}


AS_VLLM = note(lambda v: v.as_vllm > 0, "taken as vLLM's: no public rows of its own")


def _engine(name):
    return _ends({"gap_s": assume.gap_range_s(name)}) | {"as_vllm": float(name == "sglang")}


def _transport(key):
    """Of a pair at each end, and of each hop that more GPUs add."""
    start = lambda ranks: [wire.latency(link(key), ranks, end) for end in (SLOW, MIDDLE, FAST)]
    hops = [(three - two) / 2 for three, two in zip(start(3), start(2))]  # there and back
    of_pair = [wire.numbers(link(key), 2, end) for end in (SLOW, MIDDLE, FAST)]
    return _ends({"pair_latency_s": start(2), "link_latency_s": hops} |
                 {name: [here[name] for here in of_pair] for name in ("link_bytes_per_s", "bulk_latency_s")})


def at(end):
    """A function that puts the wait, the link and the achieved fraction of any view at one end of their ranges."""
    off = assume.ACHIEVED[end] - assume.ACHIEVED[MIDDLE]

    def turn(v):
        here = v.extended(achieved_frac=ops.minimum(1.0, v.achieved_frac + off), **{name: getattr(v, f"{name}_{end}") for name in NAMES})
        return here.extended(allreduce_latency_s=here.group_latency_s)
    return turn


LOW, MID, HIGH = map(at, (SLOW, MIDDLE, FAST))
BOUND = lambda v: v.extended(achieved_frac=1.0)


def _verdict(v):
    """0: beyond the bound, 1: above the model, 2: inside, 3: below."""
    slow = ops.where(v.measured_tokens_per_s >= LOW(v).confirmed_tokens_per_s, 2, 3)
    return ops.where(v.measured_tokens_per_s > BOUND(v).bound_tokens_per_s, 0, ops.where(v.measured_tokens_per_s > HIGH(v).confirmed_tokens_per_s, 1, slow))


def _blame(v):
    """Which term explains what the middle leaves: 0 nothing left, 1 the wait, 2 the link, 3 all together, 4 none; 5 and 6: the same with drafts."""
    here, slow = MID(v), LOW(v)
    by_link = ops.where(here.gap_allreduce_s * here.allreduces <= slow.communication_s, 2, ops.where(v.step_s <= slow.round_s, 3, 4))
    found = ops.where(here.unexplained_s < NOTHING_S, 0, ops.where(here.wait_s <= slow.gap_s, 1, by_link))
    return ops.where(v.drafts > 0, ops.where(found > 3, 6, ops.where(found > 0, 5, 0)), found)


OTHERS = "launches without CUDA graphs, a slot with fewer lanes, a power cap or heat."
BLAMED = ("nothing to explain.", "the engine's wait alone may explain it.", "a slow link of this kind alone may explain it.",
          "no single range explains it, all of them at their slow ends do.", f"no range explains it. Look for {OTHERS}",
          "see first how many drafts are accepted; the ranges explain the rest.",
          f"see first how many drafts are accepted. If so many are, look for {OTHERS}")


def alarm():
    """A measured rate beside the low end of the model for its engine, as a calculator."""
    marks = [bar("measured", 0, 0, "step_s/MS", "purple", "measured")]
    for row, (end, turn) in enumerate((("mid", MID), ("low", LOW)), 1):
        places = [0, *(quantity(place, turn) for *_, place in PARTS)]
        marks += [bar(f"{end}-{name}", -row, start, stop, color, label if row == 1 else "", ghost=row > 1)
                  for (name, color, label, _), start, stop in zip(PARTS, places, places[1:])]
    limit = quantity("round_s/MS", LOW)
    return Figure(
        name="alarm",
        title="Is my speed what it should be?",
        caption="Top: your measured step. Below: the model's step for this engine and link, in the middle and at the low end. Behind the line the alarm rings.",
        controls=(
            Slider("measured_tokens_per_s", "Measured, one stream", log_texts(1, 400, 20, start=(float(ARTICLE), float(PLANNED))), ARTICLE, "tokens/s"),
            *_drafts(NO_DRAFTS),
            Choice("engine", "Engine", {words: _engine(name) for words, name in ENGINES.items()}, "vLLM", AS_VLLM),
            Choice("transport", "Link", {words: _transport(key) for words, key in TRANSPORTS.items()}, "NCCL through host memory", ONE_GPU),
            Choice("tp", "Split over", TP, "2 GPUs"),
            *_machine(NO_DRAFTS),
            Choice("kv_dtype", "KV cache stored as", KV_DTYPES, "FP8", NO_CACHE),
        ),
        presets={f"article 1's {ARTICLE} tokens/s, with three drafts": {}, AS_COUNTED: {"measured_tokens_per_s": PLANNED, "drafts": "0"}},
        constants=SHAPE, given=GIVEN,
        recipes=RECIPES | {
            "step_s": lambda v: v.round_tokens / v.measured_tokens_per_s,
            "bound_s": lambda v: v.weight_read_s + v.kv_read_s,
            "bound_tokens_per_s": lambda v: v.round_tokens / v.bound_s,
            "ratio": lambda v: v.measured_tokens_per_s / v.bound_tokens_per_s,
            "wait_s": lambda v: ops.maximum(0, v.gap_s + v.unexplained_s),
            "more_s": lambda v: ops.maximum(0, v.unexplained_s),
            "verdict": _verdict, "blame": _blame,
        },
        axes=(Axes("time of one step, ms", xlim=(0, AXIS_MS), ylim=(-2.5, 0.5), legend=3, yticks=((0, "yours"), (-1, "middle"), (-2, "low end"))),),
        marks=(*marks, Line("limit", limit, -2.5, limit, 0.5, "purple", dashed=True)),
        readouts={
            "verdict": ("{measured_tokens_per_s:1} tokens/s, ", *template("{round_tokens:2} a step, where the model says {confirmed_tokens_per_s:1}", LOW),
                        *template(" to {confirmed_tokens_per_s:1}", HIGH), *template(": {verdict?beyond the bound: check drafts and the bytes that are read|"
                        "faster than the model: check drafts and the bytes that are read|plausible|below all of it. The alarm rings}.")),
            "gap": (*template("The middle leaves {more_s/MS:1} ms a step. As a wait of the engine that makes {wait_s/MS:1} ms, "
                              "as all-reduces {gap_allreduce_s/US:1} µs each: ", MID), "{blame?" + "|".join(BLAMED) + "}"),
            "ratio": template("{ratio:2}× the bound of {bound_tokens_per_s:1} tokens/s, which reads alone would reach.", BOUND),
        },
        table=Table("The step", ("", "ms", "tokens/s"), (
            ("measured", "{step_s/MS:1}", "{measured_tokens_per_s:1}"),
            ("the bound", template("{bound_s/MS:1}", BOUND), template("{bound_tokens_per_s:1}", BOUND)),
            *((words, template("{round_s/MS:1}", turn), template("{confirmed_tokens_per_s:1}", turn))
              for words, turn in (("the model, high end", HIGH), ("the model, middle", MID), ("the model, low end: the alarm", LOW))))),
        size=(4.6, 3.2),
    )


# --- what do drafts gain? ------------------------------------------------------------------------

def speculation():
    """Tokens/s against the number of drafts."""
    samples = tuple(float(k) for k in range(MOST_DRAFTS + 1))
    plain = quantity("decode_tokens_per_s", undrafted)
    micro = lambda name, label, **more: Slider(name, label, log_texts(1, 200, 20, start=SHM[name] / US), f"{SHM[name] / US:.10g}", "µs", "e-6", **more)
    carried = f"{SHM['link_bytes_per_s'] / GB:.10g}"
    return Figure(
        name="speculation",
        title="What do drafts gain?",
        caption="Confirmed tokens/s against tokens drafted a round. Dashed: no drafts; and drafts that would cost nothing.",
        controls=(
            *_drafts()[::-1],
            Slider("gap_s", "Wait of the engine, a step or a round", linear_texts(0, 60, 0.5), COUNTED["gap_s"], "ms", "e-3"),
            micro("allreduce_latency_s", "Latency of one all-reduce"),
            micro("bulk_latency_s", "Start of the link's bulk protocol", silent=ONE_LINE),
            Slider("link_bytes_per_s", "Achieved bandwidth of the link", log_texts(1, 400, 20, start=float(carried)), carried, "GB/s", "e9"),
            *_machine(),
        ),
        presets={AS_COUNTED: {}}, constants=SHAPE | {"ranks": 2, "kv_element_bytes": 1}, given=GIVEN, recipes=RECIPES,
        axes=(Axes("drafts a round", "tokens/s", (0, MOST_DRAFTS), (0, AXIS_RATE), legend=2),),
        marks=(
            Curve("free", "drafts", samples, lambda v: plain(v) * v.round_tokens, "gray", "drafts for nothing", dashed=True),
            Line("plain", 0, plain, MOST_DRAFTS, plain, "green", "no drafts", dashed=True),
            Curve("confirmed", "drafts", samples, "confirmed_tokens_per_s", "blue", "confirmed"),
            Marker("here", "drafts", "confirmed_tokens_per_s", "purple", "yours"),
        ),
        readouts={
            "rate": ("{confirmed_tokens_per_s:1} tokens/s, {gain:2}× plain decoding at ", (plain, 1), " tokens/s{loses?.|: the drafts cost more than they gain.}"),
            "round": "{round_tokens:2} tokens a round of {round_s/MS:1} ms: verify {working_s/MS:1}, drafts {drafting_s/MS:1}, wait {gap_s/MS:1}. "
                     "{allreduces_per_confirmed_token:0} all-reduces a confirmed token.",
        },
        table=Table("By drafts a round", ("", *map(str, ROWS)), rows(
            [lambda v, k=float(k): v.extended(drafts=k) for k in ROWS],
            ("tokens a round", "{round_tokens:2}"), ("round, ms", "{round_s/MS:1}"), ("all-reduces a token", "{allreduces_per_confirmed_token:0}"),
            ("tokens/s", "{confirmed_tokens_per_s:1}"))),
    )
