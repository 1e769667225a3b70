"""What the page asks for, and what was asked: texts of fields -> the planner's question, the command, the address."""

import re
from dataclasses import dataclass
from functools import cache
from itertools import product

from ... import inputs
from ...catalog import gpus, hosts, links, sourced
from ...planner.engine.memory import KV_BYTES
from ...planner.engine.versions import VERSIONS
from ...planner.plan.assume import ENGINES
from ...planner.plan.values import Ask
from ...planner.shapes.models import quants, shapes

NAME = "yours"  # of the page in an address
MOST_GPUS = 8
DEFAULTS = {"engine": Ask.engine}  # of `tpmodel plan`, which need not be said
WHOLE, REAL = re.compile(r"[0-9]{1,9}"), re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,6})?|\.[0-9]{1,6}")
GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
TYPED = {"": "a whole number", "tokens": "a whole number of tokens", "GiB": "a number of GiB",
         "of 1": "a number up to 1"}


@dataclass(frozen=True)
class Field:
    """One field: a choice where it has `options` (text in an address -> words), else typed; its `flag`."""

    name: str
    label: str
    start: str
    flag: str
    options: dict = None
    unit: str = ""
    more: bool = False

    def accepts(self, text):
        """Whether a text may stand in it; nothing stands for not said."""
        if self.options is not None:
            return text in self.options
        pattern = REAL if self.unit in ("GiB", "of 1") else WHOLE
        return text == "" or pattern.fullmatch(text) is not None

    @property
    def accepted(self):
        """In words."""
        return "one of the list" if self.options is not None else f"{TYPED[self.unit]}, or nothing"


@cache
def fields():
    """Every field in order."""
    same = lambda names: {name: name for name in names}
    slots = {f"pcie{generation}-x{lanes}": f"PCIe {generation}.0 x{lanes}"
             for generation, lanes in product(links.TRANSFERS, links.LANES)}
    slots |= {key: entry.name for key, entry in sourced.load(hosts.SLOTS).items()}
    caches = same(name for name in KV_BYTES if name != "fp32")
    places = {key: entry.name for key, entry in hosts.hosts().items() if not key.startswith("not-said")}
    places |= {f"2x {key}": f"{words}, both sockets" for key, words in places.items()}
    wires = {"shm": "through host memory", "p2p": "peer access over PCIe"} | {
        key: entry.name for key, entry in links.listed().items() if key.startswith("nvlink")}
    cards = {key: entry.name for key, entry in gpus.gpus().items()}
    releases = [f"vllm-{rule.since[0]}.{rule.since[1]}" for rule in reversed(VERSIONS) if rule.since > (0, 0)]
    others = sorted({entry.name for entry in ENGINES.values()} - {"vLLM"})
    said = lambda options, nothing="not said": {"": nothing} | options
    return (
        Field("model", "Model", "qwen3.8-27b-nvfp4", "--model", same(shapes())),
        Field("quant", "Build", "", "--quant", said(same(quants()), "as the model's own")),
        Field("gpu", "Card", "rtx-5060-ti-16gb", "--gpu", cards),
        Field("count", "How many", "2", "", same(map(str, range(1, MOST_GPUS + 1)))),
        Field("link", "Link between them", "", "--link", said(wires)),
        Field("kv", "Cache format", "fp8", "--kv-dtype", said(caches, "as the build")),
        Field("second", "One of another kind", "", "", said(cards, "none"), more=True),
        Field("host", "They sit in", "", "--host", said(places), more=True),
        Field("slot", "Slot of the slower", "", "--slot", said(slots), more=True),
        Field("context", "Context that must fit", "", "--context", unit="tokens", more=True),
        Field("prompt", "Prompt", "", "--prompt", unit="tokens", more=True),
        Field("drafts", "Drafts of the MTP layer", "", "--mtp", more=True),
        Field("users", "Users at once", "", "--batch", more=True),
        Field("reserve", "Taken before the start", "", "--reserve-gib", unit="GiB", more=True),
        Field("util", "Utilisation", "", "--util", unit="of 1", more=True),
        Field("engine", "Engine", "vllm-0.33", "--engine", same([*releases, *others]), more=True))


def plain(text):
    """A typed text without the commas that part its groups."""
    text = text.strip()
    return text.replace(",", "") if GROUPED.fullmatch(text) else text


