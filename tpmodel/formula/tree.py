"""Recording symbols: arithmetic on a `Node` builds the tree of what was written.

A formula is called once with Nodes. What the recorder cannot keep (an `if`, `//`, `max()`, `math.*`,
`==`, ...) raises at once and names the replacement, so that a formula fails when it is imported.
"""

PLAIN = (int, float)


class Node:
    """One node of a recorded tree. `kind` is number, name, bound, call, or an operator; `args` its operands."""

    __slots__ = ("kind", "value", "args")

    def __init__(self, kind, value=None, args=()):
        self.kind, self.value, self.args = kind, value, args

    def __repr__(self):
        inside = ", ".join(map(repr, self.args))
        shown = getattr(self.value, "__name__", self.value)
        return f"{self.kind}({shown}{', ' if inside and shown is not None else ''}{inside})".replace("(None", "(")

    def __add__(self, other):
        return _binary("+", self, other)

    def __radd__(self, other):
        return _binary("+", other, self)

    def __sub__(self, other):
        return _binary("-", self, other)

    def __rsub__(self, other):
        return _binary("-", other, self)

    def __mul__(self, other):
        return _binary("*", self, other)

    def __rmul__(self, other):
        return _binary("*", other, self)

    def __truediv__(self, other):
        return _binary("/", self, other)

    def __rtruediv__(self, other):
        return _binary("/", other, self)

    def __neg__(self):
        return Node("neg", None, (self,))

    def __pos__(self):
        return self

    def __lt__(self, other):
        return _binary("<", self, other)

    def __le__(self, other):
        return _binary("<=", self, other)

    def __gt__(self, other):
        return _binary(">", self, other)

    def __ge__(self, other):
        return _binary(">=", self, other)

    __hash__ = object.__hash__


def _binary(kind, left, right):
    return Node(kind, None, (as_node(left), as_node(right)))


def as_node(value):
    """`value` as a Node: Nodes pass, plain numbers become number nodes, all else is refused."""
    if isinstance(value, Node):
        return value
    if isinstance(value, bool) or type(value) not in PLAIN:
        raise TypeError(f"a formula holds only plain numbers and its parameters, not {value!r}")
    return Node("number", value)


def _refused(what, instead):
    def raiser(self, *_, **__):
        raise TypeError(f"{what} cannot be recorded in a formula: {instead}")

    return raiser


for _method, _what, _instead in [
    ("__bool__", "a condition as true or false (if, and, or, not, max(), min(), a < b < c)", "use ops.where, ops.maximum, ops.minimum"),
    ("__floordiv__", "//", "use ops.floor(a / b)"),
    ("__rfloordiv__", "//", "use ops.floor(a / b)"),
    ("__mod__", "%", "use a - ops.floor(a / b) * b"),
    ("__rmod__", "%", "use a - ops.floor(a / b) * b"),
    ("__pow__", "**", "write the product out, a * a"),
    ("__rpow__", "**", "write the number out"),
    ("__abs__", "abs()", "use ops.maximum(a, -a)"),
    ("__round__", "round()", "use ops.floor(a + 0.5)"),
    ("__int__", "int()", "use ops.floor"),
    ("__index__", "an index or range()", "use ops.best for a search over whole numbers"),
    ("__float__", "float() or a function of math", "use + - * / and ops"),
    ("__complex__", "complex()", "use + - * / and ops"),
    ("__trunc__", "math.trunc()", "use ops.floor"),
    ("__floor__", "math.floor()", "use ops.floor"),
    ("__ceil__", "math.ceil()", "use ops.ceil"),
    ("__eq__", "==", "compare with <=, or use ops.where"),
    ("__ne__", "!=", "compare with <=, or use ops.where"),
    ("__and__", "&", "nest two ops.where"),
    ("__rand__", "&", "nest two ops.where"),
    ("__or__", "|", "nest two ops.where"),
    ("__ror__", "|", "nest two ops.where"),
    ("__xor__", "^", "nest two ops.where"),
    ("__invert__", "~", "turn the comparison round"),
    ("__lshift__", "<<", "multiply"),
    ("__rshift__", ">>", "divide and use ops.floor"),
    ("__matmul__", "@", "use +, *"),
    ("__divmod__", "divmod()", "use ops.floor(a / b)"),
    ("__iter__", "a loop over a parameter", "parameters are numbers; use ops.best"),
    ("__len__", "len()", "parameters are numbers"),
    ("__getitem__", "indexing", "parameters are numbers"),
    ("__contains__", "in", "compare with <="),
    ("__array__", "a function of NumPy", "use + - * / and ops"),
    ("__array_ufunc__", "a function of NumPy", "use + - * / and ops"),
]:
    setattr(Node, _method, _refused(_what, _instead))


def walk(node):
    """Every node below and including `node`, each object once."""
    seen, stack = set(), [node]
    while stack:
        here = stack.pop()
        if id(here) not in seen:
            seen.add(id(here))
            yield here
            stack.extend(here.args)


def names(node):
    """The parameter names that `node` reads."""
    return {here.value for here in walk(node) if here.kind == "name"}


def calls(node):
    """The formulas that `node` calls, also those called by them, callees first."""
    found = {}
    for here in walk(node):
        if here.kind == "call":
            for inner in calls(here.value.tree):
                found.setdefault(inner.__name__, inner)
            found.setdefault(here.value.__name__, here.value)
    return list(found.values())


def substitute(node, values):
    """`node` with names replaced by the Nodes of `values` and every call written out."""
    done = {}

    def go(here):
        if id(here) not in done:
            if here.kind == "name" and here.value in values:
                result = values[here.value]
            elif here.kind == "call":
                given = [go(arg) for arg in here.args]
                result = substitute(here.value.tree, dict(zip(here.value.parameters, given)))
            else:
                result = Node(here.kind, here.value, tuple(go(arg) for arg in here.args)) if here.args else here
            done[id(here)] = result
        return done[id(here)]

    return go(node)
