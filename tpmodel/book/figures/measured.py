"""Public decode speeds against the model: what each of its three terms does to them."""

from ...formula import ops
from ...formulas.decode import decode_tokens_per_s
from ...formulas.passes import pass_s
from ...planner.evidence.cases import cases
from ..live.controls import Slider, linear_texts
from ..live.figure import Figure
from ..live.marks import Axes, Line, Marker, Table

RATES = (14.0, 140.0)  # tokens/s
COLORS = {"vllm": "blue", "llama.cpp": "green", "ninfer": "gold", "sglang": "purple"}
CLOSE = 0.15
TICKS = tuple((float(n), str(n)) for n in (20, 30, 50, 100))


def _predicted(case):
    reads_s, link_s, wait_s = case.parts_s
    return lambda v: decode_tokens_per_s(pass_s(reads_s / v.achieved_frac, link_s * v.link_times, wait_s * v.wait_times))


def _ratio(case):
    return lambda v: _predicted(case)(v) / case.measured


def _of(group, one):
    """The mean over a group of cases."""
    def mean(v):
        total = 0
        for case in group:
            total = total + one(_ratio(case)(v))
        return total / len(group)
    return mean


def _away(ratio):
    return 100 * (ops.maximum(ratio, 1 / ratio) - 1)


def _close(ratio):
    return ops.where(ops.maximum(ratio, 1 / ratio) <= 1 + CLOSE, 1, 0)


def _row(words, group):
    return (words, str(len(group)), ((_of(group, _away), 0),), ((_of(group, lambda ratio: 100 * (ratio - 1)), 0),))


def decode_measured():
    """Every public row as a dot, live."""
    found = list({case.group: case for case in reversed(cases())}.values())[::-1]  # the first of each group
    groups = {engine: [case for case in found if case.engine == engine] for engine in COLORS}
    first = {engine: group[0].id for engine, group in groups.items()}
    return Figure(
        name="decode-measured",
        title="Predicted against measured, one dot a machine.",
        caption="The first run of each public series. On the line the two agree; above it the model is too fast. Move a term.",
        controls=(
            Slider("achieved_frac", "Achieved fraction of the bandwidth", linear_texts(0.5, 1, 0.01), "0.8"),
            Slider("wait_times", "Wait of the engine, times its middle", linear_texts(0, 3, 0.1), "1", "×"),
            Slider("link_times", "All-reduces, times their middle", linear_texts(0, 3, 0.1), "1", "×"),
        ),
        axes=(Axes("measured, tokens/s", "model, tokens/s", RATES, RATES, xlog=True, ylog=True, legend=3, xticks=TICKS, yticks=TICKS),),
        marks=(
            Line("equal", RATES[0], RATES[0], RATES[1], RATES[1], "gray", "equal", dashed=True),
            *(Marker(f"run-{case.id}", case.measured, _predicted(case), COLORS[case.engine], case.engine if case.id == first[case.engine] else "",
                     {"vllm": "o", "llama.cpp": "s", "ninfer": "D", "sglang": "^"}[case.engine]) for case in found),
        ),
        readouts={
            "away": ("The model is ", (_of(found, _away), 0), " % away on average; ",
                     (lambda v: _of(found, _close)(v) * len(found), 0), f" of {len(found)} dots lie within {100 * CLOSE:.0f} %."),
        },
        table=Table("By engine", ("", "runs", "away, %", "too fast by, %"),
                    (*(_row(engine, group) for engine, group in groups.items()), _row("all", found))),
        size=(4.6, 4.4),
    )
