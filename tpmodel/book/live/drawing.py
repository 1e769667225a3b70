"""A figure by matplotlib, and matplotlib's SVG made fit for a page."""

import io
import math
import re
from html import escape

import matplotlib
import numpy as np
from matplotlib import markers
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Polygon
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

from .marks import EDGE, place, text

COLORS = {  # name -> what matplotlib draws; the page replaces it by a variable of live.css
    "text": "#010203", "blue": "#0b4a86", "red": "#c4470f", "green": "#35a47c", "gold": "#d4a72c",
    "purple": "#8b3f78", "gray": "#7c828b", "teal": "#1b8fa5", "brown": "#6e4524"}
FILLED = 0.97  # of the picture's width, at most, by a legend: another font may be wider
NARROW = 0.88  # width of the picture on a page, of that in a notebook: a phone shows its texts the larger
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "tpmodel", "path.simplify": False, "axes.linewidth": 0.8,
    "font.size": 12, "axes.titlesize": 12, "legend.fontsize": 10.5, "xtick.labelsize": 11, "ytick.labelsize": 11}
STYLE |= {f"{what}color": COLORS["text"] for what in ("text.", "axes.edge", "axes.label", "xtick.", "ytick.")}


def draw(figure, values=None, readouts=True):
    """The matplotlib Figure; `readouts` as a title (a page shows them as text of its own)."""
    view = figure.view(values)
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(figure.size[0] * (1.0 if readouts else NARROW), figure.size[1]), dpi=72)
        heights = [axes.height for axes in figure.axes]
        pairs = canvas.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0]
        for number, (axes, pair) in enumerate(zip(figure.axes, pairs)):
            _dress(axes, pair)
            for mark in figure.marks:
                if mark.axes == number:
                    _draw_mark(f"{figure.name}-{mark.name}", mark, view, axes, pair)
        for axes, pair in zip(figure.axes, pairs):  # once all texts stand beside the axes
            for columns in range(axes.legend, 0, -1):  # as many as the picture is wide
                legend = pair.legend(ncols=columns, loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False,
                                     borderaxespad=0.2, handlelength=1.2, columnspacing=1.0, handletextpad=0.5)
                canvas.tight_layout(pad=0.4)
                if legend.get_window_extent().x1 <= canvas.bbox.x1 * FILLED:
                    break
        canvas.tight_layout(pad=0.4)
        if readouts:
            shown = [f"Shown: {figure.shown_preset(values)}"] * bool(figure.presets)
            shown += [text(parts, view) for parts in figure.readouts.values()]
            canvas.text(0.01, 1.02, "\n".join(shown), va="bottom", fontsize=10.5, color=COLORS["text"])
    return canvas


def _dress(axes, pair):
    scale = lambda log: "log" if log else "linear"
    pair.set(xscale=scale(axes.xlog), yscale=scale(axes.ylog), xlim=axes.xlim, ylim=axes.ylim,
             xlabel=axes.xlabel, ylabel=axes.ylabel)
    if axes.bare:
        pair.set_axis_off()
        return
    pair.spines[["top", "right"]].set_visible(False)
    for axis, log, limits, ticks in ((pair.xaxis, axes.xlog, axes.xlim, axes.xticks),
                                     (pair.yaxis, axes.ylog, axes.ylim, axes.yticks)):
        if log:
            axis.set_major_locator(LogLocator(base=10, numticks=6))
            axis.set_minor_locator(NullLocator())
        if log or max(limits) >= 10_000:
            axis.set_major_formatter(EngFormatter(sep=""))
        if ticks:
            axis.set_ticks(*zip(*ticks))


