"""Of the counted rows of a check: how far off, how wide, how often inside, all together and group by group."""

import re
from statistics import median

from ..shapes.models import by_name
from . import transports

SOURCE = re.compile(r"(?:https?://)?((?:github\.com/)?[^#,\s/]+(?:/[^#,\s/]+)?)")


def _source(line):
    found = SOURCE.match(line.text("source"))
    return found and found[1]


def _kind(line):
    if line.text("spec_tokens", "0") != "0":
        return "drafts"
    try:
        config = by_name(line.text("config") or line.text("model"))
    except ValueError:
        return None
    return "experts" if any(module.name == "experts" for module in config.modules) else "dense"


def _host(line):
    host = transports.host_of(line)
    return line.text("host_cpu") and f"{line.text('link')}, {host.key if host else 'not-said'}"


GROUPS = {"source": _source, "engine": lambda line: line.text("engine"), "link": lambda line: line.text("link"),
          "host": _host, "ranks": lambda line: line.text("tp") or line.text("ranks"), "kind": _kind}


def of(rows):
    """{what: number} of rows with a range and a measured value: `error_frac` is of the middle, its median the bias."""
    errors = [row.error_frac for row in rows]
    widths = [row.high / row.low for row in rows if row.low > 0]
    return {"rows": len(rows), "inside_frac": sum(row.inside for row in rows) / len(rows),
            "median_abs_error_frac": median(map(abs, errors)), "median_error_frac": median(errors),
            "median_width": median(widths) if widths else None}


def spread(rows, lines):
    """The fields that a summary gets: of all counted rows, and `by` each of GROUPS; without each source, the bias."""
    known = {line.text("id", "?"): line for line in lines}
    kept = [row for row in rows if row.error_frac is not None and row.low is not None]
    if not kept:
        return {}
    by = {}
    for name, key in GROUPS.items():
        parted = {}
        for row in kept:
            if group := key(known[row.id]):
                parted.setdefault(group, []).append(row)
        by[name] = {group: of(members) for group, members in parted.items()}
        for group, members in parted.items() if name == "host" else ():
            sources = {_source(known[row.id]) for row in members}
            rest = {left: [row for row in members if _source(known[row.id]) != left] for left in sources}
            by[name][group]["without"] = {left: of(rows)["median_error_frac"] for left, rows in rest.items() if rows}
    for source, found in by["source"].items():
        others = [row for row in kept if _source(known[row.id]) != source]
        found["median_error_frac_without"] = of(others)["median_error_frac"] if others else None
    whole = of(kept)
    return {name: whole[name] for name in ("inside_frac", "median_error_frac", "median_width")} | {"by": by}
