"""What the package holds, as tables: symbols, formulas, the catalog, the claims, what others measured, the sources."""

import pkgutil
import re
from collections import Counter
from importlib import import_module

from ... import formulas
from ...catalog.assumptions import assumptions
from ...catalog.gpus import gpus
from ...catalog.links import listed as links
from ...formula import REGISTRY, vocabulary
from ...formula.units import fixed
from ...planner.evidence.allreduces import ours
from ...planner.evidence.cases import cases
from ...planner.evidence.checks import own_table
from ...planner.evidence.claims import claims, findings
from ...planner.evidence.trust import context_swings, decode_swings
from ...planner.shapes.models import models
from .tables import Several, Words, short

CATALOG = {"models": models, "cards": gpus, "links": links, "assumptions": assumptions}


def themes():
    """{theme: [name, ...]} in the order of the vocabulary."""
    found = {}
    for name, term in vocabulary.NAMES.items():
        found.setdefault(term.theme, []).append(name)
    return found


def symbols():
    """The vocabulary, one table a theme."""
    rows = lambda names: tuple((rf"\({t.symbol}\)", name, t.unit or "1", vocabulary.accepted(name), t.meaning)
                               for name in names for t in (vocabulary.NAMES[name],))
    return Several(tuple(Words(theme.capitalize(), ("symbol", "name", "unit", "accepted", "meaning"), rows(names))
                         for theme, names in themes().items()))


def every_formula():
    """{module: [Formula, ...]} after every module of tpmodel.formulas is loaded."""
    found = {}
    for module in pkgutil.iter_modules(formulas.__path__):
        import_module(f"{formulas.__name__}.{module.name}")
        found[module.name] = [f for f in REGISTRY.values() if f.__module__ == f"{formulas.__name__}.{module.name}"]
    return {name: forms for name, forms in found.items() if forms}


def formula_source(form):
    """The `source :` line of a formula's docstring."""
    return re.search(r"^\s*source : (.+)$", form.__doc__, re.M)[1]


def formula_tables():
    """Every formula, one table a module."""
    words = lambda form: re.sub(r"\$(.+?)\$", r"\\(\1\\)", form.__doc__.strip().splitlines()[0])
    row = lambda form: (form.__name__, rf"\(\displaystyle {form.latex()}\)", words(form), formula_source(form))
    return Several(tuple(Words(name.capitalize(), ("name", "formula", "meaning", "source"), tuple(map(row, forms)))
                         for name, forms in every_formula().items()))


def specs(file):
    """Every number of "models", "cards", "links" or "assumptions", one table an entry; a link says its protocol."""
    def row(name, n):
        low, high = ("", "") if n.low is None else (short(n.low), short(n.high))
        where = "; ".join(filter(None, (n.source, n.where, n.note)))
        return (vocabulary.NAMES[name].meaning, f"{short(n.value)} {n.unit}".rstrip(), f"{low} to {high}" if low else "", n.kind, where, n.date)

    head = ("number", "value", "range", "kind", "source", "date")
    known = lambda entry: entry.key + (f", protocol {entry.said['protocol']}" if "protocol" in entry.said else "")
    rows = lambda entry: tuple(row(*item) for item in entry.numbers.items())
    return Several(tuple(Words(f"{entry.name} ({known(entry)})", head, rows(entry), (1, 2))
                         for entry in CATALOG[file]().values()))


def claims_table(article):
    """Every claim of one article ("000" or "002") with what became of it."""
    named = {claim.id: claim for claim in claims()}
    rows = tuple((f"{named[f.id].quantity} ({named[f.id].kind}; {f.id})", f.verdict or f.status,
                  f"{short(f.article)} {f.unit}" + (f"; again {short(f.computed)}" if f.computed is not None else ""), short(f.book_value), f.note)
                 for f in findings() if named[f.id].article == article)
    head = ("quantity", "verdict", "article, and computed again", "ours", "note")
    return Words(f"Article {1 + (article != '000')}", head, rows, (3,))


def counts():
    """How many claims there are, and of each role, status and verdict: name -> number."""
    found = findings()
    named = [finding.role for finding in found] + [f"is_{f.status}" for f in found] + [f.verdict for f in found if f.verdict]
    return Counter(rows=len(found)) + Counter(named)