def _draw_mark(gid, mark, view, axes, pair):
    here = view.extended(**{mark.over: np.array(mark.samples, dtype=float)}) if mark.kind == "curve" else view
    numbers = [place(part, here) for part in mark.parts()]
    x = [clamp(number, axes.xlim, axes.xlog) for number in numbers[0::2]]
    y = [clamp(number, axes.ylim, axes.ylog) for number in numbers[1::2]]
    color, named = COLORS[mark.color], {"gid": gid, "label": getattr(mark, "label", "") or None}
    style = "--" if getattr(mark, "dashed", False) else "-"
    if mark.kind == "box":
        corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1]), (x[0], y[0])]  # or a flat one lost a side
        pair.add_patch(Polygon(corners, closed=True, facecolor=color, edgecolor=COLORS["text"], linewidth=0.5,
                               alpha=0.55 if mark.ghost else 1.0, **named))
    elif mark.kind == "line":
        pair.plot(x, y, color=color, linewidth=1.8, linestyle=style, marker=_head(x, y) if mark.arrow else None,
                  markevery=[1], markersize=5, **named)
    elif mark.kind == "curve":
        pair.plot(*np.broadcast_arrays(*x, *y), color=color, linewidth=0.5 if mark.thin else 2.2, linestyle=style,
                  solid_capstyle="butt", **named)
    elif mark.kind == "marker":
        pair.plot(x, y, color=color, marker=mark.shape, markersize=9, linestyle="none",
                  markeredgecolor=COLORS["text"], **named)
    else:
        pair.text(*x, *y, text(mark.text, view), color=color, fontsize=mark.size, ha=mark.align, va="center",
                  **named).set_in_layout(False)


def _head(x, y):
    """The head of an arrow along an axis: matplotlib's caret with its tip at the end of the line."""
    if abs(y[1] - y[0]) > abs(x[1] - x[0]):
        return markers.CARETUP if y[1] > y[0] else markers.CARETDOWN
    return markers.CARETRIGHT if x[1] > x[0] else markers.CARETLEFT


def clamp(value, limits, log):
    """`value` held to the axis limits, a little beyond, so that nothing leaves the figure."""
    lo, hi = min(limits), max(limits)
    if log:
        ratio = (hi / lo) ** EDGE
        return np.clip(value, lo / ratio, hi * ratio)
    edge = EDGE * (hi - lo)
    return np.clip(value, lo - edge, hi + edge)


def transforms(figure, canvas):
    """For each pair of axes [ax, bx, ay, by]: x_svg = ax + bx * f(x), f the identity or log10; y likewise."""
    height = canvas.get_figheight() * 72
    found = []
    for axes, pair in zip(figure.axes, canvas.axes):
        (x0, y0), (x1, y1) = pair.transData.transform(list(zip(axes.xlim, axes.ylim)))
        found.append(_line(axes.xlim, axes.xlog, x0, x1) + _line(axes.ylim, axes.ylog, height - y0, height - y1))
    return found


def _line(limits, log, pixel0, pixel1):
    lo, hi = map(math.log10, limits) if log else limits
    slope = (pixel1 - pixel0) / (hi - lo)
    return [float(pixel0 - slope * lo), float(slope)]


def svg(figure, values=None):
    """(SVG text, transforms) of the figure: ids of its own, colours as variables, no fixed size, no font list."""
    canvas, buffer = draw(figure, values, readouts=False), io.StringIO()
    with matplotlib.rc_context(STYLE):
        canvas.savefig(buffer, format="svg", transparent=True,
                       metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    label = escape(figure.title).replace("\\", r"\\")
    opening = rf'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="\1" role="img" aria-label="{label}">'
    found = buffer.getvalue()
    found = found[found.index("<svg") :]
    found = re.sub(r"<!--.*?-->\s*|<metadata>.*?</metadata>\s*", "", found, flags=re.S)
    found = re.sub(r'(\sid="|url\(#|href="#)(?!' + re.escape(figure.name) + "-)", rf"\1{figure.name}-", found)
    found = re.sub(r'<svg [^>]*viewBox="([^"]*)"[^>]*>', opening, found, count=1)
    found = re.sub(r"font-family: [^;\"]*;? ?", "", found)
    found = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", found)
    for name, color in COLORS.items():
        found = found.replace(color, "currentColor" if name == "text" else f"var(--tp-{name}, {color})")
    for mark in figure.marks:
        if getattr(mark, "title", ""):
            opened = f'<g id="{figure.name}-{mark.name}">'
            found = found.replace(opened, f"{opened}<title>{escape(mark.title)}</title>")
    found = found.replace("<g ", '<g aria-hidden="true" ', 1)  # the picture has a name, its numbers stand in the table
    return re.sub(r">\s+<", "><", found), transforms(figure, canvas)
