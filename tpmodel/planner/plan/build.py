"""Which build of a model is planned: its shape as asked for, the name it goes by in the line, and what to say of it."""

from dataclasses import replace
from pathlib import Path

from ... import inputs
from ...formula.units import GIB
from ..engine.architectures import pools
from ..shapes.models import find_config, quantised, quants, repository, shapes, sized, text_part

TOWER_AND_DRAFTS = ["*visual*", "*vision*", "*mtp*"]  # what no build has quantised, as vLLM calls it


def build(ask):
    """The shape that was asked about: in a format, of a size, without its vision tower."""
    if ask.quant is not None and ask.quant not in quants():
        raise inputs.refused("quant", ask.quant, f"it must be one of {', '.join(quants())}")
    config = find_config(ask.model) if ask.quant is None else quantised(ask.model, ask.quant)
    if loading(ask) and config.quant_method == "fp8":  # each rank quantises its own part, in blocks of its own
        config = replace(config, modules=tuple(replace(module, group=1) for module in config.modules))
    if ask.weights_gib is not None:
        config = sized(config, ask.weights_gib * GIB)
    if ask.text_only:
        left = tuple(module for module in config.modules if module.name != "vision")
        if left == config.modules and not text_part(ask.model):
            raise inputs.refused("text_only", True, f"{ask.model} has no vision tower to leave out")
        config = replace(config, modules=left)
    return config


def loading(ask):
    """vLLM's word for the format, where it quantises the weights while it loads them; None for a build."""
    ready = ask.quant is None or ask.repository or ask.weights_gib is not None
    return None if ready else quants()[ask.quant].get("loading")


def flags(ask):
    """The words of the line that make vLLM quantise while it loads."""
    sees = text_part(ask.model) or any(module.name == "vision" for module in find_config(ask.model).modules)
    beside = sees or ask.mtp
    left = ["--quantization-config.ignore", TOWER_AND_DRAFTS] if beside else []
    return ["--quantization", loading(ask), *left] if loading(ask) else []


def named(ask):
    """The model's name in the line: what was said, its repository, or the folder of its config.json."""
    path, own = Path(ask.model), repository(ask.model)
    if ask.repository:
        return ask.repository
    name = own or (ask.model if ask.model in shapes() else inputs.plain(path if path.is_dir() else path.parent))
    return name if ask.quant is None or loading(ask) else f"{Path(name).name}-{ask.quant}"


def words(ask, config):
    """What is taken of the build, as sentences."""
    said = []
    if ask.quant:
        said.append(f"{ask.quant}: every linear layer but output head, router, vision tower and MTP layer; these, "
                    f"embedding and norms stay in 16 bits (as in {quants()[ask.quant]['source']})")
    if text_part(ask.model):
        said.append(f"{ask.model} is the text part of a model that also sees: the line leaves its vision tower out; "
                    "with the path of its config.json the tower is counted")
    if pools(config):
        said.append("an embedding model: it decodes nothing; documents come in a queue that never runs dry")
    if ask.weights_gib is not None:
        said.append(f"the build weighs {ask.weights_gib:g} GiB, as said: its quantised weights are scaled to that")
    if loading(ask):
        said.append(f"vLLM quantises the 16-bit weights while it loads them: --quantization {loading(ask)}")
    return said


def unknown(ask):
    """What to do where the name in the line is nobody's: a sentence, or none."""
    known = ask.repository or loading(ask) or ask.quant is None and (repository(ask.model) or ask.model not in shapes())
    said = f"no repository of {named(ask)} is known: put the folder or the name of your build in its place"
    return [] if known else [said]
