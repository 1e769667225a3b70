"""Decode speeds as people measured them, one stream, beside the additive model.

Read are the columns that describe the setting, never the speed: bytes read, cards, split, link, engine, drafts, cache.
"""

import re
from dataclasses import dataclass

from ...catalog.gpus import by_name, gpu
from ...formula.units import GB
from ...formulas import speculation
from ...inputs import counted
from ..engine.memory import state_bytes, token_bytes
from ..engine.versions import Refused, Setting
from ..plan import assume, one_pass, products, wire
from ..plan import drafts as accepting
from ..plan.values import Ask
from ..shapes.models import by_name as model_by_name
from . import formats, transports
from .checks import judged, need_columns
from .measured import MIDDLE

SHORT_TOKENS = 1024  # a cache that one card reads in no time beside its weights
MOST_TOKENS, MOST_GB, MOST_DRAFTS = 10**8, 10**5, 16
UNKNOWN_SHAPE = {"hidden": 1, "heads": 1, "full_layers": 0, "head_elements": 1, "allreduces": 0}  # of one card
BARE = re.compile(r"^([2-5]0[5-9]0) ?(ti super|ti|super|)$", re.I)  # what people write of an RTX 3090 Ti: 3090Ti
SPLIT_BY_MEMORY = ("llama-cpp", "ik-llama-cpp", "exllama")  # engines that give a larger card more layers


@dataclass(frozen=True)
class Step:
    """One step of a row at one end of all ranges: times in seconds, and what the reads take at the full bandwidth."""

    busy_s: float
    sent_s: float
    wait_s: float
    full_read_s: float
    achieved_frac: float
    draft_s: float


def rows(columns, lines):
    """The Rows of a table with the columns of decode_cases.csv."""
    need_columns(columns, "id model weight_read_gb gpu tp pp link engine spec_tokens kv_dtype")
    return judged(lines, "tokens_per_s", predict)


def predict(line, gap=True):
    """((low, middle, high) in tokens/s, what was assumed) of one row; without `gap` the engine never makes it wait."""
    rates, drafts = [], line.number("spec_tokens", most=MOST_DRAFTS)
    accepted = _accepted(line, drafts)
    for end in range(len(assume.ENDS)):
        step = step_of(line, drafts, end)
        round_s = step.busy_s + step.sent_s + gap * step.wait_s + drafts * step.draft_s
        rates.append(speculation.round_tokens(drafts, accepted[end]) / round_s)
    said = f"a draft is accepted with a chance of {accepted[0]:.3g} to {accepted[-1]:.3g}" if drafts else ""
    return tuple(rates), said


def _accepted(line, drafts):
    """The chance of each next draft, slow to fast: what the row says in one of three ways, or the stated range."""
    told = {name: line.number(name, whole=False, most=1 + drafts) for name in accepting.WAYS if line.text(name)}
    ask = Ask("", (), mtp=drafts, **told)
    for name, value, fine, wanted in accepting.asked(ask) if drafts else ():
        if not fine:
            raise ValueError(f"{name} = {value:g} is not accepted: it must be {wanted}")
    return accepting.chances(ask) if drafts else assume.ACCEPTANCE


