"""What the package holds, as tables: symbols, formulas, the catalog, the claims, what others measured, the sources."""

import pkgutil
import re
from collections import Counter
from importlib import import_module

from ... import formulas
from ...catalog.assumptions import assumptions, ends
from ...catalog.gpus import gpus
from ...catalog.hosts import hosts
from ...catalog.links import listed as links
from ...formula import REGISTRY
from ...formula.units import GB, fixed
from ...formula.vocabulary import NAMES, accepted
from ...planner.engine import kernels
from ...planner.evidence.allreduces import ours
from ...planner.evidence.cases import cases
from ...planner.evidence.checks import own_table
from ...planner.evidence.claims import claims, findings
from ...planner.shapes.models import models
from .tables import Several, Words, short
from .ways import pairs

CATALOG = {"models": models, "cards": gpus, "links": links, "hosts": hosts, "assumptions": assumptions}


def _grouped(pairs):
    """{key: [value, ...]} in the order in which keys come first."""
    found = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _tables(head, groups, row, numbers=()):
    """One table a group of {caption: items}, one row an item."""
    return Several(tuple(Words(caption, head, tuple(map(row, items)), numbers) for caption, items in groups.items()))


def themes():
    """{theme: [name, ...]} in the order of the vocabulary."""
    return _grouped((term.theme, name) for name, term in NAMES.items())


def symbols():
    """The vocabulary, one table a theme."""
    row = lambda item: (rf"\({item[1].symbol}\)", item[0], item[1].unit or "1", accepted(item[0]), item[1].meaning)
    groups = _grouped((term.theme.capitalize(), (name, term)) for name, term in NAMES.items())
    return _tables(("symbol", "name", "unit", "accepted", "meaning"), groups, row)


def every_formula():
    """{module: [Formula, ...]} after every module of tpmodel.formulas is loaded."""
    found = {}
    for module in pkgutil.iter_modules(formulas.__path__, f"{formulas.__name__}."):
        import_module(module.name)
        found[module.name.rpartition(".")[2]] = [form for form in REGISTRY.values() if form.__module__ == module.name]
    return {name: forms for name, forms in found.items() if forms}


def formula_source(form):
    """The `source :` line of a formula's docstring."""
    return re.search(r"^\s*source : (.+)$", form.__doc__, re.M)[1]


def formula_tables():
    """Every formula, one table a module."""
    words = lambda form: re.sub(r"\$(.+?)\$", r"\\(\1\\)", form.__doc__.strip().splitlines()[0])
    row = lambda form: (form.__name__, rf"\(\displaystyle {form.latex()}\)", words(form), formula_source(form))
    groups = {name.capitalize(): forms for name, forms in every_formula().items()}
    return _tables(("name", "formula", "meaning", "source"), groups, row)


def specs(file):
    """Every number of "models", "cards", "links" or "assumptions", one table an entry; a link says its protocol."""
    def row(item):
        name, n = item
        ends = "" if n.low is None else f"{short(n.low)} to {short(n.high)}"
        where = "; ".join(filter(None, (n.source, n.where, n.note)))
        return (NAMES[name].meaning, f"{short(n.value)} {n.unit}".rstrip(), ends, n.kind, where, n.date)

    known = lambda entry: entry.key + (f", protocol {entry.said['protocol']}" if "protocol" in entry.said else "")
    groups = {f"{entry.name} ({known(entry)})": entry.numbers.items() for entry in CATALOG[file]().values()}
    return _tables(("number", "value", "range", "kind", "source", "date"), groups, row, (1, 2))


def claims_table(article):
    """Every claim of one article ("000" or "002") with what became of it."""
    named = {claim.id: f"{claim.quantity} ({claim.kind}; {claim.id})" for claim in claims() if claim.article == article}
    again = lambda found: "" if found.computed is None else f"; again {short(found.computed)}"
    head = ("quantity", "verdict", "article, and computed again", "ours", "note")
    rows = tuple((named[found.id], found.verdict or found.status, f"{short(found.article)} {found.unit}{again(found)}",
                  short(found.book_value), found.note) for found in findings() if found.id in named)
    return Words(f"Article {1 + (article != '000')}", head, rows, (3,))


def counts():
    """How many claims there are, and of each role, status and verdict: name -> number."""
    said = Counter(rows=len(findings()))
    for found in findings():
        said.update(filter(None, (found.role, f"is_{found.status}", found.verdict)))
    return said


def measured_table():
    """What others measured, beside the model's low, middle and high."""
    def row(case):
        link = "" if case.link == "none" else f"; link {case.link}"
        numbers = (fixed(rate, 1) for rate in (case.low, case.mid, case.high, case.measured))
        lies = "inside" if case.inside else "below" if case.measured < case.low else "above"
        return (f"{case.setting}; {case.tokens:,} tokens of context{link}", *numbers, lies, f"{case.id}, {case.source}")

    head = ("setting", "low", "middle", "high", "measured", "", "row, source")
    return Words("Decode of one stream, tokens/s", head, tuple(map(row, cases())), (1, 2, 3, 4))


