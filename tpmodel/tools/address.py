"""`tpmodel link`: the address of the book's page that asks what `tpmodel plan` is asked."""

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from .. import inputs
from ..planner.plan import command

BUILT = Path(__file__).resolve().parents[2] / "_build" / "html" / "book"
PAGE = "yours.html"


def run(args):
    """The address of the book's page “Your model, your cards” that asks the same, for models and cards of the catalog.
    """
    from ..book.yours import fields
    from ..catalog.gpus import gpu

    base = args.base or (BUILT.as_uri() if (BUILT / PAGE).exists() else None)
    if base is None:
        raise inputs.refused("base", "", "the book is not built here: say where it is, or run `make book`")
    for name in ("why", "explain"):
        if getattr(args, name):
            raise inputs.refused(name, getattr(args, name), "an address prints nothing: it is a flag of plan")
    asked = command.asked(args)
    asked = replace(asked, gpus=tuple(gpu(name).key for name in asked.gpus))
    pairs = [f"{fields.NAME}.{name}={quote(text, safe='')}" for name, text in fields.texts(asked).items()]
    where = base if base.endswith(".html") else f"{base.rstrip('/')}/{PAGE}"
    address = f"{where}#{'&'.join(pairs) or fields.NAME}"
    print(json.dumps({"address": address}) if args.json else address)
    return 0


def add_arguments(parser):
    """The flags of `tpmodel plan` that the page has fields for, and where the book is."""
    command.add_arguments(parser)
    parser.add_argument("--base", metavar="URL", help="where the book is (default: the built page)")
    parser.set_defaults(run=run)
