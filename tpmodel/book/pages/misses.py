"""How far off the model is from what people measured: by groups, row by row, and from rows that a fit did not see."""

from ...planner.evidence.checks import own_table
from ...planner.evidence.rows import table
from .tables import Several, Words

FEW = 4  # rows of a source that has no line of its own


def check_spread(kind, *groups):
    """Of the project's own rows that count, how often the range holds them and how wide it is, one table a grouping."""
    percent = lambda frac: "–" if frac is None else f"{100 * frac:.0f}"

    def row(item):
        name, n = item
        return (name, str(n["rows"]), percent(n["inside_frac"]), percent(n["median_abs_error_frac"]),
                percent(n["median_error_frac"]), f"{n['median_width']:.2f}")

    head, by = ("", "rows", "inside, %", "middle off, %", "too fast by, %", "high / low"), own_table(kind)[1][1]["by"]
    return Several(tuple(Words(f"By {name}", head, tuple(map(row, by[name].items())), (1, 2, 3, 4, 5))
                         for name in groups))


def far_off(kind, more_than_frac):
    """The rows whose middle is further off than this, with what their table says of them; those that count first."""
    found = [(row, line) for line in own_table(kind)[0] for row in own_table(kind)[1][0]
             if row.id == line["id"] and row.error_frac is not None and abs(row.error_frac) > more_than_frac]
    said = "{id}: {gpus} × {gpu}, {engine}, {quant}".format_map
    more = lambda line: f", {line['spec_tokens']} drafts" if "spec_tokens" in line else ""
    rows = [(said(line) + more(line), f"{100 * row.error_frac:+.0f}", "" if row.use == "gate" else "shown only",
             line["note"] or "not said")
            for row, line in sorted(found, key=lambda pair: pair[0].use != "gate")]
    head = ("row", "too fast by, %", "", "what is known of it")
    return Words("Rows whose middle is far off", head, tuple(rows), (1,))


def left_out():
    """By source of rows: how far off with the catalog's numbers, and with numbers fitted to the other sources' rows."""
    words = {"prefill": "prompts", "decode": "decode"}
    percent = lambda text: f"{100 * float(text):.0f}"
    rows = tuple((f"{words[line['kind']]}: {line['source']}", line["rows"], *(
        percent(line[name]) for name in ("off_frac", "left_out_frac", "bias_frac")))
                 for line in table("left_out.csv") if int(line["rows"]) >= FEW)
    head = ("rows of", "rows", "off, %", "off, fitted without them, %", "too fast by, %")
    return Words("What the rows say of themselves, and the others of them", head, rows, (1, 2, 3, 4))
