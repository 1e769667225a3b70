"""A recorded tree as LaTeX for the book and as JavaScript for the page, in the order it was written."""

from collections import Counter
from functools import cache

from .tree import Node
from .vocabulary import NAMES

PRECEDENCE = {"<": 1, "<=": 1, ">": 1, ">=": 1, "+": 2, "-": 2, "*": 3, "/": 3, "neg": 4}
ATOM = 9


def _grade(node):
    if node.kind == "number" and node.value < 0:
        return PRECEDENCE["neg"]
    return PRECEDENCE.get(node.kind, ATOM)


# --- LaTeX ---------------------------------------------------------------------------------------

BINARY_PREFIXES = {2**30: r"\mathrm{GiB}", 2**20: r"\mathrm{MiB}", 2**10: r"\mathrm{KiB}"}
LATEX = {  # what sets its operands apart without brackets
    "<": r"{} \lt {}", "<=": r"{} \le {}", ">": r"{} \gt {}", ">=": r"{} \ge {}", "/": r"\frac{{{}}}{{{}}}",
    "maximum": r"\max\left({}, {}\right)", "minimum": r"\min\left({}, {}\right)",
    "floor": r"\left\lfloor {} \right\rfloor", "ceil": r"\left\lceil {} \right\rceil",
    "where": r"\begin{{cases}} {1} & {0} \\ {2} & \text{{otherwise}} \end{{cases}}",
}


def latex_number(value):
    """A number for a formula.
    >>> latex_number(2), latex_number(0.5), latex_number(1e-6), latex_number(2.0**30), latex_number(5e9)
    ('2', '0.5', '10^{-6}', '\\\\mathrm{GiB}', '5 \\\\cdot 10^{9}')
    """
    if value in BINARY_PREFIXES:
        return BINARY_PREFIXES[value]
    if value and not 1e-3 <= abs(value) < 1e6:
        digits, exponent = f"{value:e}".split("e")
        digits = digits.rstrip("0").rstrip(".")
        power = f"10^{{{int(exponent)}}}"
        return {"1": power, "-1": "-" + power}.get(digits, rf"{digits} \cdot {power}")
    return f"{value:g}"


def unguarded(node):
    """(A tree as mathematics writes it, {condition as LaTeX: None}): without what keeps a program from a bad value.

    A choice whose other end is 0 is its first end, under that condition; max(2, N) is N where N is at least 2.
    """
    found = [unguarded(arg) for arg in node.args]
    args, held = tuple(arg for arg, _ in found), {words: None for _, more in found for words in more}
    if node.value == "where" and (args[2].kind, args[2].value) == ("number", 0):
        return args[1], {latex(args[0]): None} | held
    if node.value == "maximum" and {arg.kind for arg in args} == {"number", "name"}:
        least, name = sorted(args, key=lambda arg: arg.kind == "name")
        sign = rf"\ge {latex(least)}" if least.value >= 1 else r"\gt 0"
        return name, held | {f"{latex(name)} {sign}": None}
    return Node(node.kind, node.value, args), held


def latex(node):
    """`node` as LaTeX; a called formula prints as its symbol, with the arguments that differ from its own names."""
    kind, args = node.kind, node.args
    word = node.value if kind == "op" else kind
    if word in LATEX:
        return LATEX[word].format(*map(latex, args))
    if kind == "number":
        return latex_number(node.value)
    if kind == "name":
        return NAMES[node.value].symbol
    if kind == "call":
        return _latex_call(node)
    if kind == "neg":
        return "-" + _latex_inside(args[0], PRECEDENCE["neg"])
    if word == "power":
        return f"{_latex_inside(args[0], ATOM)}^{{{latex(args[1])}}}"
    left = _latex_inside(args[0], PRECEDENCE[kind])
    right = _latex_inside(args[1], PRECEDENCE[kind] + (kind == "-"))
    sign = kind if kind != "*" else r"\cdot" if _digits_first(args[1]) else r"\,"
    return f"{left} {sign} {right}"


def _digits_first(node):
    """Whether the LaTeX of `node` starts with a digit, which must not stand bare behind a factor."""
    return node.kind == "number" or node.kind == "*" and _digits_first(node.args[0])


def _latex_inside(node, level):
    grade = ATOM if node.kind == "/" else _grade(node)
    return rf"\left({latex(node)}\right)" if grade < level else latex(node)


