"""Sphinx extension of the book: figures come out live, numbers come from the notebooks, stale outputs are made anew."""

import hashlib
import html
import os
import shutil
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from myst_nb.ext.glue.crossref import PendingGlueReference, read_glue_cache
from myst_nb.ext.glue.roles import PasteTextRole
from sphinx.transforms.post_transforms import SphinxPostTransform

from ..live.figure import PAGE_VARIABLE
from ..yours import page as yours
from .at import At
from .glossary import Vocabulary
from .legend import legend
from .light import drop_unneeded, finish

PACKAGE = Path(__file__).resolve().parents[2]
OUTPUTS = "tpmodel.sha256"  # beside the cache of outputs: the package that made them
CLEAN = "clean.sha256"  # what the last build was made from, if it gave no warning


def fingerprint(*words):
    """A hash of the package, its code and its data, and of further words."""
    digest = hashlib.sha256(repr(words).encode())
    for file in sorted(PACKAGE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(str(file.relative_to(PACKAGE)).encode() + file.read_bytes())
    return digest.hexdigest()


def begin(app, config):
    """Drop the outputs that another package made; a build that fails or is killed from here on leaves no CLEAN."""
    build = Path(app.outdir).parent
    build.mkdir(parents=True, exist_ok=True)
    outputs, clean, settings = build / OUTPUTS, build / CLEAN, Path(app.srcdir) / "_config.yml"
    if not outputs.exists() or outputs.read_text() != fingerprint():
        shutil.rmtree(build / ".jupyter_cache", ignore_errors=True)
        outputs.write_text(fingerprint())
    app.tpmodel_now = fingerprint(Path(app.outdir).name, config.nitpicky, settings.exists() and settings.read_bytes())
    app.tpmodel_clean = clean.exists() and clean.read_text() == app.tpmodel_now
    clean.unlink(missing_ok=True)


def outdated(app, env, added, changed, removed):
    """Every page or none: what Sphinx does not read and write again, it does not warn of again."""
    return set() if app.tpmodel_clean and not (added or changed or removed) else set(env.found_docs) - added


def end(app, error):
    """Only after a build without a warning the next one may leave pages as they are."""
    if error is None:
        (Path(app.outdir) / "_static" / yours.SCRIPT).write_text(yours.script(), encoding="utf-8")
        finish(Path(app.outdir))
    if error is None and not app._warncount:
        (Path(app.outdir).parent / CLEAN).write_text(app.tpmodel_now)


class Number(PasteTextRole):
    """{n}`decode.step_ms`: the text that notebooks/decode.ipynb told under the name step_ms."""

    def run(self):
        stem, _, name = self.text.partition(".")
        self.text = f"/notebooks/{stem}.ipynb::{name}:s"
        return super().run()


def kind(name, rawtext, text, lineno, inliner, options=None, content=()):
    """{kind}`computed`: the kind of a number as a small mark."""
    return [nodes.inline(rawtext, text, classes=["tp-kind", "tp-" + text.split(",")[0].split()[0]])], []


class Yours(Directive):
    """{yours}: the fields of the planner and its answer."""

    def run(self):
        """The raw HTML."""
        return [nodes.raw("", yours.fragment(), format="html")]


class GluedMath(SphinxPostTransform):
    """Mathematics glued from a notebook: MyST-NB shows it across documents only as plain text."""

    default_priority = 4  # just before MyST-NB's own

    def apply(self, **_):
        for node in list(self.document.findall(PendingGlueReference)):
            output = read_glue_cache(self.env.mystnb_config.output_folder, node.refdoc).get(node.key, {})
            data = output.get("data", {})
            latex = data.get("text/latex")
            if latex and node.gtype != "text":
                latex = latex.strip("$").removeprefix("\\displaystyle").strip()
                shown = nodes.math_block(latex, latex, nowrap=False, number=None)
                node.replace_self([shown, *self.legend(node.key, data.get("text/plain", ""))])

    def legend(self, key, said):
        """The list below the formula: each letter, its meaning and value, then where they are from."""
        title, rows = legend(self.env.docname.rpartition("/")[2], key, said)
        items = [nodes.list_item("", nodes.paragraph("", "", nodes.math(symbol, symbol), nodes.Text(
            f" {meaning}" + f": {value}" * bool(value)))) for symbol, meaning, value in rows]
        uri = self.app.builder.get_relative_uri(self.env.docname, "book/symbols")
        words = f"Values: “{title.rstrip('.')}” as it starts. " * bool(title)
        link = nodes.reference("", "All letters", refuri=uri)
        items.append(nodes.list_item("", nodes.paragraph("", "", nodes.Text(words), link)))
        return [nodes.bullet_list("", *items, classes=["tp-legend"])] if rows else []


def escape_math(app, doctree, docname):
    """sphinxcontrib-katex writes display mathematics as it is: a `<` would open a tag."""
    for block in doctree.findall(nodes.math_block):
        block.children = [nodes.Text(html.escape(block.astext(), quote=False))]


def name_the_folds(app, page, template, context, doctree):
    """A screen reader is told what the fold beside a chapter of the contents opens: the theme's has an icon alone."""
    made, named = context.get("generate_toctree_html"), '<summary aria-label="The notebook of this chapter">'
    if made:  # another theme has none
        context["generate_toctree_html"] = lambda kind, **more: (
            made(kind, **more) if kind == "raw" else str(made(kind, **more)).replace("<summary>", named))


def setup(app):
    """Called by Sphinx."""
    os.environ[PAGE_VARIABLE] = "page"
    app.add_post_transform(GluedMath)
    app.add_role("n", Number())
    app.add_directive("yours", Yours)
    app.add_role("kind", kind)
    app.add_role("at", At())
    app.add_directive("vocabulary", Vocabulary)
    app.connect("config-inited", begin)
    app.connect("env-get-outdated", outdated)
    app.connect("build-finished", end, priority=1000)  # last: others copy files then, and warn
    app.connect("doctree-resolved", escape_math)
    app.connect("html-page-context", name_the_folds, priority=1000)  # after the theme's own
    app.connect("html-page-context", drop_unneeded, priority=1001)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