def which_table():
    """The pairs of ways that count."""
    table, (rows, _) = own_table("which")
    return pairs("The first way's speed over the second's", zip(table, rows))


def check_groups(kind):
    """The project's own rows that count, group by group: how many lie inside the range, how far the middle is off."""
    def row(group):
        line, errors = lines[group[0].id], sorted(abs(row.error_frac) for row in group)
        return (f"{line['gpus' if 'gpus' in line else 'ranks']} × {line['gpu']}", line["link"], str(len(group)),
                str(sum(row.inside for row in group)), f"{100 * errors[len(errors) // 2]:.0f}",
                f"{group[0].id.split('/')[0]}, {line['source']}")

    table, (rows, _) = own_table(kind)
    lines = {line["id"]: line for line in table}
    counted = (row for row in rows if row.use == "gate" and row.measured is not None)
    groups = _grouped((lines[row.id]["group"], row) for row in counted)
    head = ("cards", "link", "rows", "inside", "middle off, %", "first row, source")
    return Words(f"Measured rows of check {kind}", head, tuple(map(row, groups.values())), (2, 3, 4))


def kernels_table():
    """Which kernel an engine multiplies the weights of a build with, on which cards, and what it reaches there."""
    def row(rule):
        bounds = [f"from {rule.least:g}"] * bool(rule.least) + [f"below {rule.below:g}"] * (rule.below < kernels.MOST)
        reach = " / ".join(f"{end:.2g}" for end in ends(rule.kernel, "mfu_frac"))
        return (rule.engine or "vLLM, SGLang, others", rule.weights or "all others",
                " ".join(bounds) or "all", rule.kernel, kernels.KERNELS[rule.kernel], reach, rule.source)

    head = ("engine", "weights kept in", "compute capability", "kernel", "multiplied in", "part of that rate", "source")
    return Words("The first row that fits decides, if the card has the rate", head, tuple(map(row, kernels.rules())))


def hosts_table():
    """What each class of host lets an all-reduce through its memory reach, and how its processors are called."""
    def row(entry):
        said = lambda name, unit, digits: "" if name not in entry.numbers else "{1} ({0} to {2})".format(
            *(fixed(end / unit, digits) for end in entry.numbers[name].base_range))
        return (entry.name, f"PCIe {entry.pcie_generation:.0f}.0", said("line_frac", 1, 2),
                *(said(name, GB, 1) for name in ("host_bytes_per_s", "across_bytes_per_s", "peer_across_bytes_per_s")))

    head = ("host", "slots", "share of the slot", "at most, GB/s", "two sockets, GB/s", "and peer access, GB/s")
    return Words("Hosts: middle (low to high)", head, tuple(map(row, hosts().values())), (2, 3, 4, 5))


def forced_protocols(shown=(8, 10240, 131072, 1048576, 16777216, 268435456)):
    """What an all-reduce took between our two H200 when NCCL was held to one protocol, and when it chose."""
    size = lambda n: f"{n} B" if n < 1024 else f"{n // 1024} KiB" if n < 2**20 else f"{n // 2**20} MiB"

    def table(series, words):
        found = [dict(ours(series, name)) for name in ("LL", "LL128", "Simple", "default")]
        rows = tuple((size(n), *(short(float(f"{seconds[n] * 1e6:.4g}")) for seconds in found)) for n in shown)
        return Words(f"{words}, µs", ("message", "LL", "LL128", "Simple", "NCCL's choice"), rows, (1, 2, 3, 4))

    return Several((table("shm", "Through host memory (NCCL_P2P_DISABLE=1)"), table("nvlink", "Over NVLink")))


def sources():
    """Every source of the catalog, the formulas and the public measurements, with what it carries."""
    carried = _grouped((number.source, f"{entry.key} {name}") for file in CATALOG.values()
                       for entry in file().values() for name, number in entry.numbers.items())
    catalog = tuple((source, str(len(names)), names[0] + " …" * (len(names) > 1))
                    for source, names in sorted(carried.items()))
    papers = {(formula_source(form), form.__name__) for forms in every_formula().values() for form in forms}
    printed = tuple(sorted(paper for paper in papers if re.search(r"arXiv|doi|http", paper[0])))
    measured = _grouped((case.source, case.id) for case in cases())
    return Several((
        Words("Sources of the catalog", ("source", "numbers", "for example"), catalog, (1,)),
        Words("Papers behind the formulas", ("source", "formula"), printed),
        Words("Public measurements", ("source", "rows"),
              tuple((source, ", ".join(ids)) for source, ids in sorted(measured.items())))))
