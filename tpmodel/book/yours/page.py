"""The page's HTML as it stands without a script, and the script: the planner and the answer, carried over."""

from html import escape
from importlib import resources

from ..carry.carry import Carrier
from . import answer, fields, stand

SCRIPT = "yours.js"
STILL = "Without JavaScript this is the answer for the setting shown; <code>tpmodel plan</code> answers for yours."


def fragment():
    """The fields and the answer to their start."""
    shown = [_field(field) for field in fields.fields()]
    open_ = [text for field, text in zip(fields.fields(), shown) if not field.more]
    more = [text for field, text in zip(fields.fields(), shown) if field.more]
    return "\n".join([
        f'<section class="tp-yours" id="{fields.NAME}">',
        f'<noscript><p class="tp-note">{STILL}</p></noscript>',
        '<form class="tp-controls" autocomplete="off" onsubmit="return false">', *open_,
        f'<details class="tp-more"><summary>More: {len(more)} fields</summary>', *more, "</details>",
        '<p class="tp-foot"><button type="reset" class="tp-reset">Reset</button>',
        f'<a class="tp-link" href="#{fields.NAME}">Link to this setting</a></p>',
        '<p class="tp-note" role="status"></p>', "</form>",
        f'<div class="tp-answer" aria-live="polite">{answer.first({})}</div>',
        f'<div class="tp-peer">{answer.peer_words({})}</div>',
        f'<div class="tp-rest">{answer.rest({})}</div>', "</section>",
        f'<script defer src="../_static/{SCRIPT}"></script>'])


def _field(field):
    identity = f"{fields.NAME}-set-{field.name}"
    if field.options is None:
        entry = (f'<span class="tp-typed"><input type="text" inputmode="decimal" id="{identity}" name="{field.name}" '
                 f'size="7" value="{field.start}"> {escape(field.unit)}</span>')
    else:
        chosen = lambda text: " selected" * (text == field.start)
        options = "".join(f'<option value="{escape(text)}"{chosen(text)}>{escape(words)}</option>'
                          for text, words in field.options.items())
        entry = f'<select id="{identity}" name="{field.name}">{options}</select>'
    return f'<div class="tp-control"><label for="{identity}">{escape(field.label)}</label>{entry}</div>'


def script():
    """The whole script of the page."""
    carrier = Carrier(stand.REPLACED, stand.EVALUATED, stand.KEPT)
    names = {name: carrier.refer(function) for name, function in (
        ("first", answer.first), ("rest", answer.rest), ("peers", answer.peer_words), ("reasons", answer.reasons),
        ("plain", fields.plain), ("check", fields.check), ("fieldOf", fields.field_of), ("plan", stand.document))}
    own = ", ".join(f"{name}: {function}" for name, function in names.items())
    part = lambda package, file: (resources.files(package) / file).read_text(encoding="utf-8")
    return "\n".join(["(() => {", '"use strict";', part("tpmodel.book.carry", "runtime.js"), carrier.program(),
                      f"const carried = {{ {own} }};", part(__package__, "glue.js"), "})();"]).replace("</", "<\\/")
