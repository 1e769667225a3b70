"""A figure by matplotlib, and matplotlib's SVG made fit for a page."""

import io
import re

from .marks import EDGE, place, text

COLORS = {  # name -> what matplotlib draws; the page replaces it by a variable of live.css
    "text": "#010203",
    "blue": "#0b4a86",
    "red": "#c4470f",
    "green": "#35a47c",
    "gold": "#d4a72c",
    "purple": "#8b3f78",
    "gray": "#7c828b",
    "teal": "#1b8fa5",
    "brown": "#6e4524",
}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tpmodel",
    "path.simplify": False,
    "font.size": 12,
    "axes.titlesize": 12,
    "legend.fontsize": 10.5,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "axes.linewidth": 0.8,
    **{key: COLORS["text"] for key in ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")},
}


def draw(figure, values=None, readouts=True):
    """The matplotlib Figure; `readouts` as a title (a page shows them as text of its own)."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    view = figure.view(values)
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=figure.size, dpi=72)
        heights = [axes.height for axes in figure.axes]
        grid = canvas.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
        pairs = [row[0] for row in grid]
        for axes, pair in zip(figure.axes, pairs):
            _dress(axes, pair)
        for mark in figure.marks:
            _draw_mark(figure, mark, view, pairs[mark.axes])
        for axes, pair in zip(figure.axes, pairs):
            if axes.legend:
                pair.legend(ncols=axes.legend, loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False,
                            borderaxespad=0.2, handlelength=1.2, columnspacing=1.0, handletextpad=0.5)
        canvas.tight_layout(pad=0.4)
        if readouts and figure.readouts:
            shown = [f"Shown: {figure.shown_preset(values)}"] * bool(figure.presets) + [text(parts, view) for parts in figure.readouts.values()]
            canvas.text(0.01, 1.02, "\n".join(shown), va="bottom", fontsize=10.5, color=COLORS["text"])
    return canvas


def _dress(axes, pair):
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    if axes.xlog:
        pair.set_xscale("log")
    if axes.ylog:
        pair.set_yscale("log")
    pair.set_xlim(*axes.xlim)
    pair.set_ylim(*axes.ylim)
    pair.set_xlabel(axes.xlabel)
    pair.set_ylabel(axes.ylabel)
    if axes.bare:
        pair.set_axis_off()
        return
    pair.spines[["top", "right"]].set_visible(False)
    for axis, log, limits, ticks in (
        (pair.xaxis, axes.xlog, axes.xlim, axes.xticks),
        (pair.yaxis, axes.ylog, axes.ylim, axes.yticks),
    ):
        if log:
            axis.set_major_locator(LogLocator(base=10, numticks=6))
            axis.set_major_formatter(EngFormatter(sep=""))
            axis.set_minor_locator(NullLocator())
        elif max(limits) >= 10_000:
            axis.set_major_formatter(EngFormatter(sep=""))
        if ticks:
            axis.set_ticks([at for at, _ in ticks], [words for _, words in ticks])


def _draw_mark(figure, mark, view, pair):
    from matplotlib.patches import Polygon

    gid, color, axes = f"{figure.name}-{mark.name}", COLORS[mark.color], figure.axes[mark.axes]
    label = getattr(mark, "label", "") or None
    if mark.kind == "curve":
        import numpy as np

        samples = np.asarray(mark.samples, dtype="float64")
        here = view.extended(**{mark.over: samples})
        x, y = (place(part, here) + 0.0 * samples for part in mark.parts())
        pair.plot(clamp(x, axes.xlim, axes.xlog), clamp(y, axes.ylim, axes.ylog), color=color, label=label,
                  linewidth=2.2, linestyle="--" if mark.dashed else "-", gid=gid, solid_capstyle="butt")
        return
    numbers = [float(place(part, view)) for part in mark.parts()]
    x = [clamp(number, axes.xlim, axes.xlog) for number in numbers[0::2]]
    y = [clamp(number, axes.ylim, axes.ylog) for number in numbers[1::2]]
    if mark.kind == "box":
        corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1]), (x[0], y[0])]  # all five: a flat box keeps four sides
        pair.add_patch(Polygon(corners, closed=True, facecolor=color, edgecolor=COLORS["text"], linewidth=0.5,
                               alpha=0.55 if mark.ghost else 1.0, label=label, gid=gid))
    elif mark.kind == "line":
        pair.plot(x, y, color=color, label=label, linewidth=1.8, linestyle="--" if mark.dashed else "-", gid=gid,
                  marker=_head(x, y) if mark.arrow else None, markevery=[1], markersize=5)
    elif mark.kind == "marker":
        pair.plot(x, y, color=color, label=label, marker=mark.shape, markersize=9, linestyle="none", gid=gid,
                  markeredgecolor=COLORS["text"])
    else:
        pair.text(x[0], y[0], text(mark.text, view), color=color, fontsize=mark.size, ha=mark.align, va="center",
                  gid=gid).set_in_layout(False)


def _head(x, y):
    """The head of an arrow along an axis: matplotlib's caret with its tip at the end of the line."""
    from matplotlib import markers

    if abs(y[1] - y[0]) > abs(x[1] - x[0]):
        return markers.CARETUP if y[1] > y[0] else markers.CARETDOWN
    return markers.CARETRIGHT if x[1] > x[0] else markers.CARETLEFT


