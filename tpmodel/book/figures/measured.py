"""Public decode speeds against the model: what each of its three terms does to them."""

from functools import reduce
from operator import add

from ...formula import ops
from ...formulas.decode import decode_tokens_per_s
from ...formulas.passes import pass_s
from ...planner.evidence.cases import cases
from ..live import Axes, Figure, Line, Marker, Table, slider

RATES = (14.0, 320.0)  # tokens/s
LOOKS = {"vllm": ("blue", "o"), "llama.cpp": ("green", "s"), "ninfer": ("gold", "D"), "sglang": ("purple", "^")}
CLOSE = 0.15
TICKS = tuple((float(n), str(n)) for n in (20, 30, 50, 100, 200))


def _predicted(case):
    step = case.step
    rest_s = step.busy_s - step.full_read_s / step.achieved_frac  # of the kernels, which the bandwidth does not touch
    return lambda v: decode_tokens_per_s(pass_s(
        step.full_read_s / ops.minimum(1, step.achieved_frac * v.reach_times) + rest_s, step.sent_s * v.link_times,
        step.wait_s * v.wait_times))


def _mean(group, one):
    """The mean of `one` of predicted over measured, over a group of cases."""
    return lambda v: reduce(add, (one(_predicted(case)(v) / case.measured) for case in group), 0) / len(group)


def decode_measured():
    """Every public row as a dot, live."""
    found = list({case.group: case for case in reversed(cases())}.values())[::-1]  # the first of each group
    groups = {engine: [case for case in found if case.engine == engine] for engine in LOOKS}
    away = lambda ratio: 100 * (ops.maximum(ratio, 1 / ratio) - 1)
    close = lambda ratio: ops.where(ops.maximum(ratio, 1 / ratio) <= 1 + CLOSE, 1, 0)
    fast = lambda ratio: 100 * (ratio - 1)
    row = lambda words, group: (words, str(len(group)), ((_mean(group, away), 0),), ((_mean(group, fast), 0),))
    dot = lambda case, color, shape: Marker(f"run-{case.id}", case.measured, _predicted(case), color,
                                            case.engine if case is groups[case.engine][0] else "", shape,
                                            f"{case.setting}: {case.measured:g} tokens/s measured")
    return Figure(
        name="decode-measured", title="Predicted against measured, one dot a machine.", size=(4.6, 4.4),
        caption="The first run of each public series. "
                "On the line the two agree; above it the model is too fast. Move a term.",
        controls=(
            slider("reach_times", "Reached part of the bandwidth, times its middle", 0.6, 1.2, 1, "×", step=0.01),
            slider("wait_times", "Wait of the engine, times its middle", 0, 3, 1, "×", step=0.1),
            slider("link_times", "All-reduces, times their middle", 0, 3, 1, "×", step=0.1)),
        axes=(Axes("measured, tokens/s", "model, tokens/s", RATES, RATES, True, True, TICKS, TICKS, legend=3),),
        marks=(Line("equal", RATES[0], RATES[0], RATES[1], RATES[1], "gray", "equal", dashed=True),
               *(dot(case, *LOOKS[case.engine]) for case in found)),
        recipes={"away": _mean(found, away), "close_dots": lambda v: _mean(found, close)(v) * len(found)},
        readouts={"away": "The model is {away:0} % away on average; "
                          f"{{close_dots:0}} of {len(found)} dots lie within {100 * CLOSE:.0f} %."},
        table=Table("By engine", ("", "runs", "away, %", "too fast by, %"),
                    (*(row(engine, group) for engine, group in groups.items()), row("all", found))))
