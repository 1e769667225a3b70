"""Calls of Python as JavaScript: arguments in the order of parameters, helpers, methods of texts and lists."""

import ast
import json

from . import python
from .names import parameters

FIXED = {"extended", "given", "derived", "sourced"}  # methods of a view that take names and values
METHODS = {"strip": "trim", "lower": "toLowerCase", "upper": "toUpperCase", "append": "push", "index": "indexOf",
           "replace": "replaceAll", "items": "items", "values": "values", "keys": "keys"}  # under another name, or safe
HELPERS = {"join", "split", "format", "get", "pop"}


class Calls:
    """How a Script writes calls."""

    def _call(self, node):
        known, callee = self.static(node.func)
        if known:
            return self._call_known(node, callee)
        if isinstance(node.func, ast.Attribute):
            return self._call_method(node)
        own = self.local(node.func.id)[1] if isinstance(node.func, ast.Name) else None
        name, pairs = self.expr(node.func), self._pairs(node)
        positional = list(map(self.expr, node.args))
        if isinstance(node.func, ast.Name) and node.func.id == "v":  # a view asked for a formula
            return f"v.$call({', '.join([*positional, self._table(pairs)])})"
        if not pairs:
            return f"{name}({', '.join(positional)})"
        if not isinstance(own, ast.arguments):
            raise self.wrong(node, f"a call of {name} by names")
        return self._by_names(node, name, *parameters(own))

    def _pairs(self, node):
        return [(word.arg, self.expr(word.value)) for word in node.keywords]

    def _table(self, pairs):
        return "$dict([%s])" % ", ".join(f"...$items({value})" if name is None else f"[{json.dumps(name)}, {value}]"
                                         for name, value in pairs)

    def _plain(self, pairs):
        words = (f"...$object({value})" if name is None else f"{name}: {value}" for name, value in pairs)
        return "{ %s }" % ", ".join(words)

    def _by_names(self, node, name, names, more):
        """A call with its arguments in the order of the parameters; what is left out is undefined."""
        positional, pairs = list(map(self.expr, node.args)), self._pairs(node)
        if any(word is None for word, _ in pairs) or any(isinstance(arg, ast.Starred) for arg in node.args) and pairs:
            table = self._table(pairs)
            name = f"(...$a) => {name}(...$a)" if name.startswith("new ") else name
            return f"$named({name}, {json.dumps(names)}, {json.dumps(more)}, [{', '.join(positional)}], {table})"
        free, extra = names[len(positional):], []
        found = dict(pairs)
        extra = [(word, value) for word, value in pairs if word not in free]
        if extra and not more:
            raise self.wrong(node, f"{name} without a parameter {extra[0][0]}")
        words = positional + [found.get(word, "undefined") for word in free]
        words += [self._table(extra)] if extra else []
        while words and words[-1] == "undefined":
            words.pop()
        return f"{name}({', '.join(words)})"

    def _call_known(self, node, callee):
        if callee in (any, all, next) and isinstance(node.args[0], ast.GeneratorExp):
            return self._short(callee.__name__, *node.args)
        if callee in (min, max) and len(node.args) == 2 and not node.keywords:
            if not any(isinstance(one, ast.Starred) for one in node.args):
                return f"${callee.__name__}2({', '.join(map(self.expr, node.args))})"
        name, names, more, options = self.refer.called(callee, node)
        if names is None:  # a helper of the page: options come first
            positional, pairs = list(map(self._whole, node.args)), self._pairs(node)
            if options == "object":
                return f"{name}({', '.join([*positional, self._plain(pairs)])})"
            if options == "table":
                return f"{name}({', '.join([*positional, self._table(pairs)])})"
            if options == "options":
                words = ", ".join(f"{word}: {value}" for word, value in pairs)
                return f"{name}({', '.join(['{' + words + '}', *positional])})"
            return f"{name}({', '.join(positional)})"
        return self._by_names(node, name, names, more)

    def _whole(self, node):
        """An argument of a helper, which reads all of it at once."""
        return self._listcomp(node) if isinstance(node, ast.GeneratorExp) else self.expr(node)

    def _short(self, how, all_, *or_):
        """any, all and next of a generator: a loop that ends where the answer is known."""
        if how == "next":
            loop, other = (lambda: f"return {self.expr(all_.elt)};"), self.expr(or_[0]) if or_ else "$nothing()"
        else:
            sign, other = ("", "false") if how == "any" else ("!", "true")
            loop = lambda: f"if ({sign}{self.truth(all_.elt)}) return {'true' if how == 'any' else 'false'};"
        return f"(() => {{ {self._loops(all_, loop)} return {other}; }})()"

    def _call_method(self, node):
        attr, owner = node.func.attr, node.func.value
        positional, pairs = list(map(self._whole if attr == "join" else self.expr, node.args)), self._pairs(node)
        if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super":
            return f"super.{attr}({', '.join(positional)})"
        value = self.expr(owner)
        known, held = self.static(owner)
        if attr in python.METHODS:
            whose = [] if known and isinstance(held, type) else [value]
            return f"{self.refer(python.METHODS[attr])}({', '.join([*whose, *positional])})"
        if attr in FIXED:
            return f"{value}.{attr}({self._plain(pairs)})"
        if attr in METHODS:
            return f"{value}.{METHODS[attr]}({', '.join(positional)})"
        if attr in HELPERS and not pairs or attr == "format":
            return f"$m_{attr}({', '.join([value, *positional, *([self._table(pairs)] if pairs else [])])})"
        if not pairs:
            return f"{value}.{attr}({', '.join(positional)})"
        return self._by_names(node, f"{value}.{attr}", *self.refer.method(attr, node, self))
