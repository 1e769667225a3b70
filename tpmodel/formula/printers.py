"""A recorded tree as LaTeX for the book and as JavaScript for the page, in the order it was written."""

from .tree import Node, substitute
from .vocabulary import NAMES

PRECEDENCE = {"<": 1, "<=": 1, ">": 1, ">=": 1, "+": 2, "-": 2, "*": 3, "/": 3, "neg": 4}
ATOM = 9


def _grade(node):
    if node.kind == "number" and node.value < 0:
        return PRECEDENCE["neg"]
    return PRECEDENCE.get(node.kind, ATOM)


# --- LaTeX ---------------------------------------------------------------------------------------

RELATIONS = {"<": r"\lt", "<=": r"\le", ">": r"\gt", ">=": r"\ge"}
BINARY_PREFIXES = {2**30: r"\mathrm{GiB}", 2**20: r"\mathrm{MiB}", 2**10: r"\mathrm{KiB}"}


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
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"


def latex(node):
    """`node` as LaTeX; a called formula prints as its symbol, with the arguments that differ from its own names."""
    kind, args = node.kind, node.args
    if kind == "number":
        return latex_number(node.value)
    if kind == "name":
        return NAMES[node.value].symbol
    if kind == "bound":
        return node.value[0]
    if kind == "call":
        return _latex_call(node)
    if kind == "op":
        return _latex_op(node.value, args)
    if kind == "best":
        lo, hi, cost = map(latex, args)
        return rf"\operatorname*{{arg\,min}}_{{{lo} \le {latex(node.value)} \le {hi}}} {cost}"
    if kind == "neg":
        return "-" + _latex_inside(args[0], PRECEDENCE["neg"])
    if kind == "/":
        return rf"\frac{{{latex(args[0])}}}{{{latex(args[1])}}}"
    if kind in RELATIONS:
        return f"{latex(args[0])} {RELATIONS[kind]} {latex(args[1])}"
    left = _latex_inside(args[0], PRECEDENCE[kind])
    right = _latex_inside(args[1], PRECEDENCE[kind] + (kind == "-"))
    if kind == "*":
        return rf"{left} \cdot {right}" if _digits_first(args[1]) else rf"{left} \, {right}"
    return f"{left} {kind} {right}"


def _digits_first(node):
    """Whether the LaTeX of `node` starts with a digit, which must not stand bare behind a factor."""
    return node.kind == "number" or node.kind == "*" and _digits_first(node.args[0])


def _latex_inside(node, level):
    grade = ATOM if node.kind == "/" else _grade(node)
    return rf"\left({latex(node)}\right)" if grade < level else latex(node)


def _latex_call(node):
    formula = node.value
    symbol = NAMES[formula.__name__].symbol
    other = [
        f"{NAMES[name].symbol} = {latex(arg)}"
        for name, arg in zip(formula.parameters, node.args)
        if not (arg.kind == "name" and arg.value == name)
    ]
    return symbol + (r"\left(" + r",\; ".join(other) + r"\right)" if other else "")


def _latex_op(name, args):
    inner = [latex(arg) for arg in args]
    if name == "where":
        condition, yes, no = inner
        return rf"\begin{{cases}} {yes} & {condition} \\ {no} & \text{{otherwise}} \end{{cases}}"
    if name == "power":
        return rf"{_latex_inside(args[0], ATOM)}^{{{inner[1]}}}"
    if name in ("floor", "ceil"):
        return rf"\left\l{name} {inner[0]} \right\r{name}"
    return rf"\{name[:3]}\left({', '.join(inner)}\right)"


def equation(formula, levels=1):
    """`symbol = body` of a formula: one level, or with every called formula written out (levels="all")."""
    body = formula.tree if levels == 1 else substitute(formula.tree, {})
    return f"{NAMES[formula.__name__].symbol} = {latex(body)}"


JS_OPS = {"maximum": "Math.max", "minimum": "Math.min", "floor": "Math.floor", "ceil": "Math.ceil", "power": "F.power"}


def javascript_function(parameters, nodes, prefix="", single=False):
    """An arrow function of `parameters` that returns the values of `nodes` (an array, or the one value).

    `prefix` goes before every name ("v." where the page keeps its values in one object). What the
    formula uses twice is computed once.
    """
    known = {}
    lines = _constants(_shared(nodes), prefix, known)
    results = [_js(node, prefix, known) for node in nodes]
    result = results[0] if single else f"[{', '.join(results)}]"
    head = f"({', '.join(parameters)}) =>"
    return f"{head} {{ {' '.join(lines)} return {result}; }}" if lines else f"{head} {result}"


