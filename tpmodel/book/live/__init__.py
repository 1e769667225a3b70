"""A figure declared once: drawn by matplotlib, live in the built page, live in a kernel."""

from .controls import Choice, Slider, slider, steps
from .figure import Figure
from .marks import Axes, Box, Curve, Label, Line, Marker, Table, bar, holding, place, quantity, rows, stack, template

__all__ = ["Axes", "Box", "Choice", "Curve", "Figure", "Label", "Line", "Marker", "Slider", "Table",
           "bar", "holding", "place", "quantity", "rows", "slider", "stack", "steps", "template"]
