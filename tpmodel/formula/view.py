"""`View`: values by name. A quantity that it does not hold is found by the recipe or the formula of its name."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from .recorded import REGISTRY
from .vocabulary import NAMES

MODULES = tuple("blocks card collectives decode linear memory overhead passes pipeline prefill speculation "
                "weights".split())
MOST_NESTED = 16  # times that a name may be asked for while it is being found, in views extended from each other


@cache
def formulas():
    """Every formula by name, all modules loaded, so that no answer depends on what was imported."""
    for module in MODULES:
        import_module(f"{__package__.rpartition('.')[0]}.formulas.{module}")
    return REGISTRY


def formula_of(name):
    """The formula that gives the quantity `name`, or None."""
    return formulas().get(name) if name in NAMES else None


@dataclass(frozen=True)
class Why:
    """How a value came about: by a formula or a place's own recipe from `parts`, or as given, from a source."""

    name: str
    value: object
    how: str  # formula, recipe, same as, given, or the kind of a sourced number
    source: str
    parts: tuple = ()


class View:
    """Values by name; `v.hidden` reads one, `v.decode_tokens_per_s` finds it by the formula of that name, each once.
    values : what the view holds
    recipes : name -> function of the view, or another name that means the same here
    given : held names that a formula gives: the value counts, not the formula
    sources : name -> a number of the catalog with `kind` and `source`, or a text: where a held value is from
    >>> v = View({"message_bytes": 10240, "ranks": 2})
    >>> v.allreduce_wire_bytes, v.extended(ranks=4).allreduce_wire_bytes
    (10240.0, 15360.0)
    >>> View({"pass_s": 1})
    Traceback (most recent call last):
    ...
    ValueError: pass_s is not accepted: a formula gives it; mark it given where a value is to count in its place
    """

    __slots__ = ("_held", "_recipes", "_given", "_sources", "_found", "_open")

    def __init__(self, values, recipes=None, given=(), sources=None):
        recipes = dict(recipes or {})
        for name in (*values, *recipes):
            if name not in given and formula_of(name):
                raise ValueError(f"{name} is not accepted: a formula gives it; "
                                 "mark it given where a value is to count in its place")
        self._set(dict(values), recipes, frozenset(given), dict(sources or {}), {}, [])

    def _set(self, *state):
        for slot, value in zip(self.__slots__, state):
            object.__setattr__(self, slot, value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._held:
            value, under = self._held[name], ()
        else:
            value, under = self._found[name] if name in self._found else self._find(name)
        if self._open:
            self._open[-1][2].update(under, (name,))
        return value

    def _find(self, name):
        recipe, form = self._recipes.get(name), formula_of(name)
        if recipe is None and form is None:
            held = ", ".join(sorted(self._held))
            raise AttributeError(f"the view holds no {name}, and no formula gives it; it holds {held}")
        asked = [view for one, view, _ in self._open if one == name]
        # in other views of the same it may be asked for again, but not for ever
        if any(view is self for view in asked) or len(asked) > MOST_NESTED:
            names = [one for one, _, _ in self._open]
            ring = names[len(names) - 1 - names[::-1].index(name) :] + [name]
            raise ValueError(f"a ring of names: {' <- '.join(ring)}: one of them must be given")
        under = set()  # every name that is read meanwhile
        self._open.append((name, self, under))
        try:
            value = self(form) if recipe is None else getattr(self, recipe) if isinstance(recipe, str) else recipe(self)
        except AttributeError as error:
            raise AttributeError(f"{error} (asked for by {name})" if len(self._open) == 1 else str(error)) from None
        finally:
            self._open.pop()
        self._found[name] = value, under
        return value, under

    def __contains__(self, name):
        return name in self._held or name in self._recipes

    def __setattr__(self, name, value):
        raise AttributeError("a view is read only: use view.extended(name=value)")

    def __call__(self, wanted, **given):
        """A formula with its arguments looked up; `given` replaces arguments of this one call."""
        unknown = set(given) - set(wanted.parameters)
        if unknown:
            raise TypeError(f"{wanted.__name__} has no parameter {', '.join(sorted(unknown))}")
        return wanted(*(given[n] if n in given else getattr(self, n) for n in wanted.parameters))

    def extended(self, **more):
        """A view with further or replaced values; what depended on a replaced one is forgotten."""
        for name in more:
            if name not in self._given and name not in self._recipes and formula_of(name):
                raise ValueError(f"{name} is not accepted: a formula gives it; use view.given(name=value)")
        return self._with(more, {}, ())

    def given(self, **more):
        """The same for quantities that a formula gives: from here on the value counts."""
        return self._with(more, {}, more)

    def derived(self, **recipes):
        """A view with further recipes; one for a quantity that a formula gives counts in its place."""
        return self._with({}, recipes, recipes)

    def sourced(self, **sources):
        """The same values; `sources` says where held ones are from."""
        view = self._with({}, {}, ())
        view._sources.update(sources)
        return view

    def names(self):
        """The names that are held."""
        return tuple(self._held)

    def _with(self, more, recipes, given):
        forgotten = {*more, *recipes}
        kept = lambda table: {name: one for name, one in table.items() if name not in forgotten}
        found = {name: one for name, one in kept(self._found).items() if one[1].isdisjoint(forgotten)}
        view = object.__new__(View)
        view._set(kept(self._held) | more, kept(self._recipes) | recipes, self._given.union(given), kept(self._sources),
                  found, self._open)
        return view

    def why(self, name):
        """The tree of quantities under `name`, each with its value and where it is from."""
        value, recipe, form = getattr(self, name), self._recipes.get(name), formula_of(name)
        if name in self._held:
            source = self._sources.get(name, "the setting")
            how, source = ("given", source) if isinstance(source, str) else (source.kind, source.source)
            return Why(name, value, how, source)
        if isinstance(recipe, str):
            return Why(name, value, "same as", recipe, (self.why(recipe),))
        if recipe is not None:
            read = tuple(view.why(name) for view, name in self._read_by(recipe))
            return Why(name, value, "recipe", (recipe.__doc__ or "of this place").strip(), read)
        return Why(name, value, "formula", f"{form.__module__}.{form.__name__}", tuple(map(self.why, form.parameters)))

    def _read_by(self, recipe):
        """What a recipe reads itself, in order: (view, name), also of views that it extends."""
        read = {}

        def reader(view):
            class Reader:
                def __getattr__(_, name):
                    if name in ("extended", "given"):
                        return lambda **more: reader(getattr(view, name)(**more))
                    if name in view or formula_of(name):
                        read[name, id(view)] = view, name
                    return getattr(view, name)

                def __call__(_, wanted, **given):
                    read.update(((name, id(view)), (view, name)) for name in wanted.parameters if name not in given)
                    return view(wanted, **given)

            return Reader()

        recipe(reader(self))
        return tuple(read.values())