def clamp(value, limits, log):
    """`value` held to the axis limits, a little beyond, so that nothing leaves the figure."""
    import numpy as np

    lo, hi = min(limits), max(limits)
    if log:
        ratio = (hi / lo) ** EDGE
        lo, hi = lo / ratio, hi * ratio
    else:
        lo, hi = lo - EDGE * (hi - lo), hi + EDGE * (hi - lo)
    return np.minimum(np.maximum(value, lo), hi)


def transforms(figure, canvas):
    """For each pair of axes [ax, bx, ay, by]: x_svg = ax + bx * f(x), f the identity or log10; y likewise."""
    height = canvas.get_figheight() * 72
    found = []
    for axes, pair in zip(figure.axes, canvas.axes):
        (x0, y0), (x1, y1) = pair.transData.transform([(axes.xlim[0], axes.ylim[0]), (axes.xlim[1], axes.ylim[1])])
        found.append([*_line(axes.xlim, axes.xlog, x0, x1), *_line(axes.ylim, axes.ylog, height - y0, height - y1)])
    return found


def _line(limits, log, pixel0, pixel1):
    import math

    lo, hi = (math.log10(limit) for limit in limits) if log else limits
    slope = (pixel1 - pixel0) / (hi - lo)
    return float(pixel0 - slope * lo), float(slope)


def svg(figure, values=None):
    """(SVG text, transforms) of the figure: ids of its own, colours as variables, no fixed size, no font list."""
    import matplotlib

    canvas = draw(figure, values, readouts=False)
    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        canvas.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None,
                                                                        "Format": None, "Type": None})
    found = buffer.getvalue()
    found = found[found.index("<svg") :]
    found = re.sub(r"<!--.*?-->\s*|<metadata>.*?</metadata>\s*", "", found, flags=re.S)
    found = re.sub(r'(\sid="|url\(#|href="#)(?!' + re.escape(figure.name) + "-)", rf"\1{figure.name}-", found)
    found = re.sub(r'<svg [^>]*viewBox="([^"]*)"[^>]*>', _opening(figure), found, count=1)
    found = re.sub(r"font-family: [^;\"]*;? ?", "", found)
    found = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", found)
    for name, color in COLORS.items():
        variable = "currentColor" if name == "text" else f"var(--tp-{name}, {color})"
        found = found.replace(color, variable)
    return re.sub(r">\s+<", "><", found), transforms(figure, canvas)


def _opening(figure):
    from html import escape

    label = escape(figure.title, quote=True).replace("\\", r"\\")
    return rf'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="\1" role="img" aria-label="{label}">'
