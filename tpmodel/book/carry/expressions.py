"""Expressions of Python as JavaScript: operators as Python means them, comprehensions as loops."""

import ast
import json

from .calls import Calls
from .names import Held, safe

NUMERIC = {ast.Div: "/", ast.Pow: "**", ast.BitAnd: "&"}
HELPED = {ast.Add: "$add", ast.Sub: "$sub", ast.Mult: "$mul", ast.FloorDiv: "$floordiv", ast.Mod: "$mod",
          ast.BitOr: "$union"}
ORDER = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class Expressions(Calls):
    """How a Script writes expressions."""

    def expr(self, node):
        """One expression."""
        kind = type(node).__name__
        write = getattr(self, f"_{kind.lower()}", None)
        if write is None:
            raise self.wrong(node, kind)
        return write(node)

    def truth(self, node):
        """A test, as Python means it: nothing, 0 and what is empty are false."""
        if isinstance(node, ast.BoolOp):
            sign = " && " if isinstance(node.op, ast.And) else " || "
            return f"({sign.join(map(self.truth, node.values))})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.truth(node.operand)}"
        return self.expr(node) if isinstance(node, ast.Compare) else f"$t({self.expr(node)})"

    def _constant(self, node):
        value = node.value
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if isinstance(value, str):
            return json.dumps(value)
        return repr(value) if isinstance(value, (int, float)) else self._refused(node)

    def _refused(self, node):
        raise self.wrong(node, "this value")

    def local(self, name):
        """Whether a name is bound around here; its parameters, where it is a function of ours."""
        for scope in reversed(self.scopes):
            if name in scope:
                return True, scope[name]
        return False, None

    def static(self, node):
        """(whether it is known before the page runs, the Python object)."""
        if isinstance(node, ast.Name):
            bound, held = self.local(node.id)
            if bound:
                return (True, held.value) if isinstance(held, Held) else (False, None)
            return True, self.refer.value(node.id)
        if isinstance(node, ast.Attribute):
            known, owner = self.static(node.value)
            if known and self.refer.decides(owner, node.attr):
                return True, getattr(owner, node.attr)
        return False, None

    def _name(self, node):
        known, value = self.static(node)
        return self.refer(value, node.id) if known else safe(node.id)

    def _attribute(self, node):
        known, value = self.static(node)
        if known:
            return self.refer(value, node.attr)
        if self.refer.is_method(node.attr):  # not called here, so it must keep whose it is
            return f"$bound({self.expr(node.value)}, {json.dumps(node.attr)})"
        return f"{self.expr(node.value)}.{node.attr}"

    def _binop(self, node):
        return self._binary(node.op, node.left, node.right)

    def _binary(self, op, left, right):
        a, b = self.expr(left), self.expr(right)
        plain = any(isinstance(one, ast.Constant) and isinstance(one.value, (int, float)) for one in (left, right))
        if isinstance(op, ast.Pow) and isinstance(right, ast.Constant) and right.value == 0.5:
            return f"Math.sqrt({a})"
        if type(op) in NUMERIC:
            return f"(({a}) {NUMERIC[type(op)]} ({b}))"
        if plain and isinstance(op, (ast.Add, ast.Sub)):
            return f"({a} {'+' if isinstance(op, ast.Add) else '-'} {b})"
        if type(op) not in HELPED:
            raise self.wrong(left, type(op).__name__)
        return f"{HELPED[type(op)]}({a}, {b})"

    def _unaryop(self, node):
        if isinstance(node.op, ast.Not):
            return f"!{self.truth(node.operand)}"
        return f"(-{self.expr(node.operand)})"

    def _boolop(self, node):
        if all(isinstance(one, ast.Compare) for one in node.values):
            return self.truth(node)
        *first, last = node.values
        text, held = self.expr(last), isinstance(node.op, ast.Or)
        for one in reversed(first):
            ends = ("$v", text) if held else (text, "$v")
            text = f"($v => $t($v) ? {ends[0]} : {ends[1]})({self.expr(one)})"
        return text

    def _ifexp(self, node):
        return f"({self.truth(node.test)} ? {self.expr(node.body)} : {self.expr(node.orelse)})"

    def _compare(self, node):
        parts, left = [], node.left
        for op, right in zip(node.ops, node.comparators):
            parts.append(self._compared(left, op, right))
            left = right
        return parts[0] if len(parts) == 1 else f"({' && '.join(parts)})"

    def _compared(self, left, op, right):
        a, b = self.expr(left), self.expr(right)
        const = [isinstance(one, ast.Constant) for one in (left, right)]
        if isinstance(op, (ast.Is, ast.IsNot)):
            sign = "==" if isinstance(op, ast.Is) else "!="
            return f"({a} {sign}{'' if const[1] else '='} {b})"
        if isinstance(op, (ast.In, ast.NotIn)):
            return f"{'!' * isinstance(op, ast.NotIn)}$in({a}, {b})"
        if isinstance(op, (ast.Eq, ast.NotEq)):
            no = isinstance(op, ast.NotEq)
            return f"({a} {'!' if no else '='}== {b})" if any(const) else f"{'!' * no}$eq({a}, {b})"
        sign = ORDER[type(op)]
        return f"({a} {sign} {b})" if any(const) else f"$order({a}, {json.dumps(sign)}, {b})"

    def _lambda(self, node):
        return self.function(node)

    def _tuple(self, node):
        return f"[{', '.join(map(self.expr, node.elts))}]"

    _list = _tuple

    def _set(self, node):
        return f"$set({self._tuple(node)})"

    def _starred(self, node):
        return f"...{self._whole(node.value)}"

    def _dict(self, node):
        pairs = [f"...$items({self.expr(value)})" if key is None else f"[{self.expr(key)}, {self.expr(value)}]"
                 for key, value in zip(node.keys, node.values)]
        return f"$dict([{', '.join(pairs)}])"

    def _subscript(self, node):
        value = self.expr(node.value)
        if not isinstance(node.slice, ast.Slice):
            return f"$at({value}, {self.expr(node.slice)})"
        ends = [self.expr(one) if one else "null" for one in (node.slice.lower, node.slice.upper, node.slice.step)]
        return f"$slice({value}, {', '.join(ends)})"

    def _joinedstr(self, node):
        return f"({' + '.join(['``', *map(self.expr, node.values)])})"

    def _formattedvalue(self, node):
        value = self.expr(node.value)
        if node.conversion == ord("r"):
            return f"$repr({value})"
        return f"$fmt({value}, {self.expr(node.format_spec)})" if node.format_spec else f"$str({value})"

    def _namedexpr(self, node):
        return f"({safe(node.target.id)} = {self.expr(node.value)})"

    def _yield(self, node):
        return f"yield {self.expr(node.value)}"

    def _yieldfrom(self, node):
        return f"yield* {self.expr(node.value)}"

    # --- comprehensions ------------------------------------------------------------------------------

    def _loops(self, node, write):
        """The loops of a comprehension around what `write` gives."""
        self.scopes.append({})
        heads, tests = [], 0
        for loop in node.generators:
            over = self.expr(loop.iter)
            self.scopes[-1].update({one.id: None for one in ast.walk(loop.target) if isinstance(one, ast.Name)})
            heads.append(f"for (const {self.target(loop.target)} of {over})")
            heads += [f"if ({self.truth(test)})" for test in loop.ifs]
            tests += len(loop.ifs)
        text = f"{' '.join(heads)} {write()}"
        self.scopes.pop()
        return text

    def _listcomp(self, node):
        loops = self._loops(node, lambda: f"$r.push({self.expr(node.elt)});")
        return f"(() => {{ const $r = []; {loops} return $r; }})()"

    def _setcomp(self, node):
        return f"$set({self._listcomp(node)})"

    def _generatorexp(self, node):
        return f"(function* () {{ {self._loops(node, lambda: f'yield {self.expr(node.elt)};')} }})()"

    def _dictcomp(self, node):
        write = lambda: f"$put($r, {self.expr(node.key)}, {self.expr(node.value)});"
        return f"(() => {{ const $r = $dict(); {self._loops(node, write)} return $r; }})()"
