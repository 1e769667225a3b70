"""One pass against its tokens: a decode step, drafts, many users and a chunk of a prompt are points of one curve."""

from functools import cache, reduce

from ...formula import ops
from ...planner.evidence import checks_pass
from ...planner.evidence.articles import GPU
from ...planner.evidence.checks import Cells
from ...planner.evidence.measured import MIDDLE
from ...planner.evidence.rows import table
from ...planner.plan import assume
from ..live import Axes, Choice, Curve, Figure, Line, Marker, Slider, Table, holding, quantity, slider, template
from .options import CONFIG, SHAPE, SHM
from .prefill import COUNTED_FLOP_PER_S, COUNTED_MFU, MULTIPLIED

TOKENS, SECONDS, NOWHERE_S = (1.0, 8192.0), (1e-3, 10.0), 1e-9
SAMPLES = tuple(2.0 ** (i / 4) for i in range(53))
POINTS = {"decode": (1, "o"), "3 drafts": (4, "^"), "32 users": (32, "s"), "a chunk": (2048, "D")}
HELD = ("ranks", "read_bytes", "parameters", "memory_bytes_per_s", "achieved_frac", "flop_per_s", "mfu_frac", "floor_s",
        "unhidden_frac", "link_bytes_per_s", "allreduce_latency_s", "bulk_latency_s")
H200 = {"one H200, BF16": "none", "two H200, NVLink": "nvlink-h200", "two H200, host memory": "shm-h200"}
PAIR = "two RTX 5060 Ti, NVFP4, host memory"


@cache
def _lines(link):
    """The measured rows of the 27 B shape over a link."""
    return tuple(Cells(line) for line in table("pass_cases.csv") if line["link"] == link and line["group"] == "27b")


@cache
def _machines():
    """What each machine of the choice sets; `series` is its place."""
    found = {}
    for name, link in H200.items():
        v = checks_pass.view(_lines(link)[0], MIDDLE)
        found[name] = {quantity: getattr(v, quantity) for quantity in HELD}
    found[PAIR] = {**SHM, "ranks": 2, "read_bytes": CONFIG.read_bytes, "parameters": MULTIPLIED, "floor_s": 0,
                   "memory_bytes_per_s": GPU.memory_bytes_per_s, "achieved_frac": assume.ACHIEVED[MIDDLE],
                   "flop_per_s": COUNTED_FLOP_PER_S, "mfu_frac": COUNTED_MFU, "unhidden_frac": 0}
    return {name: values | {"series": float(i)} for i, (name, values) in enumerate(found.items())}


def measured_s(i):
    """The measured time of the i-th row of the chosen machine; out of the picture where nobody measured."""
    times = [float(_lines(link)[i]["pass_s"]) for link in H200.values()] + [NOWHERE_S]
    return lambda v: reduce(lambda found, n: ops.where(v.series < n + 1, times[n], found), (2, 1, 0), times[3])


def one_pass():
    """The time of a pass of 1 to 8,192 tokens, live, with what two H200 took."""
    curve = lambda name, color, label, **more: Curve(name, "tokens", SAMPLES, name, color, label, **more)
    turn = quantity("weight_read_s", holding(tokens="turning_tokens"))
    rows = {name: holding(tokens=float(tokens)) for name, (tokens, _) in POINTS.items()}
    cells = ("{tokens:0}", "{weight_read_s/MS:1}", "{linear_s/MS:1}", "{communication_s/MS:1}", "{pass_s/MS:1}",
             "{each_s/MS:2}")
    return Figure(
        name="one-pass", title="One pass, from one token to thousands.", size=(4.6, 3.8),
        caption="Weights, products and all-reduces of a model of 27 B, no attention. Below the turn more tokens are "
                "nearly free. Purple: what two H200 took.",
        controls=(
            Slider("tokens", "Tokens of the pass", tuple(str(2**i) for i in range(14)), "32", "tokens", whole=True),
            Choice("machine", "Machine", _machines(), next(iter(H200))),
            slider("gap_s", "Wait of the engine, a pass", 0, 10, 0, "ms", step=0.1)),
        constants=SHAPE | {"full_layers": 0, "context_tokens": 0, "cache_read_bytes": 0,
                           "attention_flop_per_s": GPU.bf16_flop_per_s},
        given=("read_bytes", "cache_read_bytes"),
        recipes={"message_bytes": "allreduce_payload_bytes", "each_s": lambda v: v.pass_s / v.tokens},
        axes=(Axes("tokens of the pass", "time", TOKENS, SECONDS, xlog=True, ylog=True, legend=3,
                   xticks=tuple((float(n), f"{n:,}") for n in (1, 8, 64, 512, 4096)),
                   yticks=((1e-3, "1 ms"), (1e-2, "10 ms"), (0.1, "0.1 s"), (1, "1 s"), (10, "10 s"))),),
        marks=(
            curve("weight_read_s", "blue", "reading"), curve("linear_s", "green", "computing"),
            curve("communication_s", "red", "all-reduces"), curve("gap_s", "gray", "wait", dashed=True),
            curve("pass_s", "text", "the pass"),
            Line("turn", "turning_tokens", SECONDS[0], "turning_tokens", turn, "gray", "turn", dashed=True),
            *(Marker(f"measured-{i}", float(line["tokens"]), measured_s(i), "purple", "" if i else "measured")
              for i, line in enumerate(_lines("none"))),
            *(Marker(name.replace(" ", "-"), float(tokens), quantity("pass_s", rows[name]), "gold", name, shape=shape)
              for name, (tokens, shape) in POINTS.items())),
        readouts={
            "pass": "A pass of {tokens:0} tokens takes {pass_s/MS:1} ms, {each_s/MS:2} ms a token.",
            "parts": "Reading {weight_read_s/MS:1} ms, computing {linear_s/MS:1} ms, all-reduces "
                     "{communication_s/MS:1} ms, kernel starts {floor_s/MS:1} ms, wait {gap_s/MS:1} ms.",
            "turn": "From {turning_tokens:0} tokens on computing takes longer than reading the weights."},
        table=Table("The same curve at four of its points, and at yours",
                    ("", "tokens", "reading, ms", "computing, ms", "link, ms", "pass, ms", "a token, ms"),
                    tuple((name, *(template(cell, at) for cell in cells))
                          for name, at in {**rows, "yours": None}.items())))
