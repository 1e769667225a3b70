"""The few functions a formula may call: one for numbers, arrays, recording symbols and SymPy alike."""

import math
import sys

from .tree import Node, as_node, walk


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


def best(lo, hi, cost):
    """The whole number i with lo <= i <= hi whose `cost(i)` is smallest; the first of equals; `lo` if none is there.
    >>> best(1.0, 9.0, lambda i: (i - 4.0) * (i - 4.0))
    4.0
    """
    kind = kind_of((lo, hi))
    if kind == "sympy":
        raise TypeError("ops.best has no SymPy form: test the closed form against it with numbers")
    if kind == "node":
        inside = [node for end in (lo, hi) if isinstance(end, Node) for node in walk(end)]
        i = Node("bound", f"i{sum(node.kind in ('bound', 'best') for node in inside)}")  # no search around it has it
        return Node("best", i, (as_node(lo), as_node(hi), as_node(cost(i))))
    if kind == "array" or kind_of((cost(lo),)) == "array":
        return _best_of_arrays(lo, hi, cost)
    return min([lo, *(lo + float(step) for step in range(1, int(hi - lo) + 1))], key=cost)


def _best_of_arrays(lo, hi, cost):
    np = sys.modules["numpy"]
    winner, smallest = lo + 0.0 * (lo + hi), cost(lo)
    for step in range(1, int(np.max(hi - lo)) + 1):
        i = lo + float(step)
        here = cost(np.minimum(i, hi))
        better = (i <= hi) & (here < smallest)
        winner, smallest = np.where(better, i, winner), np.where(better, here, smallest)
    return winner
