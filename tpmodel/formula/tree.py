"""Recording symbols: arithmetic on a `Node` builds the tree of what was written.

A formula is called once with Nodes. What the recorder cannot keep (an `if`, `//`, `max()`, `math.*`,
`==`, ...) raises at once and names the replacement, so that a formula fails when it is imported.
"""

from functools import cache, partialmethod

RECORDED = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
REFUSED = {  # what to write instead: {a special method: how Python code calls it}
    "use ops.where, ops.maximum, ops.minimum": {
        "bool": "a condition as true or false (if, and, or, not, max(), min(), a < b < c)"},
    "use ops.floor(a / b)": {"floordiv": "//", "rfloordiv": "//", "divmod": "divmod()"},
    "use a - ops.floor(a / b) * b": {"mod": "%", "rmod": "%"},
    "write the product out, a * a": {"pow": "**"},
    "write the number out": {"rpow": "**"},
    "use ops.maximum(a, -a)": {"abs": "abs()"},
    "use ops.floor(a + 0.5)": {"round": "round()"},
    "use ops.floor": {"int": "int()", "trunc": "math.trunc()", "floor": "math.floor()"},
    "use ops.ceil": {"ceil": "math.ceil()"},
    "use ops.best for a search over whole numbers": {"index": "an index or range()"},
    "use + - * / and ops": {"float": "float() or a function of math", "complex": "complex()",
                            "array": "a function of NumPy", "array_ufunc": "a function of NumPy"},
    "compare with <=, or use ops.where": {"eq": "==", "ne": "!="},
    "compare with <=": {"contains": "in"},
    "nest two ops.where": {"and": "&", "rand": "&", "or": "|", "ror": "|", "xor": "^"},
    "turn the comparison round": {"invert": "~"},
    "multiply": {"lshift": "<<"},
    "divide and use ops.floor": {"rshift": ">>"},
    "use +, *": {"matmul": "@"},
    "parameters are numbers; use ops.best": {"iter": "a loop over a parameter"},
    "parameters are numbers": {"len": "len()", "getitem": "indexing"},
}


class Node:
    """One node of a recorded tree. `kind` is number, name, bound, call, or an operator; `args` its operands."""

    __slots__ = ("kind", "value", "args")

    def __init__(self, kind, value=None, args=()):
        self.kind, self.value, self.args = kind, value, args

    def __repr__(self):
        inside = ", ".join(map(repr, self.args))
        shown = getattr(self.value, "__name__", self.value)
        return f"{self.kind}({shown}{', ' if inside and shown is not None else ''}{inside})".replace("(None", "(")

    def __neg__(self):
        return Node("neg", None, (self,))

    def __pos__(self):
        return self


def as_node(value):
    """`value` as a Node: Nodes pass, plain numbers become number nodes, all else is refused."""
    if isinstance(value, Node):
        return value
    if type(value) not in (int, float):
        raise TypeError(f"a formula holds only plain numbers and its parameters, not {value!r}")
    return Node("number", value)


def _refuse(node, what, instead, *_, **__):
    raise TypeError(f"{what} cannot be recorded in a formula: {instead}")


for _kind, _method in RECORDED.items():
    setattr(Node, f"__{_method}__", lambda self, other, kind=_kind: Node(kind, None, (self, as_node(other))))
    if _kind in "+-*/":
        setattr(Node, f"__r{_method}__", lambda self, other, kind=_kind: Node(kind, None, (as_node(other), self)))
for _instead, _methods in REFUSED.items():
    for _method, _what in _methods.items():
        setattr(Node, f"__{_method}__", partialmethod(_refuse, _what, _instead))


def walk(node):
    """Every node below and including `node`, each object once."""
    seen, stack = set(), [node]
    while stack:
        here = stack.pop()
        if here not in seen:  # nodes are told apart as objects
            seen.add(here)
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
            found |= {form.__name__: form for form in (*calls(here.value.tree), here.value)}
    return list(found.values())


def substitute(node, values):
    """`node` with names replaced by the Nodes of `values` and every call written out."""
    @cache
    def go(here):
        args = tuple(map(go, here.args))
        if here.kind == "call":
            return substitute(here.value.tree, dict(zip(here.value.parameters, args)))
        if here.kind == "name":
            return values.get(here.value, here)
        return Node(here.kind, here.value, args) if args else here

    return go(node)
