"""Sphinx extension of the book: figures come out live, numbers come from the notebooks, stale outputs are made anew."""

import hashlib
import html
import os
import shutil
from pathlib import Path

from docutils import nodes
from myst_nb.ext.glue.crossref import PendingGlueReference, read_glue_cache
from myst_nb.ext.glue.roles import PasteTextRole
from sphinx.transforms.post_transforms import SphinxPostTransform

from .figure import PAGE_VARIABLE

PACKAGE = Path(__file__).resolve().parents[1]
STAMP = "tpmodel.sha256"


def fingerprint():
    """A hash of the package: its code and its data."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*")):
        if file.suffix in (".py", ".toml", ".csv"):
            digest.update(str(file.relative_to(PACKAGE)).encode() + file.read_bytes())
    return digest.hexdigest()


def forget_stale_outputs(app, config):
    """Notebook outputs are cached by the notebook alone; drop them when the package has changed."""
    build = Path(app.outdir).parent
    stamp = build / STAMP
    now = fingerprint()
    app.tpmodel_changed = not stamp.exists() or stamp.read_text() != now
    if app.tpmodel_changed:
        shutil.rmtree(build / ".jupyter_cache", ignore_errors=True)
        build.mkdir(parents=True, exist_ok=True)
        stamp.write_text(now)


def outdated(app, env, added, changed, removed):
    """Every page is read again when the package has changed."""
    return set(env.found_docs) - added if app.tpmodel_changed else set()


class Number(PasteTextRole):
    """{n}`decode.step_ms`: the text that notebooks/decode.ipynb told under the name step_ms."""

    def run(self):
        stem, _, name = self.text.partition(".")
        self.text = f"/notebooks/{stem}.ipynb::{name}:s"
        return super().run()


def kind(name, rawtext, text, lineno, inliner, options=None, content=()):
    """{kind}`computed`: the kind of a number as a small mark."""
    return [nodes.inline(rawtext, text, classes=["tp-kind", "tp-" + text.split(",")[0].split()[0]])], []


class GluedMath(SphinxPostTransform):
    """Mathematics glued from a notebook: MyST-NB shows it across documents only as plain text."""

    default_priority = 4  # just before MyST-NB's own

    def apply(self, **_):
        for node in list(self.document.findall(PendingGlueReference)):
            folder = self.env.mystnb_config.output_folder
            output = read_glue_cache(folder, node.refdoc).get(node.key, {})
            latex = output.get("data", {}).get("text/latex")
            if latex and node.gtype != "text":
                latex = latex.strip("$").removeprefix("\\displaystyle").strip()
                node.replace_self(nodes.math_block(latex, latex, nowrap=False, number=None))


def escape_math(app, doctree, docname):
    """sphinxcontrib-katex writes display mathematics as it is: a `<` would open a tag."""
    for block in doctree.findall(nodes.math_block):
        block.children = [nodes.Text(html.escape(block.astext(), quote=False))]


def setup(app):
    """Called by Sphinx."""
    os.environ[PAGE_VARIABLE] = "page"
    app.add_post_transform(GluedMath)
    app.add_role("n", Number())
    app.add_role("kind", kind)
    app.connect("config-inited", forget_stale_outputs)
    app.connect("env-get-outdated", outdated)
    app.connect("doctree-resolved", escape_math)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
