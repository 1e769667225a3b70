"""What stands on the page in place of files: the catalog and the shapes as data, and functions that look them up."""

import re
from itertools import product

from ...catalog import assumptions, gpus, hosts, links, sourced
from ...formula import printers, view
from ...planner.engine import architectures, kernels, memory, takes
from ...planner.plan import assume, build, one_pass, overhead, placement, places, plan, products, wire
from ...planner.shapes import models
from ... import inputs
from . import fields


def known():
    """Every shape by name."""
    return {name: models.find_config(name) for name in models.shapes()}


def in_quants():
    """Every unquantised shape in every format."""
    plain = [name for name, config in known().items() if not config.quantised]
    return {quant: {name: models.quantised(name, quant) for name in plain} for quant in models.quants()}


def repositories():
    """The repository of each shape that has one."""
    return {name: found for name in models.shapes() if (found := models.repository(name))}


def text_parts():
    """Shapes that are the text part of a model that sees."""
    return {name for name in models.shapes() if models.text_part(name)}


def find_config(name):
    """The shape of a catalog name."""
    return known()[name]


def shapes():
    """The names of all shapes."""
    return known()


def quantised(name, quant):
    """A shape in a format."""
    if name not in in_quants()[quant]:
        raise inputs.refused("quant", quant, f"{name} is quantised already")
    return in_quants()[quant][name]


def repository(name):
    """Its repository."""
    return repositories().get(name)


def text_part(name):
    """Whether it is a text part."""
    return name in text_parts()


def host(key):
    """A class of hosts."""
    return hosts.hosts()[key]


def gpu(key):
    """A card."""
    return gpus.gpus()[key]


def same_names():
    """Of each card by its key, the others that it could mean."""
    return {key: gpus.namesakes(key, card) for key, card in gpus.gpus().items()}


def namesakes(text, card):
    """The others that a key could mean."""
    return same_names()[text]


def assumed(key):
    """An assumption."""
    return assumptions.assumptions()[key]


def slots():
    """Every slot by name, those of a generation and lanes first."""
    plain = [f"pcie{generation}-x{lanes}" for generation, lanes in product(links.TRANSFERS, links.LANES)]
    return {name: hosts.slot(name) for name in (*plain, *sourced.load(hosts.SLOTS))}


def slot(text):
    """(generation, lanes) of a slot."""
    return slots()[text]


def among(names, wanted):
    """What is accepted."""
    return f"it must be one of {', '.join(names)}"


def nothing(*_):
    """Nothing is found outside of the catalog."""
    return None


def shown(value):
    """A value in a refusal, of bearable length."""
    text = repr(value)
    return text if len(text) <= inputs.SHOWN else f"{text[:inputs.SHOWN // 2]}...{text[-inputs.SHOWN // 3:]}"


def named(ask):
    """The model's name in the line."""
    own = models.repository(ask.model)
    if ask.repository:
        return ask.repository
    name = own or ask.model
    return name if ask.quant is None or build.loading(ask) else f"{name.rpartition('/')[2]}-{ask.quant}"


def written():
    """Every formula in one line, by the name of what it gives."""
    return {name: re.sub(r"\b(Math|F)\.", "", printers.javascript_expression(form.tree))
            for name, form in view.formulas().items()}


def document(said):
    """The plan's own JSON of {field: text}."""
    return plan.whole(fields.ask(said)).document()


REPLACED = {
    models.find_config: find_config, models.shapes: shapes, models.quantised: quantised,
    models.repository: repository, models.text_part: text_part, gpus.gpu: gpu, gpus.namesakes: namesakes,
    assumptions.assumed: assumed, hosts.slot: slot, hosts.host: host, hosts._named: nothing, inputs.among: among,
    inputs.nearest: among, inputs.shown: shown, sourced.read_file: nothing, build.named: named,
}
EVALUATED = {fields.fields, written, known, in_quants, slots, same_names, repositories, text_parts, gpus.gpus,
             hosts.hosts,
             links.links, links.listed, assumptions.assumptions, models.models, models.quants, kernels.rules,
             architectures._table}
KEPT = {plan.make, takes.taken, memory.layout, memory.plan_model, one_pass.shape, one_pass.waiting, one_pass._given,
        one_pass._in_groups, overhead.stage_layers, placement.reads, placement.cache_bytes, placement.memories,
        placement.bytes_of, placement.stage_bytes, places.link_at, products.work, kernels.decide, assume.engine,
        assume.wait, assume.mfu_number, assume.achieved_number, assume.of_card, assume.pipeline, wire.at_end,
        wire.in_step, wire.numbers, wire.protocol}
