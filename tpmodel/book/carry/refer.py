"""What a name means where a function stands: a local of its module, a helper of the page, a method of one class."""

import builtins
import inspect
import sys
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType, ModuleType

from ...formula.recorded import Formula
from ...formula.view import View
from .names import Held, parameters, parsed
from .natives import BOUND, HELPERS


class Refer:
    """What names mean in one module."""

    def __init__(self, carrier, held):
        self.carrier, self.held = carrier, held

    def __call__(self, value, hint="it"):
        return self.carrier.refer(value, hint)

    def value(self, name):
        """The object of a name that is not local."""
        return self.held[name] if name in self.held else getattr(builtins, name)

    def decides(self, owner, name):
        """Whether a dot behind it is decided before the page runs: of a module, and of a class with a default."""
        return isinstance(owner, ModuleType) or isinstance(owner, type) and not callable(getattr(owner, name, len))

    def is_method(self, name):
        """Whether some class has a method of the name, which must be bound where it is not called."""
        return name in BOUND or name in methods()

    def imported(self, node, name):
        """What an import inside a function brings."""
        package = self.held["__package__"]
        module = import_module("." * node.level + (node.module or ""), package)
        return Held(getattr(module, name) if hasattr(module, name) else import_module(f"{module.__name__}.{name}"))

    def called(self, callee, node):
        """(name, parameters, whether more are taken, how a helper takes names) of what is called."""
        callee = self.carrier.replaced.get(callee, callee)
        if isinstance(callee, Formula):
            return self(callee), list(callee.parameters), False, None
        if callee in HELPERS:
            return HELPERS[callee][0], None, False, HELPERS[callee][1]
        name = self(callee)
        if callee is View:
            return "new View", ["values", "recipes", "given", "sources"], False, None
        if isinstance(callee, type):
            names = [field.name for field in fields(callee)] if is_dataclass(callee) else ["message"] * 3
            return f"new {name}", names, False, None
        return name, *parameters(parsed(inspect.unwrap(callee)).args), None

    def method(self, name, node, script):
        """(parameters, whether more are taken) of a method, which one class alone has."""
        found = methods().get(name)
        if found is None:
            raise script.wrong(node, f"a call of .{name} by names")
        names, more = parameters(parsed(found).args)
        return names[1:], more


def methods():
    """Every method of our dataclasses by name."""
    found = {}
    for module in [one for name, one in sys.modules.items() if name.startswith("tpmodel.")]:
        for owner in vars(module).values():
            if isinstance(owner, type) and owner.__module__ == module.__name__ and is_dataclass(owner):
                found |= {name: one for name, one in vars(owner).items() if isinstance(one, FunctionType)
                          and not name.startswith("__") and one.__name__ != "<lambda>"}
    return found
