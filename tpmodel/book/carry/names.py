"""Names and trees of Python functions: which are local, which JavaScript takes, and where a function's tree stands."""

import ast
import inspect
from functools import cache
from pathlib import Path

RESERVED = set("arguments await case catch class const debugger default delete do enum eval export extends function "
               "implements import in instanceof interface let new package private protected public static super "
               "switch this throw try typeof var void with yield".split())


class Uncarried(ValueError):
    """Python that the page has no JavaScript for."""


class Held:
    """A name that was imported inside a function."""

    def __init__(self, value):
        self.value = value


def local_names(node):
    """Names that a function binds itself: parameters, targets, inner functions; of a comprehension only `:=`."""
    found = set()
    args = node.args
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg:
            found.add(arg.arg)

    def go(one, inside=False):
        if isinstance(one, (ast.FunctionDef, ast.Lambda)) and one is not node:
            if isinstance(one, ast.FunctionDef):
                found.add(one.name)
            return
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and not inside:
            found.add(one.id)
        if isinstance(one, ast.NamedExpr):
            found.add(one.target.id)
        if isinstance(one, ast.ExceptHandler) and one.name:
            found.add(one.name)
        own = isinstance(one, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
        for child in ast.iter_child_nodes(one):
            go(child, inside or own)

    for child in node.body if isinstance(node.body, list) else [node.body]:
        go(child)
    return found


def safe(name):
    """A name that JavaScript takes."""
    return f"{name}_" if name in RESERVED else name


def parameters(args):
    """(names in the order of JavaScript's parameters, whether a dict of further ones comes last)."""
    names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return names, args.kwarg is not None


def parsed(function):
    """The syntax tree of a function, or of a lambda, in that of its module."""
    code, own = function.__code__, []
    for node in ast.walk(_module(inspect.getsourcefile(function))):
        if isinstance(node, ast.FunctionDef):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            own += [node] if (node.name, first) == (code.co_name, code.co_firstlineno) else []
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            own += [node] if [arg.arg for arg in node.args.args] == list(code.co_varnames[:code.co_argcount]) else []
    if len(own) != 1:
        raise Uncarried(f"{function.__module__}.{function.__qualname__}: {len(own)} trees in its lines")
    return own[0]


@cache
def _module(path):
    return ast.parse(Path(path).read_text(encoding="utf-8"))
