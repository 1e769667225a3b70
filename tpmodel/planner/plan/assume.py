"""What a plan has to assume: stated ranges, low / mid / high, each with its reason."""

import re
from itertools import product

from ...catalog.assumptions import assumed, assumptions, ends
from ...catalog.gpus import memory
from ...catalog.links import line_bytes_per_s, link
from ...catalog.sourced import Sourced
from ...formula.units import GIB, many
from ..engine import kernels
from ..engine.versions import RELEASE
from ..shapes.models import models
from . import wire

ENDS = ("low", "mid", "high")
MID, FAST = ENDS.index("mid"), ENDS.index("high")
ACHIEVED = ends("card", "achieved_frac")
VERSION = re.compile(r"[^0-9]*([0-9]{1,4})\.([0-9]{1,4})")
ENGINE = "vllm-0.33"  # where none is named
ENGINES = {alias: engine for engine in assumptions().values() for alias in engine.said.get("aliases", ())}
HOST_BYTES_PER_S = tuple(link(f"host-{way}").copy_bytes_per_s for way in  # article 2's copies
                         ("pcie4-x4-pageable", "pcie5-x16-pageable", "pcie5-x16-pinned"))
ACCEPTANCE = ends("drafts", "acceptance_frac")
DRAFT_ALLREDUCES = int(assumed("drafts").draft_allreduces)
PROMPT_TOKENS = 8192  # a choice
CHUNK_TOKENS = int(assumed("vllm").chunk_tokens)


def of_model(name, quantity):
    """(low, middle, high) of a number that was measured with this model; None where none was."""
    own = models().get(name)
    return own.numbers[quantity].base_range if own and quantity in own.numbers else None


def number(name, *entries):
    """The number of the catalog that counts: that of the first of these entries that has it."""
    return next(entry.numbers[name] for entry in entries if entry and name in entry.numbers)


def of_card(card, name):
    """A number of a card: its own, or that of any card."""
    return number(name, card, assumed("card"))


def engine(text, card=None):
    """The entries of an engine named in a text with or without its version, the one that counts first; on a card.

    >>> [entry.key for entry in engine("vLLM 0.19.2rc")], [entry.key for entry in engine("ik_llama.cpp b10450")]
    (['vllm-async', 'vllm'], ['ik-llama-cpp'])
    """
    alone = re.fullmatch(RELEASE, text.strip().lower())  # a release without a name is vLLM's
    name = max((alias for alias in ENGINES if alias in text.lower()), key=len, default="vllm" if alone else None)
    if name is None:
        return (assumed("engine"),)
    told = VERSION.search(text if alone else text.lower().partition(name)[2])
    release, whole = told and tuple(map(int, told.groups())), ENGINES[name]

    def holds(said):
        at = {word: tuple(map(int, said[word].split("."))) for word in ("since", "before") if word in said}
        memory = card.said.get("memory") if card else None
        return (all(release and (release >= edge if word == "since" else release < edge) for word, edge in at.items())
                and said.get("memory") in (None, memory))

    kept = [entry for entry in assumptions().values() if entry.said.get("of") == whole.key and holds(entry.said)]
    return (*kept, whole)


def other_engine(text):
    """The entry of an engine that is not vLLM, by its name; None for a release of vLLM.

    >>> other_engine("llama.cpp").name, other_engine("vllm-0.33")
    ('llama.cpp', None)
    """
    found = engine(text)[-1]
    return None if found.key in ("vllm", "engine") else found


def of_engine(name, text, *others):
    """The number of an engine by its printed name; of one that has none, that of the others, or vLLM's."""
    return number(name, *engine(text), *others, assumed("vllm"))


def pipeline(text):
    """How the stages of an engine work: "overlapped" with copies hidden, "in turn", or "stages", which wait for copies.
    """
    return engine(text)[-1].said.get("pipeline", "stages")


def wait(text, layers, states, card, counted_s=0):
    """What one pass waits with an engine: between two steps, and for the small kernels of its layers on a card.

    layers, states : all of the model, and those with a recurrent state
    counted_s : of the small kernels, what is counted elsewhere already

    >>> wait("vllm", 0, 0, assumed("card")).base_range
    (0.0002, 0.0015, 0.005)
    """
    known = (*engine(text, card), assumed("card"))
    gap, cycles, more, clock = (number(name, *known) for name in ("gap_s", "layer_cycles", "state_cycles", "clock_hz"))
    clock = card.numbers.get("clock_hz", clock)
    ends = [one + max(0.0, (layers * each + states * extra) / hertz - counted_s) for one, each, extra, hertz in zip(
        gap.base_range, cycles.base_range, more.base_range, reversed(clock.base_range))]
    said = f"{gap.source}; {layers:g} layers of {cycles.value:,g} cycles at {clock.base / 1e9:g} GHz: {cycles.source}"
    return Sourced(ends[1], "s", "computed", said, gap.date, low=ends[0], high=ends[2])


def draft_gap(text):
    """What each draft waits with an engine, beside the step that verifies."""
    return number("draft_gap_s", *engine(text), assumed("drafts"))


