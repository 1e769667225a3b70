"""`plan`: one model on given GPUs, for one way to split it or for the best of all."""

from dataclasses import replace

from ...formula.units import GIB
from ..engine import starts
from ..engine.versions import Refused, TooMany, unread
from ..shapes.models import quants
from . import assume, build, crossover, line, placement, places, verdict, ways
from .machine import check, machine, meant, model
from .values import Ask, Plan

PEER_FIELDS = ("link", "link_name", "fits", "max_context_tokens", "decode", "prefill", "split", "compared", "verdict",
               "command")


def plan(model, gpus, *more, **fields):
    """The plan as plain values; see the command line for what each field is.

    >>> plan("qwen3-8b", ["h200"])["split"]["kind"]
    'one'
    """
    return whole(Ask(model, tuple(gpus), *more, **fields)).document()


def whole(ask):
    """The Plan for what was asked; where the link was not said, with the same over peer access."""
    made = make(ask)
    return replace(made, with_peer_access=peers(made))


def make(ask):
    """The Plan over the link that was said, or through host memory."""
    check(ask)
    rig, config, setting, tried, refused = _tried(ask)
    ask = replace(ask, goal="prefill") if setting.pooling else ask
    best = verdict.choose(tried, ask.goal)
    met = crossover.of_ways(config, rig, tried, setting, best, ask)
    said = assume.words(rig.cards, rig.link, best.placement.kind, config, ask) + build.words(ask, config)
    said += filter(None, [places.reach(rig.link, len(rig.cards))])
    if best.util < ask.util:
        said.append(f"--gpu-memory-utilization is {line.share(best.util)} in place of {ask.util:g}: "
                    "vLLM takes the same share of each GPU, and no more is free")
    if ask.batch == 1 and best.at_once and not ask.max_num_seqs:
        said.append(f"--max-num-seqs {best.at_once}: each sequence that may run takes memory, and in a model with "
                    "states a block, without which vLLM refuses to start; its own default is "
                    f"{max(map(starts.default_sequences, best.placement.cards))}")
    cards, placed = meant(ask, rig.cards), best.placement
    notes = [starts.check_free(placed.cards, rig.reserves_bytes, best.util, placed.together, setting.rules),
             *build.unknown(ask), *line.copies(placed, config), *line.apart(placed.cards),
             *line.elsewhere(rig.cards), *unread(ask.engine)]
    notes = list(filter(None, notes))
    rival = crossover.rival(config, rig, tried, setting, best, ask)
    words = verdict.sentence(best, tried, ask.goal, ask.batch, rival) + verdict.meeting(met, ask.goal)
    if not (ask.quant or config.quantised) and (not best.fits or best.placement.offloaded_bytes):
        words += _hint(ask, rig)
    other = assume.other_engine(ask.engine)
    if other:
        words += (f"; {other.name} counts its memory by rules of its own: memory and context are those of "
                  f"{assume.ENGINE}, and there is no line for it.")
    command = line.command(build.named(ask), best, ask, config, setting.kv_dtype) if best.fits and not other else ""
    return Plan(ask, config, setting, rig, best, tuple(tried), refused, met, words, command,
                tuple(said + cards + notes), rival, None, tuple(cards + (notes if command else [])))


def _tried(ask):
    """(machine, shape, setting, every way to split that the engine takes, {why not: a way that it refuses})."""
    rig, (config, setting), tried, refused, errors = machine(ask), model(ask), [], {}, []
    used, _ = placement.budgets(rig.cards, ask.util, rig.reserves_bytes, 1)
    starts.check_free(rig.cards, rig.reserves_bytes, used, 1, setting.rules)  # of each alone
    asked = [(ask.parallel, ask.layers)] if ask.parallel != "auto" else ways.candidates(config, rig, setting, ask)
    for kind, layers in asked:
        try:
            tried.append(ways.way(config, rig, setting, ask, kind, layers))
        except Refused as error:
            if ask.parallel != "auto":
                raise
            refused.setdefault(str(error), kind)
            errors.append(error)
    stopped = [error for error in errors if isinstance(error, TooMany)]
    if stopped and not any(way.fits for way in tried):
        raise max(stopped, key=lambda error: error.blocks)
    if not tried:
        raise ValueError(f"no way to split is possible: {'; '.join(refused)}")
    return rig, config, setting, tried, refused


def _hint(ask, rig):
    """The first format in which the model would fit without offload, in words; empty where none would do."""
    usual = ("one", "tp", "pp") if len(rig.cards) > 1 else ("one",)
    kinds = usual if ask.parallel in ("auto", "offload") else (ask.parallel,)
    for quant in quants():
        other = replace(ask, quant=quant)
        config, setting = model(other)
        if config.weights_bytes > sum(card.vram_bytes for card in rig.cards):
            continue
        for kind in kinds:
            try:
                way = ways.way(config, rig, setting, other, kind, ask.layers)
            except Refused:
                continue
            if way.fits and not way.placement.offloaded_bytes:
                return f"; --quant {quant} would fit with {config.weights_bytes / GIB:,.1f} GiB of weights"
    return ""


def peers(made):
    """The same question over peer access, and how to know which it is; None where the link was said or is that one,
    where one GPU, the host or no CUDA has none, and where the cards' slots are not known."""
    ask, rig = made.ask, made.machine
    if ask.link is not None or len(rig.cards) == 1 or line.elsewhere(rig.cards):
        return None
    name, bridge = places.peer(rig.cards), places.own(rig.cards, "nvlink")
    slots = all("pcie_lanes" in card.numbers for card in rig.cards)
    here = places.place(ask.host, ask.slot, rig.cards).peers
    if name == rig.link.key or not here or name == "p2p" and not slots:
        return None
    known = ["`nvidia-smi topo -p2p r` says OK where the driver allows peer access",
             "`NCCL_DEBUG=INFO` prints via P2P where NCCL uses it, via SHM where not",
             "`tpmodel measure` times it"]
    place = {"host": ask.host, "slot": ask.slot} if name == "p2p" else {"host": None, "slot": None}
    found = replace(ask, link=name, **place)
    known += filter(None, [places.reach(machine(found).link, len(rig.cards))])
    if bridge and bridge != name and len(rig.cards) == 2:
        known.append(f"where a bridge joins the cards, say --link {bridge}")
    found = make(found).document()
    return {name: found[name] for name in PEER_FIELDS} | {"how_to_know": "; ".join(known)}