def _latex_call(node):
    other = [f"{NAMES[name].symbol} = {latex(arg)}" for name, arg in zip(node.value.parameters, node.args)
             if (arg.kind, arg.value) != ("name", name)]
    return NAMES[node.value.__name__].symbol + (r"\left(" + r",\; ".join(other) + r"\right)" if other else "")


# --- JavaScript ----------------------------------------------------------------------------------

JAVASCRIPT = {
    "maximum": "Math.max({}, {})", "minimum": "Math.min({}, {})", "floor": "Math.floor({})", "ceil": "Math.ceil({})",
    "power": "F.power({}, {})", "where": "({} ? {} : {})",
}
POWER = "power: (a, n) => { let p = 1; for (let i = 0; i < n; i += 1) p *= a; return p; }"


def javascript_library(formulas):
    """The object `F` of the page: each formula, and those it calls, as a function."""
    return "{\n" + ",\n".join([POWER, *(f"{f.__name__}: {f.javascript()}" for f in formulas)]) + "\n}"


def javascript_function(parameters, nodes, prefix="", single=False):
    """An arrow function of `parameters` that returns the values of `nodes` (an array, or the one value).

    `prefix` goes before every name ("v." where the page keeps its values in one object). What the
    formula uses twice is computed once.
    """
    known = {}
    lines = _constants(_shared(nodes), prefix, known)
    results = [javascript_expression(node, prefix, known) for node in nodes]
    result = results[0] if single else f"[{', '.join(results)}]"
    head = f"({', '.join(parameters)}) =>"
    return f"{head} {{ {' '.join(lines)} return {result}; }}" if lines else f"{head} {result}"


def javascript_curve(over, nodes):
    """An arrow function of the view that returns one of `over`: what does not depend on that is computed only once."""
    nodes, reads = interned(nodes), _holds("name", over)
    fixed, known = {}, {}

    def go(node):
        if node.kind == "name" and reads(node):
            known[node] = over
        elif reads(node):
            for arg in node.args:
                go(arg)
        elif node.args:
            fixed[node] = True

    for node in nodes:
        go(node)
    lines = _constants(_shared(fixed, fixed), "v.", known)
    inner = _constants(filter(reads, _shared(nodes)), "v.", known)
    result = ", ".join(javascript_expression(node, "v.", known) for node in nodes)
    return f"v => {{ {' '.join(lines)} return {over} => {{ {' '.join(inner)} return [{result}]; }}; }}"


def _constants(nodes, prefix, known):
    """One line for each of `nodes`, operands first; from then on they are known by their short names."""
    lines = []
    for node in nodes:
        name = f"${len(known)}"
        lines.append(f"const {name} = {javascript_expression(node, prefix, known)};")
        known[node] = name
    return lines


def interned(nodes):
    """The same trees with equal parts made one object, so that each is computed once."""
    table = {}

    @cache
    def go(node):
        args = tuple(map(go, node.args))
        key = node.kind, type(node.value), node.value, tuple(map(id, args))
        return table.setdefault(key, Node(node.kind, node.value, args))

    return list(map(go, nodes))


def _holds(kind, value=None):
    """A test: is a node, or one below it, of this kind (and value)?"""
    @cache
    def test(node):
        return node.kind == kind and value in (None, node.value) or any(map(test, node.args))

    return test


def _shared(nodes, also=()):
    """Nodes used more than once, or in `also`, operands first."""
    uses, order = Counter(), []

    def go(node):
        uses[node] += 1
        if uses[node] == 1:
            for arg in node.args:
                go(arg)
            order.append(node)

    for node in nodes:
        go(node)
    return [node for node in order if node.args and (uses[node] > 1 or node in also)]


def javascript_expression(node, prefix="", known=()):
    """One value as a JavaScript expression; a node that is `known` by a name stands as that."""
    if node in known:
        return known[node]
    kind, args = node.kind, node.args
    texts = [javascript_expression(arg, prefix, known) for arg in args]
    if kind == "number":
        return repr(node.value)
    if kind == "name":
        return prefix + node.value
    if kind == "call":
        return f"F.{node.value.__name__}({', '.join(texts)})"
    if kind == "op":
        return JAVASCRIPT[node.value].format(*texts)
    level = PRECEDENCE[kind]
    least = (level, level + 1)[-len(args):]  # as a + (b + c): the last operand must bind closer
    inside = [f"({text})" if arg not in known and _grade(arg) < grade else text
              for text, arg, grade in zip(texts, args, least)]
    return f"-{inside[0]}" if kind == "neg" else f"{inside[0]} {kind} {inside[1]}"
