"""A figure as live HTML: native inputs, matplotlib's SVG, a table, and the marks' recorded JavaScript."""

import json
from html import escape
from itertools import count

from ...formula import printers
from ...formula.tree import calls
from . import marks

TALL = 4.0  # inches; a taller picture does not stay in view while the controls scroll on a phone
SPARE = " mmmm"  # letters differ in width: another text of as many may need a line more
STILL = "Without JavaScript the figure shows its first setting, and the controls move nothing."


def fragment(figure):
    """The `<figure class="tp-live">` of a page and the script that registers its functions."""
    from . import drawing
    picture, transforms = drawing.svg(figure)
    shown = figure.shown_texts()
    spec = escape(_json({
        "name": figure.name,
        "controls": [control.spec() for control in figure.controls],
        "presets": {name: figure.texts(texts) for name, texts in figure.presets.items()},
        "constants": figure.constants,
        "axes": [[*numbers, int(a.xlog), int(a.ylog), *a.xlim, *a.ylim] for numbers, a in zip(transforms, figure.axes)],
    }))
    tall = " tp-tall" if figure.size[1] > TALL else ""
    readouts = "".join(f'<p data-longest="{escape(longest + SPARE)}"><span id="{figure.name}-readout-{name}">'
                       f'{_readout(figure, name)}</span></p>' for name, longest in _longest(figure).items())
    beyond = "".join(f'<p class="tp-beyond" id="{figure.name}-{name}">{escape(said)}</p>'
                     for name, said in shown.items() if name.startswith("beyond-"))
    caption, head = escape(figure.table.caption), [("", escape(name)) for name in figure.table.head]
    controls = [_control(figure, control, shown) for control in figure.controls]
    rows = [[(f' id="{figure.name}-{name}"', _linked(figure, text)) for name, text in row]
            for row in figure.cells(shown)]
    return "\n".join([
        f'<figure class="tp-live{tall}" id="{figure.name}" data-spec="{spec}">',
        f'<figcaption class="tp-caption"><strong>{escape(figure.title)}</strong> {escape(figure.caption)}</figcaption>',
        f'<div class="tp-result"><div class="tp-seen">{_presets(figure)}',
        f'<div class="tp-readouts" aria-live="polite">{readouts}</div>',
        f'<div class="tp-picture">{picture}{beyond}</div></div></div>',
        '<p class="tp-note" role="status"></p>',
        f'<div class="tp-controls"><noscript><p class="tp-note">{STILL}</p></noscript>',
        *controls[: figure.first], *_more(controls[figure.first :]), "</div>",
        table(caption, caption, head, rows),
        f'<p class="tp-foot"><button type="button" class="tp-reset" aria-label="Reset: {escape(figure.title)}">Reset'
        "</button> "
        f'<a class="tp-link" href="#{figure.name}">Link to this setting</a></p>',
        "</figure>",
        f"<script>\n{script(figure)}\n</script>"])


def _linked(figure, text):
    address = figure.table.links.get(text)
    return f'<a href="{escape(address)}">{escape(text)}</a>' if address else escape(text)


def _readout(figure, name):
    """The pieces of a readout; the number of a quantity with a name is a button that says why."""
    places, view, found = figure.derivations[0], figure.view(), []
    for place, part in enumerate(figure.all_texts[f"readout-{name}"]):
        said, row = escape(marks.text((part,), view)), places.get((name, place))
        found.append(f"<span>{said}</span>" if row is None else
                     f'<button id="{figure.name}-why-{name}-{place}" type="button" class="tp-ask" '
                     f'aria-haspopup="dialog" data-why="{row}">{said}</button>')
    return "".join(found)


def _longest(figure):
    """The longest text of each readout, over presets and the ends of every control: its lines are kept free."""
    ends = [{c.name: text} for c in figure.controls
            for text in ((c.texts[0], c.texts[-1]) if c.kind == "slider" else c.options)]
    texts = [figure.shown_texts(values) for values in ({}, *figure.presets.values(), *ends)]
    return {name: max((shown[f"readout-{name}"] for shown in texts), key=len) for name in figure.readouts}


def _more(controls):
    """The controls that stand folded under the first ones."""
    summary = f"More: {len(controls)} control{'s' * (len(controls) > 1)}"
    return [f'<details class="tp-more"><summary>{summary}</summary>', *controls, "</details>"] if controls else []