def javascript_curve(over, nodes):
    """An arrow function of the view that returns one of `over`: what does not depend on `over` is computed once for all samples."""
    nodes, reads = interned(nodes), _memo(lambda node: node.kind == "name" and node.value == over)
    bound, fixed, known = _memo(_is_bound), {}, {}

    def go(node):
        if reads(node) or bound(node):
            for arg in node.args:
                go(arg)
        elif node.args:
            fixed[id(node)] = node
        if node.kind == "name" and reads(node):
            known[id(node)] = over

    for node in nodes:
        go(node)
    lines = _constants(_shared(list(fixed.values()), fixed), "v.", known)
    inner = _constants([node for node in _shared(nodes) if reads(node)], "v.", known)
    result = f"[{', '.join(_js(node, 'v.', known) for node in nodes)}]"
    return f"v => {{ {' '.join(lines)} return {over} => {{ {' '.join(inner)} return {result}; }}; }}"


def _constants(nodes, prefix, known):
    """One line for each of `nodes`, operands first; from then on they are known by their short names."""
    lines = []
    for node in nodes:
        text = _js(node, prefix, known)
        known[id(node)] = f"${len(known)}"
        lines.append(f"const {known[id(node)]} = {text};")
    return lines


def interned(nodes):
    """The same trees with equal parts made one object, so that each is computed once."""
    table, done = {}, {}

    def go(node):
        if id(node) not in done:
            args = tuple(map(go, node.args))
            key = node.kind, type(node.value), node.value, tuple(map(id, args))
            done[id(node)] = table.setdefault(key, Node(node.kind, node.value, args))
        return done[id(node)]

    return [go(node) for node in nodes]


def _memo(test):
    """Whether a node or one below it passes `test`, each asked once."""
    found = {}

    def go(node):
        if id(node) not in found:
            found[id(node)] = test(node) or any(map(go, node.args))
        return found[id(node)]

    return go


def _is_bound(node):
    return node.kind == "bound"


def _shared(nodes, also=()):
    """Nodes used more than once, or whose ids are in `also`, that do not depend on a search's variable, operands first."""
    uses, order, bound = {}, [], _memo(_is_bound)

    def go(node):
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1:
            for arg in node.args:
                go(arg)
            order.append(node)

    for node in nodes:
        go(node)
    return [node for node in order if node.args and (uses[id(node)] > 1 or id(node) in also) and not bound(node)]


def _js(node, prefix, known):
    if id(node) in known:
        return known[id(node)]
    kind, args = node.kind, node.args

    def inside(arg, level):
        text = _js(arg, prefix, known)
        return f"({text})" if id(arg) not in known and _grade(arg) < level else text

    if kind == "number":
        return str(node.value) if type(node.value) is int else repr(node.value)
    if kind == "name":
        return prefix + node.value
    if kind == "bound":
        return node.value
    if kind == "call":
        return f"F.{node.value.__name__}({', '.join(_js(arg, prefix, known) for arg in args)})"
    if kind == "op" and node.value == "where":
        condition, yes, no = (_js(arg, prefix, known) for arg in args)
        return f"({condition} ? {yes} : {no})"
    if kind == "op":
        return f"{JS_OPS[node.value]}({', '.join(_js(arg, prefix, known) for arg in args)})"
    if kind == "best":
        lo, hi, cost = (_js(arg, prefix, known) for arg in args)
        return f"F.best({lo}, {hi}, {node.value.value} => {cost})"
    if kind == "neg":
        return f"-{inside(args[0], PRECEDENCE['neg'] + 1)}"
    level = PRECEDENCE[kind]
    return f"{inside(args[0], level)} {kind} {inside(args[1], level + 1)}"


BEST_JS = (
    "(lo, hi, cost) => { let w = lo, s = cost(lo); "
    "for (let i = lo + 1; i <= hi; i += 1) { const c = cost(i); if (c < s) { w = i; s = c; } } return w; }"
)


POWER_JS = "(a, n) => { let p = 1; for (let i = 0; i < n; i += 1) p *= a; return p; }"


def javascript_library(formulas):
    """The object `F` of the page: each formula, and those it calls, as a function."""
    entries = [f"best: {BEST_JS}", f"power: {POWER_JS}"]
    entries += [f"{f.__name__}: {javascript_function(f.parameters, [f.tree], single=True)}" for f in formulas]
    return "{\n" + ",\n".join(entries) + "\n}"


def javascript_expression(node, prefix=""):
    """One value as a JavaScript expression."""
    return _js(node, prefix, {})
