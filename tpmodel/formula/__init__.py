"""`@formula` records one plain function; a `View` finds a quantity by its name."""

from .recorded import REGISTRY, Formula, formula, solution_latex, solve, symbol
from .view import View

__all__ = ["REGISTRY", "Formula", "View", "formula", "solution_latex", "solve", "symbol"]
