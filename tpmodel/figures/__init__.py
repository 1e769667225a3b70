"""The figures of the book, each a `Figure` made by a function that takes nothing: `figures.decode_time()`."""

from .context import context_budget
from .decode import decode_time

ALL = (decode_time, context_budget)
CHAPTERS = {"decode-time": "decode", "context-budget": "context"}
"""Where each figure stands: its name -> the stem of its chapter."""
