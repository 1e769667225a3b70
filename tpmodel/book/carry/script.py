"""One Python function as JavaScript: its syntax tree, written again. What has no counterpart is refused with its line.

Numbers are doubles, None is null, tuples and lists are arrays, dicts and sets classes of runtime.js, whose names begin
with $. Of a name that is not local the `refer` of the carrier says what it stands for.
"""

import ast
import json

from .expressions import Expressions
from .names import Uncarried, local_names, safe


class Script(Expressions):
    """The writer of one function; `scopes` are the names that are bound around it, each with what it is known as."""

    def __init__(self, refer, where):
        self.refer, self.where, self.scopes = refer, where, []

    # --- functions -----------------------------------------------------------------------------------

    def function(self, node, name=None, method=False):
        """`function name(…) {…}`, or an arrow function where it has no name."""
        names = local_names(node)
        self.scopes.append({one: None for one in names})
        head = self._parameters(node.args, method)
        yields = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in self._own(node))
        if isinstance(node, ast.Lambda):
            text = f"(({head}) => {self._object(self.expr(node.body))})"
        else:
            bound = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
            free = sorted(safe(one) for one in names - bound)
            lines = [f"let {', '.join(free)};"] if free else []
            lines += ["const self = this;"] if method else []
            body = "\n".join(lines + [self.statement(one) for one in node.body if not self._said(one)])
            star = "*" if yields else ""
            if method:
                text = f"{star}{name}({head}) {{\n{body}\n}}"
            elif name or yields:
                text = f"function{star} {name or ''}({head}) {{\n{body}\n}}"
            else:
                text = f"({head}) => {{\n{body}\n}}"
        self.scopes.pop()
        return text

    def _own(self, node):
        """The nodes of a function without those of functions in it."""
        open_ = list(node.body) if isinstance(node.body, list) else [node.body]
        while open_:
            one = open_.pop()
            yield one
            if not isinstance(one, (ast.FunctionDef, ast.Lambda, ast.GeneratorExp)):
                open_ += ast.iter_child_nodes(one)

    def _said(self, node):
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

    def _object(self, text):
        return f"({text})" if text.startswith("{") else text

    def _parameters(self, args, method=False):
        own = [*args.posonlyargs, *args.args]
        defaults = [None] * (len(own) - len(args.defaults)) + args.defaults
        if args.vararg and args.kwonlyargs:
            raise self.wrong(args.vararg, "names behind a star")
        words = [f"{safe(arg.arg)} = {self.expr(default)}" if default else safe(arg.arg)
                 for arg, default in (*zip(own, defaults), *zip(args.kwonlyargs, args.kw_defaults))]
        words += [f"...{safe(args.vararg.arg)}"] if args.vararg else []
        words += [f"{safe(args.kwarg.arg)} = $dict()"] if args.kwarg else []
        return ", ".join(words[1:] if method else words)

    def wrong(self, node, what):
        """The error of what cannot be carried."""
        return Uncarried(f"{self.where}, line {getattr(node, 'lineno', '?')}: {what} has no counterpart on the page")

    # --- statements ----------------------------------------------------------------------------------

    def statement(self, node):
        """One statement."""
        kind = type(node).__name__
        write = getattr(self, f"_{kind.lower()}_statement", None)
        if write is None:
            raise self.wrong(node, kind)
        return write(node)

    def block(self, nodes):
        """Several statements in braces."""
        return "{\n" + "\n".join(map(self.statement, nodes)) + "\n}"

    def _functiondef_statement(self, node):
        self.scopes[-1][node.name] = node.args
        text, said = self.function(node), ast.get_docstring(node)
        return f"{safe(node.name)} = {f'$said({text}, {json.dumps(said)})' if said else text};"

    def _return_statement(self, node):
        return f"return {self.expr(node.value) if node.value else 'null'};"

    def _expr_statement(self, node):
        return f"{self.expr(node.value)};"

    def _pass_statement(self, node):
        return ""

    def _continue_statement(self, node):
        return "continue;"

    def _break_statement(self, node):
        return "break;"

    def _if_statement(self, node):
        text = f"if ({self.truth(node.test)}) {self.block(node.body)}"
        return text + (f" else {self.block(node.orelse)}" if node.orelse else "")

    def _while_statement(self, node):
        return f"while ({self.truth(node.test)}) {self.block(node.body)}"

    def _for_statement(self, node):
        if node.orelse:
            raise self.wrong(node, "an else behind a loop")
        return f"for ({self.target(node.target)} of {self.expr(node.iter)}) {self.block(node.body)}"

    def _assign_statement(self, node):
        if isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
            self.scopes[-1][node.targets[0].id] = node.value.args
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            return f"{self.target(node.targets[0])} = {self.expr(node.value)};"
        text = self._whole(node.value)
        for target in reversed(node.targets):
            text = self._assigned(target, text)
        return f"{text};"

    def _assigned(self, target, text):
        if isinstance(target, ast.Subscript):
            return f"$put({self.expr(target.value)}, {self.expr(target.slice)}, {text})"
        return f"{self.target(target)} = {text}"

    def _augassign_statement(self, node):
        load = ast.copy_location(ast.parse(ast.unparse(node.target), mode="eval").body, node)
        return f"{self._assigned(node.target, self._binary(node.op, load, node.value))};"

    def _raise_statement(self, node):
        return f"throw {self.expr(node.exc) if node.exc else '$error'};"

    def _assert_statement(self, node):
        return ""

    def _try_statement(self, node):
        text, cases = f"try {self.block(node.body)}", []
        for handler in node.handlers:
            bind = f"{safe(handler.name)} = $error;" if handler.name else ""
            test = f"$error instanceof {self.expr(handler.type)}" if handler.type else "true"
            cases.append(f"if ({test}) {{ {bind} {self.block(handler.body)} }}")
        if cases:
            text += " catch ($error) { " + " else ".join(cases) + " else throw $error; }"
        if node.orelse:
            raise self.wrong(node, "an else behind try")
        return text + (f" finally {self.block(node.finalbody)}" if node.finalbody else "")

    def _importfrom_statement(self, node):
        for alias in node.names:
            self.scopes[-1][alias.asname or alias.name] = self.refer.imported(node, alias.name)
        return ""

    def target(self, node):
        """What is assigned to."""
        if isinstance(node, ast.Name):
            return safe(node.id)
        if isinstance(node, (ast.Tuple, ast.List)):
            if any(isinstance(one, ast.Starred) for one in node.elts[:-1]):
                raise self.wrong(node, "a star that is not last")
            unused = lambda one: isinstance(one, ast.Name) and one.id == "_"
            return f"[{', '.join('' if unused(one) else self.target(one) for one in node.elts)}]"
        if isinstance(node, ast.Starred):
            return f"...{self.target(node.value)}"
        if isinstance(node, ast.Attribute):
            return f"{self.expr(node.value)}.{node.attr}"
        raise self.wrong(node, "this target")
