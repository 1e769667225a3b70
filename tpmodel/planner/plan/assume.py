"""What a plan has to assume: stated ranges, low / mid / high, each with its reason."""

from ...catalog.assumptions import assumed, assumptions, ends
from ...catalog.links import line_bytes_per_s, link
from ...formula.units import GIB
from ..shapes.models import models
from . import wire

ENDS = ("low", "mid", "high")
MID, FAST = ENDS.index("mid"), ENDS.index("high")
ACHIEVED = ends("card", "achieved_frac")
MFU = {format: ends(format, "mfu_frac") for format in ("bf16", "fp8", "fp4")}
RATE = {format: f"{format}_flop_per_s" for format in MFU}
ENGINES = {alias: engine for engine in assumptions().values() for alias in engine.said.get("aliases", ())}
GAPS_S = {alias: engine.numbers["gap_s"].base_range[::-1] for alias, engine in ENGINES.items()}  # slow to fast
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


def gap_number(engine):
    """The wait between two steps of an engine; of one that is not listed, the widest range."""
    return of_engine("gap_s", engine, assumed("engine"))


def _engines(text):
    """The engines whose aliases stand in a printed name, the longest alias first."""
    return [ENGINES[alias] for alias in sorted(ENGINES, key=len, reverse=True) if alias in text.lower()]


def of_engine(name, engine, *others):
    """The number of an engine by its printed name; of one that has none, that of the others."""
    return number(name, *_engines(engine), *others, assumed("vllm"))


def pipeline(engine):
    """How the stages of an engine work: "overlapped" with copies hidden, "in turn", or "stages", which wait for copies.
    """
    return next((entry.said["pipeline"] for entry in _engines(engine) if "pipeline" in entry.said), "stages")


def gap_range_s(engine):
    """The same, slow, middle, fast.

    >>> gap_range_s("ik_llama.cpp") == GAPS_S["llama.cpp"]
    True
    """
    return gap_number(engine).base_range[::-1]


def mfu_number(card, format, model=""):
    """What a pass takes of the arithmetic rate: as measured with this model, in 16 bits on this card, or of any."""
    return number("mfu_frac", models().get(model), card if format == "bf16" else None, assumed(format))


def mfu_frac(card, format, end, model=""):
    """The same at one end of its range."""
    return mfu_number(card, format, model).base_range[end]


def overhead_bytes(config, card, end):
    """What the card holds beside weights and cache, by card or model where measured; the most at the low end."""
    return number("overhead_bytes", card, models().get(config.name), assumed("vllm")).base_range[2 - end]


def host_bytes_per_s(card, end):
    """Of a copy from main memory to the card: no more than its slot moves."""
    own = card.numbers.get("copy_bytes_per_s")
    rate = (own.base_range if own else HOST_BYTES_PER_S)[end]
    slot = [card.numbers[name].value for name in ("pcie_generation", "pcie_lanes") if name in card.numbers]
    return min(rate, line_bytes_per_s(*slot)) if len(slot) == 2 else rate


def arithmetic(format):
    """The format in which weights of this format are multiplied, at best."""
    return "fp4" if "fp4" in format and "w4a16" not in format else "fp8" if format in ("fp8", "mxfp8") else "bf16"


def words(cards, link_entry, kind, config, ask):
    """The assumptions as sentences; numbers are low / mid / high."""
    joined = lambda numbers, scale=1, digits="g": " / ".join(f"{number / scale:{digits}}" for number in numbers)
    kinds, said = {card.key: card for card in cards}.values(), []
    for name, key, text, scale, digits in (
            ("overhead_bytes", "vllm", "graphs, activations and buffers take {} GiB a GPU", GIB, ".1f"),
            ("achieved_frac", "card", "kernels reach {} of the memory bandwidth", 1, ".2g"),
            ("mfu_frac", "bf16", "arithmetic reaches {} of the BF16 rate, less of smaller formats", 1, ".2g")):
        say = lambda numbers: text.format(joined(numbers, scale, digits))
        own = {card.key: card.numbers[name] for card in kinds if name in card.numbers}
        said += [f"{key}: {say(number.base_range)} ({number.kind}: {number.source})" for key, number in own.items()]
        said += [f"{say(ends(key, name))} (estimate)"] if len(own) < len(kinds) else []
    gaps = joined(GAPS_S["vllm"], 1e-3)
    said += [f"an engine waits {gaps} ms between two steps (community); public vLLM runs fit the slow end",
             f"a pass takes at most {ask.batch_tokens} tokens of a prompt"]
    if not ask.prompt:
        said.append(f"prefill speed is for one prompt of {PROMPT_TOKENS} tokens, or the context if it is shorter")
    sold = [card.key for card in kinds if "reported_bytes" not in card.numbers]
    said += [f"{key}: memory as sold; the driver shows less" for key in sold]
    if config.draft_layers and not ask.mtp:
        said.append("the MTP layer is counted in the weights; vLLM leaves it out where nothing is drafted")
    if ask.mtp and ask.acceptance is None:
        said.append(f"a drafted token is accepted with a chance of {joined(ACCEPTANCE)} (estimate)")
    if len(cards) > 1:
        said.append(f"link: {link_entry.name} ({link_entry.numbers['link_bytes_per_s'].source})")
    said += filter(None, [wire.unsaid(link_entry)])
    for card in kinds if kind == "offload" else ():
        rates, own = [host_bytes_per_s(card, end) for end in range(len(ENDS))], "copy_bytes_per_s" in card.numbers
        whose = "its own copies" if own else "the copies of article 2, at most what its slot moves"
        said.append(f"{card.key}: offloaded weights come at {joined(rates, 1e9, '.1f')} GB/s ({whose})")
    return said