def achieved_number(text, card):
    """The part of the bandwidth that kernels reach: of this engine where it is known, else of the card, or of any."""
    return number("achieved_frac", *engine(text, card), card, assumed("card"))


def adds(card):
    """How fast a card's products add up in 32 bits: "half" where those of integers are four times those in 16 bits."""
    integers = card.numbers.get("int8_flop_per_s")
    return "half" if integers and integers.base > 3 * card.numbers["bf16_flop_per_s"].base else "whole"


def mfu_number(card, kernel, model=""):
    """What a kernel takes of the arithmetic rate: as measured with this model, in 16 bits on this card, or of its kind.

    >>> from ...catalog.gpus import gpu
    >>> [mfu_number(gpu(key), "marlin").value for key in ("a100-80gb", "rtx-3090")]
    [0.7, 0.88]
    """
    return number("mfu_frac", models().get(model), card if kernel == kernels.PLAIN else None, *_kinds(card, kernel))


def _kinds(card, kernel):
    """The entries of a kernel, on such a card first."""
    kinds = [entry for entry in assumptions().values() if entry.said.get("of") == kernel
             and entry.said.get("adds") == adds(card)]
    return kinds + [assumed(kernel)]


def grouped(card, kernel, end):
    """What a kernel keeps of its rate where it multiplies all experts at once."""
    return number("grouped_frac", *_kinds(card, kernel), assumed("experts")).base_range[end]


def host_bytes_per_s(card, end):
    """Of a copy from main memory to the card: no more than its slot moves."""
    own = card.numbers.get("copy_bytes_per_s")
    rate = (own.base_range if own else HOST_BYTES_PER_S)[end]
    slot = [card.numbers[name].value for name in ("pcie_generation", "pcie_lanes") if name in card.numbers]
    return min(rate, line_bytes_per_s(*slot)) if len(slot) == 2 else rate


def words(cards, link_entry, kind, config, ask):
    """The assumptions as sentences; numbers are low / mid / high."""
    joined = lambda numbers, scale=1, digits="g": " / ".join(f"{number / scale:{digits}}" for number in numbers)
    kinds, said = {card.key: card for card in cards}.values(), []
    for name, key, text, scale, digits in (
            ("achieved_frac", "card", "kernels reach {} of the memory bandwidth", 1, ".2g"),):
        say = lambda numbers: text.format(joined(numbers, scale, digits))
        own = {card.key: card.numbers[name] for card in kinds if name in card.numbers}
        said += [f"{key}: {say(number.base_range)} ({number.kind}: {number.source})" for key, number in own.items()]
        said += [f"{say(ends(key, name))} (estimate)"] if len(own) < len(kinds) else []
    for format, card in product({m.format: 0 for m in config.modules if m.read}, kinds):
        rule, plain = kernels.decide(ask.engine, format, card), format == kernels.PLAIN
        kernel, why = (ask.kernel, "as asked") if ask.kernel and not plain else (rule.kernel, rule.source)
        reach = mfu_number(card, kernel, config.name)
        said.append(f"{card.key}: {format} weights meet the kernel {kernel} ({why}), which reaches "
                    f"{joined(reach.base_range, digits='.2g')} of its rate in {kernels.KERNELS[kernel]} ({reach.kind})")
    known = engine(ask.engine)
    gap, cycles = (number(name, *known) for name in ("gap_s", "layer_cycles"))
    said += [f"{known[0].name} waits {joined(gap.base_range, 1e-3)} ms between two steps ({gap.kind}), and its small "
             f"kernels take {joined(cycles.base_range)} clock cycles a layer ({cycles.kind})",
             f"a pass takes at most {many(ask.batch_tokens, 'token')} of a prompt"]
    if not ask.prompt:
        said.append(f"prefill speed is for one prompt of {many(PROMPT_TOKENS, 'token')}, or of the context if shorter")
    for card in kinds:
        low, _, high = (end / GIB for end in memory(card).base_range)
        span = f", {low:.2f} to {high:.2f}" if low < high else ""
        said.append(f"{card.key}: the driver gives an engine {memory(card).base / GIB:.2f} GiB{span} "
                    f"({memory(card).kind}: {memory(card).source})")
    if config.draft_layers and not ask.mtp:
        said.append("the MTP layer is left out: vLLM loads it where something is drafted")
    if ask.mtp and {ask.acceptance, ask.accepted_per_draft, ask.acceptance_length} == {None}:
        said.append(f"a drafted token is accepted with a chance of {joined(ACCEPTANCE)} (estimate)")
    if len(cards) > 1:
        said.append(f"link: {link_entry.name} ({link_entry.numbers['link_bytes_per_s'].source})")
    said += filter(None, [wire.unsaid(link_entry)])
    for card in kinds if kind == "offload" else ():
        rates, own = [host_bytes_per_s(card, end) for end in range(len(ENDS))], "copy_bytes_per_s" in card.numbers
        whose = "its own copies" if own else "the copies of article 2, at most what its slot moves"
        said.append(f"{card.key}: offloaded weights come at {joined(rates, 1e9, '.1f')} GB/s ({whose})")
    return said
