"""`@formula`: one plain function that is arithmetic, LaTeX, JavaScript and algebra."""

import functools
import re
import sys

from . import printers
from .ops import kind_of
from .tree import Node, as_node, names, substitute, walk
from .vocabulary import NAMES, accepted, allows_zero, assumptions, check, term

REGISTRY = {}  # every formula by name, in the order of definition


class Formula:
    """A recorded formula. Call it with numbers, NumPy arrays, SymPy expressions, or recording symbols."""

    def __init__(self, function):
        """Record `function` and check its names against the vocabulary."""
        code = function.__code__
        name, self.parameters = function.__name__, code.co_varnames[: code.co_argcount]
        if function.__defaults__ or code.co_kwonlyargcount or code.co_flags & 0x0C:
            raise TypeError(f"formula {name}: parameters take no defaults, no * and no **: every value is given")
        for word in (name, *self.parameters):
            term(word)
        if REGISTRY.get(name) and REGISTRY[name].__module__ != function.__module__:
            raise NameError(f"formula {name} exists already in {REGISTRY[name].__module__}")
        functools.update_wrapper(self, function)
        self.tree = as_node(function(*(Node("name", parameter) for parameter in self.parameters)))
        unused = set(self.parameters) - names(self.tree)
        if unused:
            raise TypeError(f"formula {name} does not use {', '.join(sorted(unused))}")
        for word in (word for node in walk(self.tree) if node.kind == "/" for word in _factors(node.args[1])):
            if allows_zero(word):
                raise TypeError(f"formula {name} divides by {word}, whose domain holds 0: narrow the domain")
        self.__doc__ = self._documented(function.__doc__)
        REGISTRY[name] = self

    def __call__(self, *args, **kwargs):
        given = self._bind(args, kwargs)
        kind = kind_of(given)
        if kind == "node":
            return Node("call", self, tuple(map(as_node, given)))
        if kind == "sympy":
            return self.__wrapped__(*given)
        values = [check(name, value) for name, value in zip(self.parameters, given)]
        if kind == "array":
            self._refuse_shapes(values)
        return self.__wrapped__(*values)

    def _documented(self, said):
        """The docstring with the equation, a line for each parameter and space before the example put in."""
        if not said:
            return said
        first, _, rest = said.partition("\n")
        lines = [first, "", f"    $${self.latex()}$$", "", *map(_parameter, self.parameters)]
        if "returns :" not in rest:
            lines.append(_parameter(self.__name__, "returns"))
        return "\n".join([*lines, re.sub(r"\n+(?= *>>>)", r"\n\n", rest.removeprefix("\n"), count=1)])

    def _bind(self, args, kwargs):
        """The values in the order of the parameters."""
        parameters = self.parameters
        if not kwargs and len(args) == len(parameters):
            return args
        takes, free = ", ".join(parameters), parameters[len(args) :]
        if len(args) > len(parameters):
            raise TypeError(f"{self.__name__} takes {len(parameters)} values ({takes}), got {len(args)}")
        wrong = [name for name in kwargs if name not in free]
        if wrong:
            raise TypeError(f"{self.__name__} has no free parameter {', '.join(wrong)}; it takes {takes}")
        missing = [name for name in free if name not in kwargs]
        if missing:
            raise TypeError(f"{self.__name__} needs {', '.join(missing)}")
        return args + tuple(kwargs[name] for name in free)

    def _refuse_shapes(self, values):
        np = sys.modules["numpy"]
        try:
            np.broadcast_shapes(*map(np.shape, values))
        except ValueError:
            shapes = ", ".join(f"{n} {v.shape}" for n, v in zip(self.parameters, values) if np.shape(v))
            raise ValueError(f"{self.__name__}: shapes do not fit together: {shapes}") from None

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"{self.__name__}({', '.join(self.parameters)})"

    def latex(self, levels=1):
        """`symbol = body` and when it holds, one level of calls, or written out in full with levels="all"."""
        body, held = printers.unguarded(self.tree if levels == 1 else substitute(self.tree, {}))
        return r" \quad ".join([f"{NAMES[self.__name__].symbol} = {printers.latex(body)}", *(f"({it})" for it in held)])

    def _repr_latex_(self):
        return f"$\\displaystyle {self.latex()}$"

    def javascript(self):
        """The formula as a JavaScript arrow function; a called formula is `F.name(...)`."""
        return printers.javascript_function(self.parameters, [self.tree], single=True)

    def expr(self, **given):
        """The formula as a SymPy expression; `given` replaces parameters, the rest are symbols of their own name.
        >>> from tpmodel.formulas.collectives import allreduce_wire_bytes
        >>> allreduce_wire_bytes.expr(ranks=4)
        3*message_bytes/2
        """
        import sympy
        known = {name: sympy.sympify(value) for name, value in given.items()}
        return self.__wrapped__(*(known[name] if name in known else symbol(name) for name in self.parameters))


formula = Formula  # as a decorator


def _parameter(name, word=None):
    """A name with symbol, unit, meaning and domain, as one line of a docstring."""
    here = term(name)
    unit = f" [{here.unit}]" if here.unit else ""
    return f"    {word or name} : ${here.symbol}$, {here.meaning}{unit}" + ("" if word else f"; {accepted(name)}")


def symbol(name):
    """The SymPy symbol of a vocabulary name: prints as its LaTeX, assumes its domain."""
    import sympy
    return sympy.Symbol(name, **assumptions(name))


def solve(expression, name):
    """The one solution of expression = 0 for a vocabulary name, by SymPy.
    >>> from tpmodel.formulas.memory import kv_cache_bytes
    >>> solve(kv_cache_bytes.expr() - symbol("kv_pool_bytes"), "context_tokens")
    kv_pool_bytes/kv_bytes_per_token
    """
    import sympy
    found = sympy.solve(expression, symbol(name), dict=False)
    if len(found) != 1:
        raise ValueError(f"{len(found)} solutions for {name}: {found}")
    return found[0]


class Solution:
    """A SymPy expression for a vocabulary name: prints as `symbol = expression`, its text names what stands in it."""

    def __init__(self, expression, name):
        self.expression, self.name = expression, name

    def __repr__(self):
        return f"{self.name}({', '.join(sorted(free.name for free in self.expression.free_symbols))})"

    def _repr_latex_(self):
        import sympy
        names = {free: NAMES[free.name].symbol for free in self.expression.free_symbols}
        return f"$\\displaystyle {NAMES[self.name].symbol} = {sympy.latex(self.expression, symbol_names=names)}$"


def _factors(node):
    """The names that make a denominator zero."""
    if node.kind == "name":
        return [node.value]
    return [word for arg in node.args for word in _factors(arg)] if node.kind in ("*", "/", "neg") else []
