"""The few functions a formula may call: one for numbers, arrays, recording symbols and SymPy alike."""

import math
import sys

from .tree import Node, as_node


def kind_of(values):
    """Which of number, array, node or sympy serves these values."""
    kind = "number"
    for value in values:
        if type(value) is float or type(value) is int:
            continue
        if isinstance(value, Node):
            return "node"
        if hasattr(value, "free_symbols"):
            kind = "sympy"
        elif kind == "number" and getattr(value, "shape", ()) != ():
            kind = "array"
    return kind


def _apply(name, values, number, sympy):
    """One function by its kind of values: `number`, NumPy's of the same name, a Node, or `sympy`."""
    kind = kind_of(values)
    if kind == "number":
        return number(*values)
    if kind == "node":
        return Node("op", name, tuple(map(as_node, values)))
    if kind == "array":
        return getattr(sys.modules["numpy"], name)(*values)
    return sympy(sys.modules["sympy"], *values)


def maximum(a, b):
    """The larger of two.
    >>> maximum(1.0, 2.0)
    2.0
    """
    return _apply("maximum", (a, b), lambda a, b: a if a >= b else b, lambda sp, a, b: sp.Max(a, b))


def minimum(a, b):
    """The smaller of two.
    >>> minimum(1.0, 2.0)
    1.0
    """
    return _apply("minimum", (a, b), lambda a, b: a if a <= b else b, lambda sp, a, b: sp.Min(a, b))


def floor(a):
    """The largest whole number not above `a`, as a float.
    >>> floor(2.5)
    2.0
    """
    return _apply("floor", (a,), lambda a: float(math.floor(a)) if math.isfinite(a) else a, lambda sp, a: sp.floor(a))


def ceil(a):
    """The smallest whole number not below `a`, as a float.
    >>> ceil(2.5)
    3.0
    """
    return _apply("ceil", (a,), lambda a: float(math.ceil(a)) if math.isfinite(a) else a, lambda sp, a: sp.ceiling(a))


def where(condition, a, b):
    """`a` where `condition` (a comparison) holds, else `b`. Both are evaluated: guard a denominator inside.
    >>> where(2 > 1, 10.0, 20.0)
    10.0
    """
    number = lambda condition, a, b: a if condition else b
    return _apply("where", (condition, a, b), number, lambda sp, c, a, b: sp.Piecewise((a, c), (b, True)))


def power(a, n):
    """`a` multiplied with itself `n` times, n a whole number >= 0: the same product, in the same order, everywhere.
    >>> power(0.5, 3)
    0.125
    """
    if kind_of((a, n)) == "array":
        np = sys.modules["numpy"]
        found = np.ones(np.broadcast_shapes(np.shape(a), np.shape(n)))
        for step in range(int(np.max(n))):
            found = np.where(step < n, found * a, found)
        return found
    return _apply("power", (a, n), lambda a, n: math.prod([a] * int(n), start=1.0), lambda sp, a, n: a**n)
