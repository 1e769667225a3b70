"""What a plan has to assume: stated ranges, low / mid / high, each with its reason."""

from ...catalog.assumptions import assumed, assumptions, ends
from ...catalog.links import line_bytes_per_s, link
from ...formula.units import GIB
from ..shapes.models import models
from . import wire

ENDS = ("low", "mid", "high")
ACHIEVED = ends("card", "achieved_frac")
OVERHEAD_BYTES = ends("vllm", "overhead_bytes")[::-1]  # the low end of a speed or a length has the most overhead
MFU = {format: ends(format, "mfu_frac") for format in ("bf16", "fp8", "fp4")}
RATE = {"bf16": "bf16_flop_per_s", "fp8": "fp8_flop_per_s", "fp4": "fp4_flop_per_s"}
ENGINES = {alias: engine for engine in assumptions().values() for alias in engine.said.get("aliases", ())}
GAPS_S = {alias: engine.numbers["gap_s"].base_range[::-1] for alias, engine in ENGINES.items()}  # between two steps, slow to fast
HOST_BYTES_PER_S = tuple(link(key).copy_bytes_per_s for key in  # article 2's copies
                         ("host-pcie4-x4-pageable", "host-pcie5-x16-pageable", "host-pcie5-x16-pinned"))
ACCEPTANCE = ends("drafts", "acceptance_frac")
DRAFT_ALLREDUCES = int(assumed("drafts").draft_allreduces)
PROMPT_TOKENS = 8192  # a choice
CHUNK_TOKENS = int(assumed("vllm").chunk_tokens)


def gap_range_s(engine):
    """The wait between two steps of an engine, slow, middle, fast; of an engine that is not listed, the widest.

    >>> gap_range_s("ik_llama.cpp") == GAPS_S["llama.cpp"]
    True
    """
    return next((gaps for name, gaps in GAPS_S.items() if name in engine.lower()), ends("engine", "gap_s")[::-1])


def of_model(name, quantity):
    """(low, middle, high) of a number that was measured with this model; None where none was."""
    own = models().get(name)
    return own.numbers[quantity].base_range if own and quantity in own.numbers else None


def of_card(card, name, assumed, end):
    """A number at one end of its range: the card's own where it was measured, else what is assumed of every card."""
    return card.numbers[name].base_range[end] if name in card.numbers else assumed[end]


def source(card, name, key):
    """The number of the catalog that `of_card` takes: the card's own, or what is assumed."""
    return card.numbers.get(name) or assumed(key).numbers[name]


def gap_source(engine):
    """The number of the catalog behind `gap_range_s`."""
    return next((entry for name, entry in ENGINES.items() if name in engine.lower()), assumed("engine")).numbers["gap_s"]


def mfu_source(config, card):
    """{"mfu_frac": the number of the catalog that a pass takes}: of this model, of this card, or of every card in 16 bits."""
    own = models().get(config.name)
    return {"mfu_frac": own.numbers["mfu_frac"] if own and "mfu_frac" in own.numbers else source(card, "mfu_frac", "bf16")}


def achieved_frac(card, end):
    """Of the card's memory bandwidth."""
    return of_card(card, "achieved_frac", ACHIEVED, end)


def mfu_frac(card, format, end):
    """Of the card's arithmetic rate in a format; a card's own is that of 16 bits."""
    return of_card(card, "mfu_frac", MFU["bf16"], end) if format == "bf16" else MFU[format][end]


def overhead_bytes(config, card, end):
    """What the card holds beside weights and cache, by model or card where measured; the low end of a speed or a length has the most."""
    own = of_model(config.name, "overhead_bytes")
    return of_card(card, "overhead_bytes", own or OVERHEAD_BYTES[::-1], 2 - end)


def host_bytes_per_s(card, end):
    """Of a copy from main memory to the card: no more than its slot moves."""
    slot = [card.numbers[name].value for name in ("pcie_generation", "pcie_lanes") if name in card.numbers]
    rate = of_card(card, "copy_bytes_per_s", HOST_BYTES_PER_S, end)
    return min(rate, line_bytes_per_s(*slot)) if len(slot) == 2 else rate


def arithmetic(format):
    """The format in which weights of this format are multiplied, at best."""
    return "fp4" if "fp4" in format and "w4a16" not in format else "fp8" if format in ("fp8", "mxfp8") else "bf16"


def _ends(numbers, scale=1.0, digits="g"):
    return " / ".join(f"{number / scale:{digits}}" for number in numbers)


def _of_cards(cards, name, assumed, say):
    """A sentence for each card that has a number of its own, and one for all the others."""
    own = {card.key: card for card in cards if name in card.numbers}
    said = [f"{key}: {say(card.numbers[name].base_range)} ({card.numbers[name].kind}: {card.numbers[name].source})" for key, card in own.items()]
    return said + ([f"{say(assumed)} (estimate)"] if len(own) < len({card.key for card in cards}) else [])


def words(cards, link_entry, kind, config, drafts=0, acceptance=None):
    """The assumptions as sentences; numbers are low / mid / high."""
    said = [
        *_of_cards(cards, "overhead_bytes", OVERHEAD_BYTES[::-1], lambda r: f"graphs, activations and buffers take {_ends(r, GIB, '.1f')} GiB a GPU"),
        *_of_cards(cards, "achieved_frac", ACHIEVED, lambda r: f"kernels reach {_ends(r, digits='.2g')} of the memory bandwidth"),
        *_of_cards(cards, "mfu_frac", MFU["bf16"], lambda r: f"arithmetic reaches {_ends(r, digits='.2g')} of the BF16 rate, less of smaller formats"),
        f"an engine waits {_ends(GAPS_S['vllm'], 1e-3)} ms between two steps (community); public vLLM runs fit the slow end",
        f"a pass takes at most {CHUNK_TOKENS} tokens of a prompt",
        f"prefill speed is for one prompt of {PROMPT_TOKENS} tokens, or the context if it is shorter",
        *(f"{card.key}: memory as sold; the driver shows less" for card in {card.key: card for card in cards}.values() if "reported_bytes" not in card.numbers),
    ]
    if config.draft_layers and not drafts:
        said.append("the MTP layer is counted in the weights; vLLM leaves it out where nothing is drafted")
    if drafts and acceptance is None:
        said.append(f"a drafted token is accepted with a chance of {_ends(ACCEPTANCE)} (estimate)")
    if len(cards) > 1:
        said.append(f"link: {link_entry.name} ({link_entry.numbers['link_bytes_per_s'].source})")
    said += filter(None, [wire.unsaid(link_entry)])
    if kind == "offload":
        said += [f"{card.key}: offloaded weights come at {_ends([host_bytes_per_s(card, end) for end in range(len(ENDS))], 1e9, '.1f')} GB/s "
                 f"({'its own copies' if 'copy_bytes_per_s' in card.numbers else 'the copies of article 2, at most what its slot moves'})"
                 for card in {card.key: card for card in cards}.values()]
    return said
