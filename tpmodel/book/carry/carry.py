"""From a few functions of the planner to all that they use: functions, classes and data, as one JavaScript program."""

import ast
import inspect
import json
import math
import re
import sys
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property
from types import FunctionType

from ...formula import printers
from ...formula.recorded import Formula
from ...formula.tree import walk
from ...formula.view import View, formulas
from ...formula.vocabulary import NAMES
from . import python
from .names import Uncarried, parsed
from .natives import HELPERS, NATIVE
from .refer import Refer
from .script import Script


SHARED = 60  # letters of a list; from here on equal ones are one constant


class Carrier:
    """What was met so far. `replaced` : function -> the function that stands for it; `evaluated` : functions without
    parameters whose value is data."""

    def __init__(self, replaced, evaluated, kept_results=()):
        self.replaced, self.evaluated, self.kept_results = python.REPLACED | replaced, evaluated, kept_results
        self.names, self.kept, self.taken = {}, [], set()
        self.classes, self.constants, self.functions, self.formulas = [], [], [], {}
        self.equal, self.texts = {}, {}

    def name(self, value, hint):
        """A JavaScript name of its own."""
        base, number = hint, 2
        while base in self.taken:
            base, number = f"{hint}{number}", number + 1
        self.taken.add(base)
        self.names[id(value)] = base
        self.kept.append(value)  # so that no other object gets its id
        return base

    def refer(self, value, hint="it"):
        """What stands for a Python object in JavaScript."""
        value = self.replaced.get(value, value) if callable(value) else value
        if isinstance(value, Formula):
            return f"F.{self.formula(value)}"
        if isinstance(value, (FunctionType, type)) or hasattr(value, "__wrapped__") or callable(value):
            if value in HELPERS:
                name, options = HELPERS[value]
                return f"((...$a) => {name}({{}}, ...$a))" if options == "options" else name
            if value in NATIVE:
                return NATIVE[value]
            if id(value) in self.names:
                return self.names[id(value)]
            return self.a_class(value) if isinstance(value, type) else self.a_function(value)
        return self.literal(value, hint)

    def formula(self, value):
        """A recorded formula; its JavaScript is its own."""
        if value.__name__ not in self.formulas:
            self.formulas[value.__name__] = value
            for node in walk(value.tree):
                if node.kind == "call":
                    self.formula(node.value)
        return value.__name__

    def a_function(self, value):
        """A function of ours, written when it is first met."""
        own = inspect.unwrap(value)
        if not isinstance(own, FunctionType) or not own.__module__.startswith("tpmodel"):
            raise Uncarried(f"{value!r} is not Python of ours and no helper of the page")
        name = self.name(value, f"{own.__module__.rpartition('.')[2]}${own.__name__.strip('_')}")
        if value in self.evaluated:
            held = self.literal(value(), own.__name__)
            self.constants.append(f"const {name} = () => {held};")
            return name
        node = parsed(own)
        script = Script(Refer(self, own.__globals__), f"{own.__module__}.{own.__qualname__}")
        self.functions.append(None)
        at = len(self.functions) - 1
        plain = isinstance(node, ast.FunctionDef) and value not in self.kept_results
        text = script.function(node, name if plain else None)
        text = f"$memo({text})" if value in self.kept_results else text
        self.functions[at] = text if plain else f"const {name} = {text};"
        return name

    def a_class(self, value):
        """A class: of dataclasses the fields with their defaults, and every method."""
        if not value.__module__.startswith("tpmodel"):
            raise Uncarried(f"{value!r} is not a class of ours and no helper of the page")
        name = self.name(value, value.__name__ if value.__name__ not in self.taken else f"{value.__name__}_")
        base = next((self.refer(one) for one in value.__bases__ if one is not object), None)
        lines = []
        if is_dataclass(value):
            words = [f.name + self._default(f) for f in fields(value)]
            sets = " ".join(f"this.{f.name} = {f.name};" for f in fields(value))
            names = json.dumps([f.name for f in fields(value)])
            lines += [f"static $fields = {names};", f"constructor({', '.join(words)}) {{ {sets} }}"]
        for word, held in vars(value).items():
            if not word.startswith("__") or word == "__init__" and not is_dataclass(value):
                lines += self._member(value, word, held)
        extends = f" extends {base}" if base else ""
        text = f"class {name}{extends} {{\n" + "\n".join(lines) + "\n}"
        if "__getattr__" in vars(value):  # of an entry of the catalog: its numbers by name
            text += f"\n$getters({name}, function (name) {{ return this.numbers.get(name)?.base; }});"
        self.classes.append(text)
        return name

    def _default(self, field):
        if field.default_factory is not MISSING:
            return " = $dict()"
        return "" if field.default is MISSING else f" = {self.refer(field.default, field.name)}"

    def _member(self, owner, word, held):
        where = f"{owner.__module__}.{owner.__name__}.{word}"
        refer = Refer(self, vars(sys.modules[owner.__module__]))
        if isinstance(held, FunctionType) and held.__module__.startswith("tpmodel"):
            return [Script(refer, where).function(parsed(held), word, method=True)]
        if isinstance(held, (property, cached_property)):
            get = held.fget if isinstance(held, property) else held.func
            tree = parsed(get)
            if isinstance(tree, ast.FunctionDef):
                text = Script(refer, where).function(tree, word, method=True)
            else:
                text = f"{word}() {{ return {Script(refer, where).function(tree)}(this); }}"
            if isinstance(held, property):
                return [f"get {text}"]
            return [f"get {word}() {{ return $once(this, {json.dumps(word)}); }}", f"$once_{text}"]
        if isinstance(held, FunctionType) and held in HELPERS:
            return [f"{word}() {{ return {HELPERS[held][0]}(this); }}"]
        return []

    def literal(self, value, hint="it"):
        """Data as JavaScript; equal dataclasses are one constant."""
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, (int, float)):
            return "Infinity" if value == math.inf else repr(value if isinstance(value, float) else int(value))
        if id(value) in self.names:
            return self.names[id(value)]
        if is_dataclass(value):
            return self._instance(value, hint)
        if isinstance(value, (tuple, list)):
            text = f"[{', '.join(self.refer(one, hint) for one in value)}]"
            return text if len(text) < SHARED else self.texts.get(text) or self._constant(value, hint, text)
        if isinstance(value, dict):
            text = ", ".join(f"[{self.refer(key, hint)}, {self.refer(one, hint)}]" for key, one in value.items())
            return self._constant(value, hint, f"$dict([{text}])")
        if isinstance(value, (set, frozenset)):
            return self._constant(value, hint, f"$set([{', '.join(sorted(self.refer(one) for one in value))}])")
        if isinstance(value, re.Pattern):
            return self._constant(value, hint, f"$pattern({json.dumps(value.pattern)})")
        raise Uncarried(f"{hint} = {value!r:.60}: no data that the page could hold")

    def _constant(self, value, hint, text):
        name = self.texts[text] = self.name(value, f"{hint.strip('_')}$")
        self.constants.append(f"const {name} = {text};")
        return name

    def _instance(self, value, hint):
        try:
            known = self.equal.get((type(value), value))
            key = (type(value), value)
        except TypeError:  # it holds a dict
            known, key = None, None
        if known:
            return known
        words = []
        for field in fields(value):
            held = getattr(value, field.name)
            usual = held == field.default and type(held) is type(field.default)
            words.append(None if usual else self.refer(held, field.name))
        while words and words[-1] is None:
            words.pop()
        owner = self.refer(type(value))
        text = f"new {owner}({', '.join('undefined' if word is None else word for word in words)})"
        name = self._constant(value, owner.lower()[:2], text)
        if key:
            self.equal[key] = name
        return name

    def program(self):
        """All that was met, in an order in which it can run."""
        for form in formulas().values():  # a view may ask for any by its name
            self.formula(form)
        library = printers.javascript_library(self.formulas.values())
        forms = json.dumps({name: {"parameters": list(form.parameters), "__module__": form.__module__, "__name__": name}
                            for name, form in self.formulas.items()})
        why = f"View.prototype.why = function (name) {{ return {self.refer(View.why)}(this, name); }};"
        getters = f"const $names = {json.dumps(list(NAMES))};\n$getters(View, View.prototype.$get);"
        return "\n".join([f"const F = {library};", f"const $forms = {forms};", getters, why, *self.classes,
                          *self.constants, *self.functions])