def step_of(line, drafts=0, end=MIDDLE):
    """The Step of a row with so many drafts."""
    if line.text("cuda_graphs", "yes") != "yes":
        raise ValueError("cuda_graphs is not yes: then the host's launches set the pace, which no column tells")
    ranks, stages = transports.split_of(line)
    cards, link, engine = cards_of(line, ranks * stages), wire.in_step(transports.of(line)), engine_of(line)
    depth, config = line.number("kv_depth_tokens", 0, most=MOST_TOKENS), _shape(line, ranks * stages, drafts)
    if drafts and not config.draft_layers:
        raise ValueError(f"spec_tokens is not predicted: {config.name} has no MTP layer")
    if "cpu" in line.text("quant").lower():
        raise ValueError("quant says that the processor computes a part, which no column measures")
    read, cache = _read_bytes(line, config), _cache_bytes(line, config, ranks, depth)
    whole, kernels = UNKNOWN_SHAPE, (0, 0)
    if config:
        whole, kernels = one_pass.shape(config, config.order), one_pass.waiting(config)
    mixture = config and any(module.name == "experts" for module in config.modules)
    routing_s = kernels[0] * products.ROUTING_S[2 - end] if mixture else 0

    def on(card, part):
        start = products.floor_s(card, products.PRODUCTS * kernels[0], end)
        return one_pass.stage(
            card, link, end, 1, engine, **whole, ranks=ranks, linear_s=0, tokens=1 + drafts, context_tokens=depth,
            mfu_frac=1, read_bytes=part * read, cache_read_bytes=part * cache, floor_s=part * start,
            experts_s=part * routing_s, gap_s=assume.wait(engine, *kernels, card, start).base_range[2 - end])

    held = []
    for stage, part in enumerate(_parts(cards, ranks, stages, engine)):
        shared = {card.key: card for card in cards[stage * ranks : (stage + 1) * ranks]}.values()
        held.append((part, max((on(card, part) for card in shared), key=lambda v: v.busy_s)))
    sent = sum(part * v.communication_s for part, v in held)
    sent += (stages - 1) * one_pass.handover_s(link, held[0][1].message_bytes, end)
    packed = read / config.read_bytes if drafts and formats.packed(line.text("quant")) else 1
    drafting = (config, cards[-ranks:], link, ranks, 1, drafts, end, engine, packed)
    return Step(sum(v.busy_s for _, v in held), sent, max(v.gap_s for _, v in held),
                sum((v.weight_read_s + v.kv_read_s) * v.achieved_frac for _, v in held), held[0][1].achieved_frac,
                one_pass.draft_view(*drafting).draft_s if drafts else 0.0)


def cards_of(line, count):
    """The cards of a row: one name for all, or each of them with a plus between, `rtx-5080 + 2x rtx-3060-12gb`."""
    names = [BARE.sub(r"RTX \1 \2", name.strip()).strip() for name in line.text("gpu").split("+")]
    found = tuple(gpu(by_name(name)) for name in (counted(names) if all(names) else names))
    if len(found) not in (1, count):
        raise ValueError(f"gpu = {line.text('gpu')[:60]!r} is not accepted: it must name one card, or all {count}")
    return found * (count // len(found))


def engine_of(line):
    """The engine of a row with its version, which may repeat the name."""
    return f"{line.text('engine')} {line.text('engine_version')}".strip()


def _parts(cards, ranks, stages, engine):
    """The part of the layers on each stage: even, or by memory where the engine splits so."""
    sizes = [sum(card.vram_bytes for card in cards[i * ranks : (i + 1) * ranks]) for i in range(stages)]
    by_memory = assume.engine(engine)[-1].key in SPLIT_BY_MEMORY
    return [size / sum(sizes) if by_memory else 1 / stages for size in sizes]


def _shape(line, gpus, drafts):
    """The model of a row; None where it is not known and not needed: one card, a short cache, no drafts."""
    try:
        return model_by_name(line.text("config") or line.text("model"))
    except ValueError:
        if gpus > 1 or line.number("kv_depth_tokens", 0) > SHORT_TOKENS or drafts:
            raise
        return None


def _read_bytes(line, config):
    """What a step reads of the weights: as the row says, or the shape in the row's format."""
    if line.text("weight_read_gb"):
        return line.number("weight_read_gb", whole=False, least=1e-3, most=MOST_GB) * GB
    if config is None:
        raise ValueError("weight_read_gb is empty, and the model's shape is not known")
    return formats.read_bytes(config, line.text("quant"))


def _cache_bytes(line, config, ranks, depth):
    """What a step reads of the cache on one GPU: of a layer with a window no more than that; a state is written too."""
    if config is None:
        return 0.0
    size = formats.cache_bytes(line.text("kv_dtype"))

    def read_bytes(layer, n=ranks):
        try:
            if layer.state:
                return 2 * state_bytes(layer.state, Setting(ranks=n))
            token = token_bytes(layer, Setting(ranks=n)) * size / formats.cache_bytes("bf16") if depth else 0
            return token * min(depth, layer.window_tokens or depth)
        except Refused:  # of vLLM, where heads do not divide: other engines cut where they like
            return read_bytes(layer, 1) / ranks

    return sum(count * (0 if layer.kind == "none" else read_bytes(layer)) for layer, count in config.alike.items())
