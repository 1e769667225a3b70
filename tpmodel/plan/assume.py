"""What a plan has to assume: stated ranges, low / mid / high, each with its reason."""

from ..catalog.articles import MODEL
from ..catalog.assumptions import assumed, assumptions, ends
from ..catalog.links import link
from ..units import GIB
from . import wire

ENDS = ("low", "mid", "high")
ACHIEVED = ends("card", "achieved_frac")
OVERHEAD_BYTES = MODEL.numbers["overhead_bytes"].base_range[::-1]  # the low end of a speed or a length has the most overhead
MFU = {format: ends(format, "mfu_frac") for format in ("bf16", "fp8", "fp4")}
RATE = {"bf16": "bf16_flop_per_s", "fp8": "fp8_flop_per_s", "fp4": "fp4_flop_per_s"}
ENGINES = {alias: engine for engine in assumptions().values() for alias in engine.said.get("aliases", ())}
GAPS_S = {alias: engine.numbers["gap_s"].base_range[::-1] for alias, engine in ENGINES.items()}  # slow to fast
HOST_BYTES_PER_S = tuple(link(key).copy_bytes_per_s for key in
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


def of_card(card, name, assumed, end):
    """A number at one end of its range: the card's own where it was measured, else what is assumed of every card."""
    return card.numbers[name].base_range[end] if name in card.numbers else assumed[end]


def achieved_frac(card, end):
    """Of the card's memory bandwidth."""
    return of_card(card, "achieved_frac", ACHIEVED, end)


def mfu_frac(card, format, end):
    """Of the card's arithmetic rate in a format; a card's own is that of 16 bits."""
    return of_card(card, "mfu_frac", MFU["bf16"], end) if format == "bf16" else MFU[format][end]


def overhead_bytes(card, end):
    """What the card holds beside weights and cache; the low end of a speed or a length has the most."""
    return of_card(card, "overhead_bytes", OVERHEAD_BYTES[::-1], 2 - end)


def arithmetic(format):
    """The format in which weights of this format are multiplied, at best."""
    return "fp4" if "fp4" in format and "w4a16" not in format else "fp8" if format in ("fp8", "mxfp8") else "bf16"


def words(link_entry, parallel, config, drafts=0, acceptance=None):
    """The assumptions as sentences."""
    low, mid, high = (f"{number / GIB:.1f}" for number in OVERHEAD_BYTES[::-1])
    said = [
        f"graphs, activations and buffers take {low} / {mid} / {high} GiB a GPU (estimate)",
        "kernels reach {} / {} / {} of the memory bandwidth (estimate)".format(*ACHIEVED),
        "arithmetic reaches {} / {} / {} of the dense BF16 rate, less of smaller formats (estimate)".format(*MFU["bf16"]),
        "an engine waits {:g} / {:g} / {:g} ms between two steps (community)".format(*(seconds * 1e3 for seconds in GAPS_S["vllm"])),
        f"a pass takes at most {CHUNK_TOKENS} tokens of a prompt",
        f"prefill speed is for a prompt of {PROMPT_TOKENS} tokens, or the context if it is shorter",
    ]
    if config.draft_layers and not drafts:
        said.append("the MTP layer is counted in the weights; vLLM leaves it out where nothing is drafted")
    if drafts and acceptance is None:
        said.append("a drafted token is accepted with a chance of {} / {} / {} (estimate)".format(*ACCEPTANCE))
    if parallel in ("tp", "pp"):
        said.append(f"link: {link_entry.name} ({link_entry.numbers['link_bytes_per_s'].source})")
        said += filter(None, [wire.unsaid(link_entry)])
    if parallel == "offload":
        said.append("offloaded weights come over a host link of {:.1f} / {:.1f} / {:.1f} GB/s (article 2's copies)".format(
            *(rate / 1e9 for rate in HOST_BYTES_PER_S)))
    return said
