"""{at}`decode-time: tp=1 GPU; kv_dtype=BF16`: a link that moves a figure there, so that it confirms an answer."""

from urllib.parse import quote

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import ReferenceRole

from .. import figures

WORDS = "In the figure"
LOG = logging.getLogger(__name__)


def setting(target):
    """(The figure, the texts of its controls) of `name: control=text; …`; a part without `=` is a preset."""
    name, _, parts = target.partition(":")
    made = next((figure for make in figures.ALL if (figure := make()).name == name), None)
    if made is None:
        raise ValueError(f"no figure is called {name!r}: it must be one of {', '.join(figures.CHAPTERS)}")
    texts = {}
    for part in filter(None, map(str.strip, parts.split(";"))):
        control, told, text = part.partition("=")
        texts |= {control: text} if told else made.preset(part)
    return made, made.texts(texts)


def address(target, stem):
    """The link of a setting from the chapter `stem`.

    >>> address("decode-time: tp=1 GPU", "decode")
    '#decode-time.tp=1%20GPU'
    >>> address("decode-time:", "card")
    'decode.html#decode-time.allreduce_latency_s=20'
    """
    figure, state = setting(target)
    moved = [control.name for control in figure.controls if state[control.name] != control.start]
    pairs = (f"{figure.name}.{name}={quote(state[name], safe='')}" for name in moved or [figure.controls[0].name])
    page = figures.CHAPTERS[figure.name]
    return f"{page}.html" * (page != stem) + "#" + "&".join(pairs)


class At(ReferenceRole):
    """The link, as `words <setting>` or as the setting alone."""

    def run(self):
        """A reference; a setting that the figure does not have is a warning, which stops a build."""
        words = self.title if self.has_explicit_title else WORDS
        try:
            where = address(self.target, self.env.docname.rpartition("/")[2])
        except ValueError as error:
            LOG.warning("%s", error, location=self.get_location())
            return [nodes.Text(words)], []
        return [nodes.reference(self.rawtext, words, refuri=where, internal=True)], []
