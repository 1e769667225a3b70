"""Fit the few constants of time to public rows, with each source of rows left out in turn; --write: data/left_out.csv.

No constant of the catalog comes from here: each has a source of its own. The fit asks what the rows would choose inside
the catalog's ranges, and how far off the rows are that it did not see.
"""

import csv
import math
import sys
from dataclasses import replace
from importlib import resources
from statistics import median

from tpmodel.catalog.assumptions import assumptions
from tpmodel.catalog.hosts import hosts
from tpmodel.planner.evidence import checks_decode, checks_prefill
from tpmodel.planner.evidence.checks import own_table
from tpmodel.planner.evidence.spread import SOURCE

CONSTANTS = {"prefill": (("attention", "mfu_frac"), ("fp4", "mfu_frac"), ("int8", "mfu_frac"),
                         ("marlin-half", "mfu_frac"), ("not-said-pcie5", "line_frac")),
             "decode": (("card", "achieved_frac"), ("vllm", "layer_cycles"), ("llama-cpp", "achieved_frac"),
                        ("llama-cpp", "layer_cycles"), ("ninfer", "achieved_frac"))}
CHECKS = {"prefill": checks_prefill, "decode": checks_decode}
STEPS, ROUNDS = 41, 6
FILE = resources.files("tpmodel.planner.evidence") / "data" / "left_out.csv"
FIELDS = ("kind", "source", "rows", "off_frac", "left_out_frac", "bias_frac")


def entry(key):
    """The entry of the catalog that holds a constant."""
    return (assumptions() | hosts())[key]


def rows(kind):
    """[(source, line, seconds a token)] of the rows that count, without drafts."""
    found = []
    for line in own_table(kind)[0]:
        counted = line.text("use") == "gate" and line.text("spec_tokens", "0") == "0" and not line.text("power_limit_w")
        if counted and line.text("tokens_per_s"):
            found.append((SOURCE.match(line.text("source"))[1], line, 1 / float(line["tokens_per_s"])))
    return found


def seconds(kind, lines):
    """The middle of the model, seconds a token."""
    return [1 / CHECKS[kind].predict(line)[0][1] for line in lines]


def slopes(kind, lines):
    """(times, for each constant the part of each that goes with its reciprocal, or with it): it is linear in these."""
    base, found = seconds(kind, lines), []
    for key, name in CONSTANTS[kind]:
        numbers = entry(key).numbers
        kept = numbers[name]
        numbers[name] = replace(kept, value=kept.value / 2, low=kept.value / 4, high=kept.value)
        try:
            halved = seconds(kind, lines)
        finally:
            numbers[name] = kept
        factor = -2 if name.endswith("cycles") else 1
        found.append([factor * (after - before) for before, after in zip(base, halved)])
    return base, found


def grid(key, name):
    """The values that a fit may choose, as factors of the catalog's."""
    low, mid, high = entry(key).numbers[name].base_range
    return [(low / mid) ** (1 - i / (STEPS - 1)) * (high / mid) ** (i / (STEPS - 1)) for i in range(STEPS)] + [1.0]


def moved(kind, base, parts, factors):
    """Seconds a token of each row with the constants times their factors."""
    terms = [factor - 1 if name.endswith("cycles") else 1 / factor - 1
             for (_, name), factor in zip(CONSTANTS[kind], factors)]
    return [time + sum(part[i] * term for part, term in zip(parts, terms)) for i, time in enumerate(base)]


def loss(times, measured, sources):
    """Mean of the sources' mean distances, each on a logarithmic scale."""
    by = {}
    for time, real, source in zip(times, measured, sources):
        by.setdefault(source, []).append(abs(math.log(time / real)))
    return sum(sum(one) / len(one) for one in by.values()) / len(by)


def fit(kind, base, parts, measured, sources):
    """Factors of the constants that lie nearest to the rows, one after the other until they stay."""
    factors = [1.0] * len(parts)
    for _ in range(ROUNDS):
        for i, constant in enumerate(CONSTANTS[kind]):
            tried = lambda value: moved(kind, base, parts, [*factors[:i], value, *factors[i + 1:]])
            factors[i] = min(grid(*constant), key=lambda value: loss(tried(value), measured, sources))
    return factors


def study(kind):
    """(factors fitted to all, {source left out: factors}, the rows of the table)."""
    sources, lines, measured = map(list, zip(*rows(kind)))
    base, parts = slopes(kind, lines)
    whole, without, table = fit(kind, base, parts, measured, sources), {}, []
    for left in dict.fromkeys(sources):
        kept = [i for i, source in enumerate(sources) if source != left]
        pick = lambda values: [values[i] for i in kept]
        without[left] = fit(kind, pick(base), list(map(pick, parts)), pick(measured), pick(sources))
        times = moved(kind, base, parts, without[left])
        errors = [(real / here - 1, real / there - 1)
                  for real, here, there, source in zip(measured, base, times, sources) if source == left]
        table.append((left, errors))
    return whole, without, table


def tables():
    """The lines of data/left_out.csv; and (kind, constant, catalog, fitted to all, least, most with one left out)."""
    lines, chosen = [], []
    for kind in CONSTANTS:
        whole, without, table = study(kind)
        for (key, name), factor, *others in zip(CONSTANTS[kind], whole, *without.values()):
            value = entry(key).numbers[name].value
            chosen.append((kind, f"{key}.{name}", value, factor * value, min(others) * value, max(others) * value))
        for source, errors in [*table, ("all", [pair for _, pairs in table for pair in pairs])]:
            lines.append(dict(zip(FIELDS, (kind, source, len(errors), *(f"{number:.3f}" for number in (
                median(abs(one) for one, _ in errors), median(abs(two) for _, two in errors),
                median(two for _, two in errors)))))))
    return lines, chosen


if __name__ == "__main__":
    found, constants = tables()
    for kind, name, *values in constants:
        said = "catalog {:.3g}, fitted to all {:.3g}, with a source left out {:.3g} to {:.3g}".format(*values)
        print(f"{kind:9}{name:28}{said}")
    for line in found:
        print("  ".join(f"{line[name]!s:>8}" for name in sorted(FIELDS, key="source".__eq__)))
    if "--write" in sys.argv:
        with open(FILE, "w", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, FIELDS, lineterminator="\n")
            out.writeheader()
            out.writerows(found)
