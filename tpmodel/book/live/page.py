"""A figure as live HTML: native inputs, matplotlib's SVG, a table, and the marks' recorded JavaScript."""

import json
from html import escape

from ...formula import printers
from ...formula.tree import calls
from . import drawing

TALL = 4.0  # inches; a taller picture does not stay in view while the controls scroll on a phone


def fragment(figure):
    """The `<figure class="tp-live">` of a page and the script that registers its functions."""
    picture, transforms = drawing.svg(figure)
    shown = figure.shown_texts()
    spec = {
        "name": figure.name,
        "controls": [control.spec() for control in figure.controls],
        "presets": {name: figure.texts(texts) for name, texts in figure.presets.items()},
        "constants": figure.constants,
        "axes": [[*numbers, int(a.xlog), int(a.ylog), *a.xlim, *a.ylim] for numbers, a in zip(transforms, figure.axes)],
    }
    readouts = "".join(
        f'<p id="{figure.name}-readout-{name}">{escape(shown["readout-" + name])}</p>' for name in figure.readouts
    )
    return "\n".join([
        f'<figure class="tp-live{" tp-tall" if figure.size[1] > TALL else ""}" id="{figure.name}" data-spec="{escape(json.dumps(spec, ensure_ascii=False))}">',
        f'<figcaption class="tp-caption"><strong>{escape(figure.title)}</strong> {escape(figure.caption)}</figcaption>',
        f'<div class="tp-result"><div class="tp-seen">{_presets(figure)}',
        f'<div class="tp-readouts" aria-live="polite">{readouts}</div>',
        f'<div class="tp-picture">{picture}</div></div></div>',
        '<p class="tp-note" role="status"></p>',
        '<div class="tp-controls">',
        *(_control(figure, control, shown) for control in figure.controls),
        "</div>",
        _table(figure, shown),
        '<p class="tp-foot"><button type="button" class="tp-reset">Reset</button> '
        f'<a class="tp-link" href="#{figure.name}">Link to this setting</a></p>',
        "</figure>",
        f"<script>\n{script(figure)}\n</script>",
    ])


def _presets(figure):
    """A list of the settings that the figure can show; "yours" stands for any other."""
    if not figure.presets:
        return ""
    options = "".join(f'<option value="{escape(name)}">{escape(name)}</option>' for name in (*figure.presets, "yours"))
    return f'<p class="tp-preset"><label>Shown: <select aria-label="{escape(figure.title)} Shown setting">{options}</select></label></p>'


def _control(figure, control, shown):
    note = described = ""
    if control.silent:
        name = f"{figure.name}-silent-{control.name}"
        note = f'<p class="tp-silent" id="{name}">{escape(shown[f"silent-{control.name}"])}</p>'
        described = f' aria-describedby="{name}"'
    identity, label = f"{figure.name}-set-{control.name}", escape(control.label)
    if control.kind == "choice":
        options = "".join(
            f'<option{" selected" if name == control.start else ""}>{escape(name)}</option>' for name in control.options
        )
        return (f'<div class="tp-control"><label for="{identity}">{label}</label>'
                f'<select id="{identity}" data-control="{control.name}"{described}>{options}</select>{note}</div>')
    return (
        f'<div class="tp-control"><label for="{identity}">{label}</label>'
        f'<span class="tp-typed"><input type="text" inputmode="decimal" data-typed="{control.name}" size="7" '
        f'value="{control.start}" aria-label="{label}, typed{", in " + escape(control.unit) if control.unit else ""}">'
        f' {escape(control.unit)}</span>'
        f'<input type="range" id="{identity}" data-control="{control.name}" min="0" max="{len(control.texts) - 1}" '
        f'step="1" value="{control.texts.index(control.start)}" '
        f'aria-valuetext="{escape(control.shown(control.start))}"{described}>{note}</div>'
    )


def _table(figure, shown):
    if not figure.table:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in figure.table.head)
    rows = []
    for row, cells in enumerate(figure.table.rows):
        texts = [(f"{figure.name}-cell-{row}-{column}", escape(shown[f"cell-{row}-{column}"])) for column in range(len(cells))]
        first = f'<th scope="row" id="{texts[0][0]}">{texts[0][1]}</th>'
        rows.append("<tr>" + first + "".join(f'<td id="{i}">{t}</td>' for i, t in texts[1:]) + "</tr>")
    return (f'<div class="tp-table" tabindex="0" role="region" aria-label="{escape(figure.table.caption)}">'
            f'<table><caption>{escape(figure.table.caption)}</caption><thead><tr>{head}</tr></thead>'
            f'<tbody>{"".join(rows)}</tbody></table></div>')


def script(figure):
    """The figure's functions, registered for live.js: one for all numbers, one for each curve, and the texts that print them."""
    recorded = figure.recorded
    used = {}
    for nodes in recorded.values():
        for node in nodes:
            used.update({formula.__name__: formula for formula in calls(node)})
    numbers, marks, texts = [], [], []
    for mark in figure.marks:
        if mark.kind == "curve":
            curve = printers.javascript_curve(mark.over, recorded[mark.name])
            marks.append(f'["{mark.name}", "curve", {mark.axes}, {curve}, {json.dumps(mark.samples)}]')
        else:
            marks.append(f'["{mark.name}", "{mark.kind}", {mark.axes}, {len(numbers)}]')
            numbers += recorded[mark.name]
    for name, parts in figure.all_texts.items():
        if recorded[name]:
            texts.append(f'["{name}", {_text(parts, len(numbers))}]')
            numbers += recorded[name]
    return (
        f"(window.tpFigures = window.tpFigures || {{}})[{json.dumps(figure.name)}] = fixed => {{\n"
        f"const F = {printers.javascript_library(used.values())};\n"
        f"return {{\nnumbers: {printers.javascript_function(['v'], printers.interned(numbers), prefix='v.')},\n"
        "marks: [" + ",\n".join(marks) + "],\n"
        "texts: [" + ",\n".join(texts) + "]};\n};"
    ).replace("</", "<\\/")


def _text(parts, first):
    """A function of all numbers that prints one text; its own begin at index `first`."""
    shown, at = [], first
    for part in parts:
        if isinstance(part, str):
            shown.append(json.dumps(part, ensure_ascii=False))
            continue
        words = isinstance(part[1], tuple)
        shown.append(f"{json.dumps(part[1], ensure_ascii=False)}[n[{at}]]" if words else f"fixed(n[{at}], {part[1]})")
        at += 1
    return "n => " + " + ".join(shown)
