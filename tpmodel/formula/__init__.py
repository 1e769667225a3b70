"""`@formula` records one plain function; a `View` finds a quantity by its name."""

from .recorded import REGISTRY, Formula, Solution, formula, solve, symbol
from .view import View

__all__ = ["REGISTRY", "Formula", "Solution", "View", "formula", "solve", "symbol"]