def measured_table():
    """What others measured, beside the model's low, middle and high."""
    link = lambda c: "" if c.link == "none" else f"; link {c.link}"
    rows = tuple((f"{c.setting}; {c.tokens:,} tokens of context{link(c)}", *(fixed(r, 1) for r in (c.low, c.mid, c.high, c.measured)),
                  "inside" if c.inside else "below" if c.measured < c.low else "above", f"{c.id}, {c.source}")
                 for c in cases())
    head = ("setting", "low", "middle", "high", "measured", "", "row, source")
    return Words("Decode of one stream, tokens/s", head, rows, (1, 2, 3, 4))


def check_groups(kind):
    """The rows of the project's own table that count, group by group: how many lie inside the stated range, and how far the middle is off."""
    table, (rows, _) = own_table(kind)
    lines = {line["id"]: line for line in table}
    groups = {}
    for row in rows:
        if row.use == "gate" and row.measured is not None:
            groups.setdefault(lines[row.id]["group"], []).append(row)
    found = []
    for name, same in groups.items():
        line, errors = lines[same[0].id], sorted(abs(row.error_frac) for row in same)
        found.append((f"{line['gpus' if 'gpus' in line else 'ranks']} × {line['gpu']}", line["link"], str(len(same)), str(sum(row.inside for row in same)),
                      f"{100 * errors[len(errors) // 2]:.0f}", f"{same[0].id.split('/')[0]}, {line['source']}"))
    head = ("cards", "link", "rows", "inside", "middle off, %", "first row, source")
    return Words(f"Measured rows of check {kind}", head, tuple(found), (2, 3, 4))


def forced_protocols(shown=(8, 10240, 131072, 1048576, 16777216, 268435456)):
    """What an all-reduce took between our two H200 when NCCL was held to one protocol, and when it chose."""
    names = ("LL", "LL128", "Simple", "default")
    size = lambda n: f"{n} B" if n < 1024 else f"{n // 1024} KiB" if n < 2**20 else f"{n // 2**20} MiB"
    table = lambda series, words: Words(f"{words}, µs", ("message", *names[:3], "NCCL's choice"), tuple(
        (size(n), *(short(float(f"{dict(ours(series, name))[n] * 1e6:.4g}")) for name in names)) for n in shown), (1, 2, 3, 4))
    return Several((table("shm", "Through host memory (NCCL_P2P_DISABLE=1)"), table("nvlink", "Over NVLink")))


def tornado(swings, caption, decimals):
    """Swings as a table, the largest first, with a bar for its size."""
    largest = max(swing.size for swing in swings)
    rows = tuple((s.input, *(fixed(a, decimals) for a in s.answers), "█" * round(12 * s.size / largest) or "▏", " to ".join(s.ends), s.kind)
                 for s in swings)
    return Words(caption, ("input", "at its start", "at its end", "swing", "range", "kind"), rows, (1, 2))


def trust_tables():
    """The two tornados."""
    return Several((tornado(decode_swings(), "Decode rate of the pair, tokens/s", 1),
                    tornado(context_swings(), "Tokens of FP8 cache that fit", 0)))


def sources():
    """Every source of the catalog, the formulas and the public measurements, with what it carries."""
    carried = {}
    for file in CATALOG.values():
        for entry in file().values():
            for name, number in entry.numbers.items():
                carried.setdefault(number.source, []).append(f"{entry.key} {name}")
    catalog = tuple((source, str(len(names)), names[0] + (" …" if len(names) > 1 else "")) for source, names in sorted(carried.items()))
    printed = sorted({(formula_source(f), f.__name__) for forms in every_formula().values() for f in forms
                      if re.search(r"arXiv|doi|http", formula_source(f))})
    rows = {}
    for case in cases():
        rows.setdefault(case.source, []).append(case.id)
    return Several((
        Words("Sources of the catalog", ("source", "numbers", "for example"), catalog, (1,)),
        Words("Papers behind the formulas", ("source", "formula"), tuple(printed)),
        Words("Public measurements", ("source", "rows"), tuple((source, ", ".join(ids)) for source, ids in sorted(rows.items()))),
    ))
