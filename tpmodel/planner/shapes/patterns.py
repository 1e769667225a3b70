"""Patterns over names of modules: shell wildcards, and the regular expressions that configs use, in bounded time.

All places of a name that a pattern can have come to are the bits of one integer: one step for each part of a pattern.
"""

import re
import string
import warnings

from .fields import refuse

GROUP = re.compile(r"\((?:\?:)?(?!\?)")
CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\[dDwWsS]|\.")
LETTER = re.compile(r"\\[^A-Za-z0-9]|[^\\\[\](){}*+?|^$]")
TIMES = re.compile(r"([*+?])\??")
GLOB = re.compile(r"\[!?\]?[^\]]*\]|.", re.S)
LONGEST = 200  # letters of a pattern
ACCEPTED = (f"a name with * and ?, or re: and a regular expression of at most {LONGEST} letters, classes such as "
            "[0-9], groups and |, with *, + or ? behind a letter or a class, ? behind a group")


class Unread(ValueError):
    """The pattern has what is not read."""


def _ways(text, at=0):
    """(alternatives, where they end); each is a list of (kind, what, how often), kind one of text, set, group, ^, $."""
    ways = [[]]
    while at < len(text) and text[at] != ")":
        if text[at] == "|":
            ways.append([])
            at += 1
            continue
        (kind, what), at = _part(text, at)
        times = kind not in "^$" and TIMES.match(text, at)
        often, at = (times[1], times.end()) if times else ("", at)
        if kind == "group" and often in ("*", "+") or at < len(text) and text[at] in "*+?{":
            raise Unread
        if kind == "text" and often:
            kind, what = "set", frozenset(what)
        way = ways[-1]
        if kind == "text" and way and way[-1][0] == "text":
            way[-1] = kind, way[-1][1] + what, ""
        elif often != "*" or not way or way[-1] != (kind, what, often):  # twice x* is x*
            way.append((kind, what, often))
    return ways, at


def _part(text, at):
    """((kind, what), where it ends) of what stands at a place of a regular expression."""
    if text[at] in "^$":
        return (text[at], None), at + 1
    if group := GROUP.match(text, at):
        inner, end = _ways(text, group.end())
        if end == len(text):
            raise Unread
        return ("group", inner), end + 1
    if found := CLASS.match(text, at):
        with warnings.catch_warnings(action="ignore"):
            fits = re.compile(found[0]).match
        return ("set", frozenset(filter(fits, string.printable))), found.end()
    if found := LETTER.match(text, at):
        return ("text", found[0][-1]), found.end()
    raise Unread


def _of_glob(one):
    """A part of a shell pattern as a regular expression."""
    if len(one) > 1:
        inner = one[1:-1].replace("\\", r"\\")
        return f"[{'^' + inner[1:] if inner[0] == '!' else inner.replace('^', chr(92) + '^')}]"
    return {"*": ".*", "?": "."}.get(one) or re.escape(one)


def _steps(ways):
    """Steps that a name takes at most."""
    return sum(1 + (_steps(what) if kind == "group" else 0) for way in ways for kind, what, _ in way)


class Pattern:
    """A pattern of a config; what is not read is an Unread. Of a Name: whether it begins with it (re:) or is it."""

    def __init__(self, text):
        body = text[3:] if text.startswith("re:") else "".join(map(_of_glob, GLOB.findall(text))) + "$"
        try:
            self.ways, end = _ways(body) if len(text) <= LONGEST else ([], -1)
        except (re.error, RecursionError, Unread):
            end = -1
        if end != len(body):
            raise Unread(refuse("a pattern of the quantised modules", text, ACCEPTED))
        self.steps = _steps(self.ways)

    def __call__(self, name):
        return name.ends(self.ways, 1) != 0


class Name:
    """The name of a module, and where in it letters stand, as bits."""

    def __init__(self, text):
        self.text, self.letters = text, {}
        for i, letter in enumerate(text):
            self.letters[letter] = self.letters.get(letter, 0) | 1 << i

    def ends(self, ways, start):
        """The bits of where one of the alternatives can end that begins at one of `start`."""
        found = 0
        for way in ways:
            here = start
            for part in way:
                here = here and self._after(*part, here)
            found |= here
        return found

    def _after(self, kind, what, often, here):
        """The bits of where one part can end."""
        if kind in "^$":
            return here & (1 if kind == "^" else 1 << len(self.text))
        if kind == "text":
            for letter in what:
                here = (here & self.letters.get(letter, 0)) << 1
            return here
        if kind == "group":
            return self.ends(what, here) | (here if often else 0)
        places = sum(bits for letter, bits in self.letters.items() if letter in what)
        after = (here & places) << 1
        if often in ("", "?"):
            return after | (here if often else 0)
        here = here if often == "*" else after
        return here | ((here & places) + places ^ places)  # the carry runs through letters that stand side by side