def check(said):
    """Refuse what is no field, or no text of it."""
    known = {field.name: field for field in fields()}
    for name, text in said.items():
        if name not in known:
            raise inputs.refused(name[:40], text, f"the fields are {', '.join(known)}")
        if not known[name].accepts(text):
            raise inputs.refused(name, text, f"it must be {known[name].accepted}")


def ask(said):
    """The planner's question of {field: text}; what is no text of a field is refused."""
    check(said)
    known = {field.name: field for field in fields()}
    text = lambda name: said.get(name, known[name].start)
    whole = lambda name: int(text(name)) if text(name) else None
    cards = (text("gpu"), text("second")) if text("second") else (text("gpu"),) * int(text("count"))
    if text("second") and text("count") not in ("1", "2"):
        raise inputs.refused("count", text("count"), "with one of another kind it must be 2, one of each")
    several = lambda name: text(name) or None if len(cards) > 1 else None  # one card has no link
    return Ask(text("model"), cards, link=several("link"), kv_dtype=text("kv") or None, context=whole("context"),
               util=float(text("util") or Ask.util), reserve_gib=text("reserve") or Ask.reserve_gib,
               mtp=whole("drafts") or 0, batch=whole("users") if text("users") else 1, engine=text("engine"),
               prompt=whole("prompt"), host=several("host"), slot=several("slot"), quant=text("quant") or None)


def texts(asked):
    """The other way: {field: text} of a question, of what differs from the start; refused where the page cannot ask it.
    """
    cards, first = asked.gpus, Ask(asked.model, asked.gpus)
    known = {"model": asked.model, "quant": asked.quant, "gpu": cards[0], "count": len(cards), "link": asked.link,
             "kv": asked.kv_dtype, "second": None, "host": asked.host, "slot": asked.slot, "context": asked.context,
             "prompt": asked.prompt, "drafts": asked.mtp or None, "users": asked.batch if asked.batch > 1 else None,
             "reserve": asked.reserve_gib if asked.reserve_gib != first.reserve_gib else None,
             "util": asked.util if asked.util != first.util else None, "engine": asked.engine}
    if len(set(cards)) == 2 and len(cards) == 2:
        known |= {"second": cards[1], "count": "2"}
    elif len(set(cards)) > 1:
        raise inputs.refused("gpu", ", ".join(cards), "the page takes equal GPUs, or one each of two kinds")
    found = {name: "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
             for name, value in known.items()}
    for field in fields():
        if not field.accepts(found[field.name]):
            wanted = f"it must be {field.accepted}" if field.options is None else inputs.among(
                [text for text in field.options if text], found[field.name])
            raise inputs.refused(field.flag.strip("-") or field.name, found[field.name], f"on the page {wanted}")
    back = ask(found)
    other = next((name for name in Ask.__dataclass_fields__ if getattr(back, name) != getattr(asked, name)), None)
    if other:
        raise inputs.refused(other, getattr(asked, other), "the page has no field for it")
    return {field.name: found[field.name] for field in fields() if found[field.name] != field.start}


def command(said):
    """The `tpmodel plan` of {field: text}."""
    words, count = ["tpmodel plan"], said.get("count", "2")
    alone = count == "1" and not said.get("second")  # one card has no link
    for field in fields():
        text = "" if alone and field.name in ("link", "host", "slot") else said.get(field.name, field.start)
        if field.name == "gpu":
            count = "" if said.get("second") or alone else f"{count}x "
            words += ["--gpu", f'"{count}{text}"' if count else text]
        elif field.name == "second" and text:
            words += ["--gpu", text]
        elif field.flag and text and (field.name == "model" or text != DEFAULTS.get(field.name)):
            words += [field.flag, f'"{text}"' if " " in text else text]
    return " ".join(words)




CALLED = {"kv_dtype": "kv", "mtp": "drafts", "batch": "users", "reserve-gib": "reserve", "max_num_seqs": "users",
          "ranks": "count", "stages": "count"}  # what the planner calls a field


def field_of(message):
    """The field that a refusal is about; empty where it is about several."""
    name = message.partition(" = ")[0]
    name = CALLED.get(name, name)
    return name if name in {field.name for field in fields()} else ""
