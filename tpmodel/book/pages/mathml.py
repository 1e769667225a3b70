r"""Mathematics that is read without JavaScript: beside the LaTeX that KaTeX draws, the same as MathML in a `noscript`.

Only what the book uses is understood; anything else is refused, so that no page shows half a formula.
"""

import html
import re

TOKEN = re.compile(r"\\(?:mathrm|text)\{[^{}]*\}|\\(?:begin|end)\{\w+\}|\\[A-Za-z]+|\\.|\d[\d.]*|\S", re.S)
LETTERS = dict(zip("alpha chi ell eta gamma kappa lambda mu nu rho sigma Sigma varepsilon varphi".split(),
                   "αχℓηγκλμνρσΣεφ"))
SIGNS = {"ge": "≥", "le": "≤", "gt": ">", "lt": "<", "cdot": "·", "times": "×", "sum": "∑",
         "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "-": "−", "*": "∗"}
NAMED, SPACES = ("max", "min", "log"), {",": "0.17em", ";": "0.28em", "quad": "1em"}
HIDDEN = ("<noscript><style>.tp-tex { display: none; } math { font-size: 1.15em; } "
          "div.math { display: block; text-align: center; padding: 0.4rem 0; }</style></noscript>")
KEPT = re.compile(r"(<(script|style|pre|code|title)\b.*?</\2>)", re.S)  # what KaTeX leaves as it is
LATEX = re.compile(r"\\\((?P<line>[^<]+?)\\\)|\\\[(?P<block>[^<]+?)\\\]")


def mathml(latex, block=False):
    r"""A formula as MathML.

    >>> mathml(r"t_w = 2")
    '<math><msub><mi>t</mi><mi>w</mi></msub><mo>=</mo><mn>2</mn></math>'
    """
    tokens = TOKEN.findall(latex.replace(r"\displaystyle", ""))[::-1]
    wide = ' displaystyle="true"' * (block or r"\displaystyle" in latex) + ' display="block"' * block
    inside = _row(tokens)
    if tokens:
        raise ValueError(f"LaTeX {latex!r} is not understood: it ends at {tokens[-1]!r}")
    return f"<math{wide}>{inside}</math>"


def _row(tokens, ends=()):
    """The MathML of all up to one of `ends`, which is taken too; tokens are taken from the back of the list."""
    found = []
    while tokens:
        token = tokens.pop()
        if token in ends:
            return "".join(found)
        found.append(_scripts(_atom(token, tokens), tokens))
    if ends:
        raise ValueError(f"LaTeX is not understood: it ends without {' or '.join(ends)}")
    return "".join(found)


def _scripts(base, tokens):
    """`base` with the sub- and superscripts that follow it."""
    found = {}
    while tokens and tokens[-1] in ("_", "^"):
        place = tokens.pop()
        found[place] = _atom(tokens.pop(), tokens)
    tag = "m" + "sub" * ("_" in found) + "sup" * ("^" in found)
    return f"<{tag}>{base}{found.get('_', '')}{found.get('^', '')}</{tag}>" if found else base


def _atom(token, tokens):
    """The MathML of one thing: a letter, a number, a sign, a group or a command with what belongs to it."""
    name = token.removeprefix("\\")
    if token == "{":
        return f"<mrow>{_row(tokens, '}')}</mrow>"
    if token.startswith(("\\mathrm{", "\\text{")):
        return f'<mi mathvariant="normal">{html.escape(name.partition("{")[2][:-1], quote=False)}</mi>'
    if name == "frac":
        return f"<mfrac>{_atom(tokens.pop(), tokens)}{_atom(tokens.pop(), tokens)}</mfrac>"
    if name == "bar":
        return f'<mover accent="true">{_atom(tokens.pop(), tokens)}<mo>¯</mo></mover>'
    if name == "left":
        opens, inside = tokens.pop(), _row(tokens, ("\\right",))
        return f"<mrow>{_fence(opens)}{inside}{_fence(tokens.pop())}</mrow>"
    if token == "\\begin{cases}":
        return f"<mrow><mo>{{</mo><mtable>{_cases(tokens)}</mtable></mrow>"
    return _letter(token, name)


def _letter(token, name):
    if token[0] == "\\" and name in SPACES:
        return f'<mspace width="{SPACES[name]}"/>'
    if token[0] == "\\" and name in (*LETTERS, *NAMED):
        return f"<mi>{LETTERS.get(name, name)}</mi>"
    if token[0] == "\\" and name not in SIGNS:
        raise ValueError(f"LaTeX command {token!r} is not understood: tpmodel/book/pages/mathml.py has none")
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    return f"<mi>{token}</mi>" if token.isalpha() else f"<mo>{html.escape(SIGNS.get(name, name), quote=False)}</mo>"


def _fence(token):
    name = token.removeprefix("\\")
    return "" if token == "." else f"<mo>{SIGNS.get(name, name)}</mo>"


def _cases(tokens):
    """The rows of `cases`, up to its end."""
    rows, cells = [], []
    while True:
        cell, ends = [], ("&", "\\\\", "\\end{cases}")
        while tokens[-1] not in ends:
            cell.append(_scripts(_atom(tokens.pop(), tokens), tokens))
        cells.append(f"<mtd>{''.join(cell)}</mtd>")
        end = tokens.pop()
        if end != "&":
            rows.append(f"<mtr>{''.join(cells)}</mtr>")
            cells = []
        if end == ends[-1]:
            return "".join(rows)


def readable(page):
    """A built page with each formula twice: as LaTeX, hidden where there is no JavaScript, and as MathML there."""
    if HIDDEN in page or not LATEX.search(page):
        return page

    def both(found):
        latex, block = html.unescape(found["line"] or found["block"]), found["block"] is not None
        return f'<span class="tp-tex">{found[0]}</span><noscript>{mathml(latex, block)}</noscript>'

    head, body, rest = page.partition("<body")
    parts = KEPT.split(rest)  # text, what is kept, its tag, text, …
    parts[::3] = [LATEX.sub(both, part) for part in parts[::3]]
    del parts[2::3]
    return head.replace("</head>", HIDDEN + "</head>", 1) + body + "".join(parts)
