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
    """The address of the book's page “Your model, your cards” that asks the same, for what the catalog has."""
    from ..book.yours import fields
    from ..planner.plan.plan import make

    base = args.base or (BUILT.as_uri() if (BUILT / PAGE).exists() else None)
    if base is None:
        raise inputs.refused("base", "", "the book is not built here: say where it is, or run `make book`")
    for name in ("why", "explain"):
        if getattr(args, name):
            raise inputs.refused(name, getattr(args, name), "an address prints nothing: it is a flag of plan")
    asked = _named(command.asked(args))
    make(asked)  # refuses what plan does
    pairs = [f"{fields.NAME}.{name}={quote(text, safe='')}" for name, text in fields.texts(asked).items()]
    address = f"{_page(base)}#{'&'.join(pairs) or fields.NAME}"
    print(json.dumps({"address": address}) if args.json else address)
    return 0


def _named(asked):
    """A question with its cards, host and slot by the names that the page has for them."""
    from ..catalog import hosts, sourced
    from ..catalog.gpus import gpu
    from ..planner.plan.places import NOT_SAID

    host, slot = asked.host, asked.slot
    if host and host.strip():
        first, *more = inputs.counted([host])
        key = hosts.host(first).key
        host = None if key in NOT_SAID else f"{len(more) + 1}x {key}" if more else key
    if slot and slot not in sourced.load(hosts.SLOTS) and "shared" not in slot.split():
        slot = "pcie{}-x{}".format(*hosts.slot(slot))
    return replace(asked, gpus=tuple(gpu(name).key for name in asked.gpus), host=host, slot=slot)


def _page(base):
    """The address of the page, of that of the book's folder or of the page itself."""
    where = base.partition("#")[0].partition("?")[0].rstrip("/")
    last = where.rpartition("/")[2]
    if last.endswith(".html") and last != PAGE:
        raise inputs.refused("base", base, f"it must be the folder of the book's pages, or the address of {PAGE}")
    return where if last in (PAGE, PAGE.removesuffix(".html")) else f"{where}/{PAGE}"


def add_arguments(parser):
    """The flags of `tpmodel plan` that the page has fields for, and where the book is."""
    command.add_arguments(parser)
    parser.add_argument("--base", metavar="URL", help="where the book is (default: the built page)")
    parser.set_defaults(run=run)
