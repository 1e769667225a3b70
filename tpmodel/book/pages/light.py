"""Light pages: a page loads no script and no style that it does not use; the theme's icons are drawn by book.css."""

import re

from .mathml import readable

NEEDED = {  # asset -> what a page holds that uses it
    "katex": r"\(", "auto-render": r"\(", "sphinx-design": 'class="sd-', "design-tabs": 'class="sd-tab',
    "mystnb": 'class="cell'}
SCRIPT = r'\s*<script [^>]*src="[^"]*(?:{})\.js[^>]*></script>'
ICONS, SEARCH = "fontawesome", "fontawesome|searchtools|language_data|searchindex"  # nobody searches here as one types
ICON = re.compile(r'(?<=\})(?:\.fa-[\w-]+:+before,?)+\{content:"[^"]*"\}')


def drop_unneeded(app, page, template, context, doctree):
    """Leave out of a page the assets in NEEDED that it does not use."""
    body = context.get("body") or ""
    used = lambda asset: all(mark in body for name, mark in NEEDED.items() if name in str(asset.filename))
    for kind in ("script_files", "css_files"):
        context[kind] = [asset for asset in context.get(kind, ()) if used(asset)]


def finish(folder):
    """Take out of the built pages what the theme puts on each, and let their formulas be read without JavaScript."""
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        less = readable(re.sub(SCRIPT.format(ICONS if page.name == "search.html" else SEARCH), "", text))
        if less != text:
            page.write_text(less, encoding="utf-8")
    for file in (folder / "_static" / "scripts").glob("fontawesome.*"):
        file.unlink()
    for style in (folder / "_static" / "styles").glob("pydata-sphinx-theme.css"):
        style.write_text(ICON.sub("", style.read_text(encoding="utf-8")), encoding="utf-8")
