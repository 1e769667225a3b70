"""Python's own functions where a page needs them, in Python that can be carried: each stands for the one it is named
after, for what the planner asks of it."""

import bisect
import collections
import itertools
import json
import math
import shlex

PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"  # needs no quotes in a shell


def bisect_right(all, x, key):
    """The place behind all whose key is not above x.
    >>> bisect_right(range(10), 3, lambda n: n)
    4
    """
    low, high = 0, len(all)
    while low < high:
        middle = (low + high) // 2
        if x < key(all[middle]):
            high = middle
        else:
            low = middle + 1
    return low


def product(*lists):
    """Every choice of one from each, the last fastest.
    >>> product("ab", (1, 2))
    [('a', 1), ('a', 2), ('b', 1), ('b', 2)]
    """
    found = [()]
    for one in lists:
        found = [(*head, x) for head in found for x in one]
    return found


def accumulate(all):
    """Sums of the first one, two, ...
    >>> accumulate([1, 2, 3])
    [1, 3, 6]
    """
    found, total = [], 0
    for x in all:
        total += x
        found.append(total)
    return found


def groupby(all, key):
    """(key, those side by side that have it).
    >>> groupby([1, 3, 2], lambda n: n % 2)
    [(1, [1, 3]), (0, [2])]
    """
    found = []
    for x in all:
        if found and found[-1][0] == key(x):
            found[-1][1].append(x)
        else:
            found.append((key(x), [x]))
    return found


def counter(all):
    """How often each is there.
    >>> counter("aba")
    {'a': 2, 'b': 1}
    """
    found = {}
    for x in all:
        found[x] = found.get(x, 0) + 1
    return found


def near(a, b):
    """Whether two numbers are equal but for rounding.
    >>> near(1, 1 + 1e-12), near(1, 1.1)
    (True, False)
    """
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def whole_and_rest(a, b):
    """(whole times, rest).
    >>> whole_and_rest(7, 2)
    (3, 1)
    """
    return a // b, a % b


def dumped(value):
    """A value as JSON, as Python spaces it.
    >>> dumped({"a": [1, True, None], "b": "c"})
    '{"a": [1, true, null], "b": "c"}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join([f'"{key}": {dumped(one)}' for key, one in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([dumped(one) for one in value]) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return str(value)


def joined(words):
    """Words of a shell, in quotes where they need them.
    >>> joined(["a", "b c"])
    "a 'b c'"
    """
    return " ".join([word if all(letter in PLAIN for letter in word) else f"'{word}'" for word in words])


def from_keys(keys, value=None):
    """Every key with one value.
    >>> from_keys("ab", 0)
    {'a': 0, 'b': 0}
    """
    return {key: value for key in keys}


def partition(text, by):
    """What stands before and behind the first `by`.
    >>> partition("a-b-c", "-"), partition("a", "-")
    (('a', '-', 'b-c'), ('a', '', ''))
    """
    first, *more = text.split(by)
    return (first, by, by.join(more)) if more else (text, "", "")


def rpartition(text, by):
    """What stands before and behind the last `by`.
    >>> rpartition("a-b-c", "-"), rpartition("a", "-")
    (('a-b', '-', 'c'), ('', '', 'a'))
    """
    parts = text.split(by)
    return (by.join(parts[:-1]), by, parts[-1]) if len(parts) > 1 else ("", "", text)


def startswith(text, heads):
    """Whether a text begins with one of them.
    >>> startswith("abc", ("x", "ab")), startswith("abc", "b")
    (True, False)
    """
    return any(text[: len(head)] == head for head in ((heads,) if isinstance(heads, str) else heads))


def endswith(text, ends):
    """Whether a text ends in one of them.
    >>> endswith("abc", ("x", "bc")), endswith("abc", "b")
    (True, False)
    """
    return any(len(end) <= len(text) and text[len(text) - len(end) :] == end
               for end in ((ends,) if isinstance(ends, str) else ends))


def removesuffix(text, end):
    """A text without an end.
    >>> removesuffix("abc", "bc"), removesuffix("abc", "x")
    ('a', 'abc')
    """
    return text[: len(text) - len(end)] if endswith(text, end) else text


def isdigit(text):
    """Whether there is nothing but digits.
    >>> isdigit("12"), isdigit("")
    (True, False)
    """
    return len(text) > 0 and all(letter in "0123456789" for letter in text)


def bit_length(number):
    """Binary digits of a whole number.
    >>> bit_length(8), bit_length(0)
    (4, 0)
    """
    digits = 0
    while number:
        number, digits = number // 2, digits + 1
    return digits


METHODS = {"fromkeys": from_keys, "partition": partition, "rpartition": rpartition, "startswith": startswith,
           "endswith": endswith, "removesuffix": removesuffix, "isdigit": isdigit, "bit_length": bit_length}
REPLACED = {bisect.bisect_right: bisect_right, itertools.product: product, itertools.accumulate: accumulate,
            itertools.groupby: groupby, collections.Counter: counter, math.isclose: near, divmod: whole_and_rest,
            json.dumps: dumped, shlex.join: joined}