def table(label, caption, head, rows, look=""):
    """The HTML of a table from that of its parts; a cell is (attributes, text), the first of a row heads it."""
    cell = lambda tag, attributes, text: f"<{tag}{attributes}>{text}</{tag[:2]}>"
    head = "".join(cell('th scope="col"', *one) for one in head)
    body = "".join("<tr>" + cell('th scope="row"', *first) + "".join(cell("td", *one) for one in more) + "</tr>"
                   for first, *more in rows)
    return (f'<div class="tp-table{look}" tabindex="0" role="region" aria-label="{label}"><table>'
            f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")


def _json(value):
    return json.dumps(value, ensure_ascii=False)


def _presets(figure):
    """A list of the settings that the figure can show; "yours" stands for any other."""
    if not figure.presets:
        return ""
    options = "".join(f'<option value="{escape(name)}">{escape(name)}</option>' for name in (*figure.presets, "yours"))
    label = f"{escape(figure.title)} Shown setting"
    return f'<p class="tp-preset"><label>Shown: <select aria-label="{label}">{options}</select></label></p>'


def _control(figure, control, shown):
    note = described = ""
    if control.silent:
        name = f"{figure.name}-silent-{control.name}"
        note = f'<p class="tp-silent" id="{name}">{escape(shown[f"silent-{control.name}"])}</p>'
        described = f' aria-describedby="{name}"'
    identity, label = f"{figure.name}-set-{control.name}", escape(control.label)
    marked = f'id="{identity}" data-control="{control.name}"'
    if control.kind == "choice":
        selected = lambda name: " selected" if name == control.start else ""
        options = "".join(f"<option{selected(name)}>{escape(name)}</option>" for name in control.options)
        field = f"<select {marked}{described}>{options}</select>"
    else:
        unit = escape(control.unit)
        field = (f'<span class="tp-typed"><input type="text" inputmode="decimal" data-typed="{control.name}" size="7" '
                 f'value="{control.start}" aria-label="{label}, typed{unit and f", in {unit}"}"> {unit}</span>'
                 f'<input type="range" {marked} min="0" max="{len(control.texts) - 1}" step="1" '
                 f'value="{control.texts.index(control.start)}" '
                 f'aria-valuetext="{escape(control.shown(control.start))}"{described}>'
                 + (f'<span class="tp-steps">{_step(control, -1, "Back")}{_step(control, 1, "Next")}</span>'
                    if control.stepped else ""))
    return f'<div class="tp-control"><label for="{identity}">{label}</label>{field}{note}</div>'


def _step(control, by, words):
    return (f'<button type="button" data-step="{control.name}" data-by="{by}" '
            f'aria-label="{words}: {escape(control.label)}">{words}</button>')


def script(figure):
    """The figure's functions, registered for live.js: for all numbers, for each curve, and for the texts."""
    recorded = figure.recorded
    _, rows, values = figure.derivations
    used = {form.__name__: form for nodes in (*recorded.values(), values) for node in nodes for form in calls(node)}
    numbers, placed, texts = [], [], []
    for mark in figure.marks:
        at = len(numbers)
        if mark.kind == "curve":
            at = f"{printers.javascript_curve(mark.over, recorded[mark.name])}, {json.dumps(mark.samples)}"
        else:
            numbers += recorded[mark.name]
        placed.append(f'["{mark.name}", "{mark.kind}", {mark.axes}, {at}]')
    for name, parts in figure.all_texts.items():
        if recorded[name]:
            pieces = name.startswith("readout-")
            texts.append(f'["{name}", {_text(parts, len(numbers), pieces)}]')
            numbers += recorded[name]
    return (
        f"(window.tpFigures = window.tpFigures || {{}})[{json.dumps(figure.name)}] = fixed => {{\n"
        f"const F = {printers.javascript_library(used.values())};\n"
        f"return {{\nnumbers: {printers.javascript_function(['v'], printers.interned(numbers), prefix='v.')},\n"
        "marks: [" + ",\n".join(placed) + "],\n"
        "texts: [" + ",\n".join(texts) + "],\n"
        f"why: {_json(rows)},\n"
        f"values: {printers.javascript_function(['v'], printers.interned(values), prefix='v.')}}};\n}};"
    ).replace("</", "<\\/")


def _text(parts, first, pieces):
    """A function of all numbers that prints one text, or its pieces; its own begin at index `first`."""
    at = count(first)
    number = lambda how, n: f"{_json(how)}[{n}]" if isinstance(how, tuple) else f"fixed({n}, {how})"
    shown = (_json(part) if isinstance(part, str) else number(part[1], f"n[{next(at)}]") for part in parts)
    return f"n => [{', '.join(shown)}]" if pieces else "n => " + " + ".join(shown)
