"""Python's own functions that the page has helpers for, by their names in runtime.js."""

import dataclasses
import math
import re

from ...formula.view import View, formula_of

# function -> (name, how it takes names: as "options" before all else, as a "table" behind all else, or not)
HELPERS = {
    len: ("$len", None), sum: ("$sum", None), min: ("$min", "options"), max: ("$max", "options"),
    sorted: ("$sorted", "options"), range: ("$range", None), zip: ("$zip", None), enumerate: ("$enumerate", None),
    any: ("$any", None), all: ("$all", None), abs: ("Math.abs", None), int: ("$int", None), float: ("Number", None),
    str: ("$str", None), bool: ("$t", None), list: ("$list", None), tuple: ("$tuple", None), set: ("$set", None),
    frozenset: ("$set", None), dict: ("$dict", "table"), map: ("$map", None), filter: ("$filter", None),
    next: ("$next", None), iter: ("$iter", None), reversed: ("$reversed", None), round: ("$round", None),
    isinstance: ("$isinstance", None), getattr: ("$getattr", None), repr: ("$repr", None),
    math.ceil: ("Math.ceil", None), math.floor: ("Math.floor", None), math.sqrt: ("Math.sqrt", None),
    math.hypot: ("Math.hypot", None), math.fsum: ("$sum", None), dataclasses.replace: ("$replace", "object"),
    dataclasses.asdict: ("$asdict", None), re.fullmatch: ("$fullmatch", None), re.match: ("$match", None),
}
NATIVE = {View: "View", formula_of: "$formula", ValueError: "ValueError", AttributeError: "AttributeError"}
BOUND = {"get", "fullmatch", "search", "why"}
