"""A figure in a live kernel: ipywidgets that drive Python. The only module that knows ipywidgets."""

import base64
import io
from html import escape

from . import drawing


def bundle(figure, widgets=True):
    """The mime bundle for a notebook: widgets, the default figure as PNG, and its stable text."""
    found = {"text/plain": figure.describe(), "image/png": base64.b64encode(png(figure)).decode()}
    try:
        shown = widget(figure)._repr_mimebundle_() if widgets else {}
    except ImportError:
        shown = {}
    return found | {key: shown[key] for key in shown if key.startswith("application/")}


def png(figure, values=None):
    """The figure as PNG bytes, readouts above."""
    buffer = io.BytesIO()
    figure.draw(values).savefig(buffer, format="png", dpi=144, bbox_inches="tight", facecolor="white")
    return buffer.getvalue()


def widget(figure):
    """Sliders and drop-downs above the figure; each change draws it anew in Python."""
    import ipywidgets
    wide = {"style": {"description_width": "14em"}, "layout": {"width": "36em"}}
    inputs, notes, shown = {}, {}, figure.shown_texts()
    for control in figure.controls:
        slides = control.kind == "slider"
        make = ipywidgets.SelectionSlider if slides else ipywidgets.Dropdown
        options = [(control.shown(option), option) for option in (control.texts if slides else control.options)]
        inputs[control.name] = make(options=options, value=control.start, description=control.label, **wide)
        if control.silent:
            notes[control.name] = ipywidgets.Label(shown[f"silent-{control.name}"])
    picture = ipywidgets.HTML(html(figure))
    presets = ipywidgets.Dropdown(options=[*figure.presets, "yours"], value=figure.shown_preset() or "yours",
                                  description="Shown", **wide)

    def redraw(_):
        values = {name: box.value for name, box in inputs.items()}
        texts = figure.shown_texts(values)
        for name, note in notes.items():
            note.value = texts[f"silent-{name}"]
        picture.value, presets.value = html(figure, values), figure.shown_preset(values) or "yours"

    def chosen(change):
        if change["new"] in figure.presets:
            for name, text in figure.texts(figure.presets[change["new"]]).items():
                inputs[name].value = text

    for box in inputs.values():
        box.observe(redraw, "value")
    presets.observe(chosen, "value")
    rows = [ipywidgets.HBox([box, notes[name]]) if name in notes else box for name, box in inputs.items()]
    return ipywidgets.VBox([*([presets] if figure.presets else []), *rows, picture])


def html(figure, values=None):
    """The still figure for these values: readouts, SVG, table."""
    shown = figure.shown_texts(values)
    readouts = "".join(f"<p>{escape(shown[f'readout-{name}'])}</p>" for name in figure.readouts)
    row = lambda tag, texts: "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts) + "</tr>"
    rows = row("th", figure.table.head) + "".join(row("td", dict(cells).values()) for cells in figure.cells(shown))
    return f'<div style="max-width: 40em">{readouts}{drawing.svg(figure, values)[0]}<table>{rows}</table></div>'
