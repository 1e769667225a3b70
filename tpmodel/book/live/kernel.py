"""A figure in a live kernel: ipywidgets that drive Python. The only module that knows ipywidgets."""

import base64
import io
from html import escape

from . import drawing


def bundle(figure, widgets=True):
    """The mime bundle for a notebook: widgets, the default figure as PNG, and its stable text."""
    found = {"text/plain": figure.describe(), "image/png": base64.b64encode(png(figure)).decode()}
    if not widgets:
        return found
    try:
        view = widget(figure)._repr_mimebundle_()
    except ImportError:
        return found
    return {**found, **{key: view[key] for key in view if key.startswith("application/")}}


def png(figure, values=None):
    """The figure as PNG bytes, readouts above."""
    buffer = io.BytesIO()
    figure.draw(values).savefig(buffer, format="png", dpi=144, bbox_inches="tight", facecolor="white")
    return buffer.getvalue()


def widget(figure):
    """Sliders and drop-downs above the figure; each change draws it anew in Python."""
    import ipywidgets

    wide = {"style": {"description_width": "14em"}, "layout": {"width": "36em"}}
    inputs = {}
    for control in figure.controls:
        options = control.texts if control.kind == "slider" else tuple(control.options)
        make = ipywidgets.SelectionSlider if control.kind == "slider" else ipywidgets.Dropdown
        shown = [(control.shown(option), option) for option in options]
        inputs[control.name] = make(options=shown, value=control.start, description=control.label, **wide)
    picture = ipywidgets.HTML(html(figure))
    notes = {control.name: ipywidgets.Label(figure.shown_texts()[f"silent-{control.name}"]) for control in figure.controls if control.silent}
    presets = ipywidgets.Dropdown(options=[*figure.presets, "yours"], value=figure.shown_preset() or "yours", description="Shown", **wide)

    def redraw(_):
        values = {name: box.value for name, box in inputs.items()}
        for name, note in notes.items():
            note.value = figure.shown_texts(values)[f"silent-{name}"]
        picture.value, presets.value = html(figure, values), figure.shown_preset(values) or "yours"

    def chosen(change):
        for name, text in figure.texts(figure.presets.get(change["new"], {})).items() if change["new"] in figure.presets else ():
            inputs[name].value = text

    for box in inputs.values():
        box.observe(redraw, "value")
    presets.observe(chosen, "value")
    rows = [ipywidgets.HBox([box, notes[name]]) if name in notes else box for name, box in inputs.items()]
    return ipywidgets.VBox([*([presets] if figure.presets else []), *rows, picture])


def html(figure, values=None):
    """The still figure for these values: readouts, SVG, table."""
    shown = figure.shown_texts(values)
    readouts = "".join(f"<p>{escape(shown['readout-' + name])}</p>" for name in figure.readouts)
    picture, _ = drawing.svg(figure, values)
    rows = ""
    if figure.table:
        rows = "<tr>" + "".join(f"<th>{escape(name)}</th>" for name in figure.table.head) + "</tr>"
        for row, cells in enumerate(figure.table.rows):
            rows += "<tr>" + "".join(f"<td>{escape(shown[f'cell-{row}-{c}'])}</td>" for c in range(len(cells))) + "</tr>"
    return f'<div style="max-width: 40em">{readouts}{picture}<table>{rows}</table></div>'
