"""A card, an engine and a link as choices, each at both ends of its ranges: one decode step as `plan` counts it."""

from ...catalog.assumptions import assumed
from ...catalog.gpus import gpu
from ...catalog.links import link
from ...formula import ops
from ...formulas import collectives
from ...planner.evidence.articles import GPU, PLAIN
from ...planner.evidence.measured import FAST, MIDDLE, SLOW
from ...planner.plan import assume, one_pass, wire
from ..live import Choice, holding, slider
from .options import CONFIG, COUNTED, ONE_GPU, PASS, STATES_BYTES, note

CARDS = ("rtx-3060-12gb", "rtx-3090", "rtx-4060-ti-16gb", "rtx-4070-ti-super", "rtx-4080", "rtx-4090", GPU.key,
         "rtx-5070-ti", "rtx-5080", "rtx-5090", "rtx-pro-6000")
ENGINES = {"vLLM": assume.ENGINE, "SGLang": "sglang", "llama.cpp": "llama.cpp", "NInfer": "ninfer",
           "another": "another"}
TRANSPORTS = {"NCCL through host memory": "shm", "not known": "pcie-unknown", "copies staged in host memory": "staged",
              "mailbox in host memory": "mailbox", "peer access, PCIe 5.0 x8": "p2p-pcie5-x8", "NVLink": "nvlink-h200"}
ENDS = (SLOW, MIDDLE, FAST)
SHAPE = {name: CONFIG.numbers[name]
         for name in ("layers", "full_layers", "hidden", "heads", "kv_heads", "head_elements", "element_bytes")}
SHAPE |= PLAIN | {"states_bytes": STATES_BYTES, "linear_s": 0}
"""One decode step: a card multiplies a few tokens while it reads the weights once."""
MFU = assume.mfu_number(GPU, "attention", CONFIG.name).base_range
CONSTANTS = SHAPE | {f"mfu_frac_{end}": mfu for end, mfu in zip(ENDS, MFU)}
GIVEN = ("read_bytes", "state_bytes", "linear_s", "protocol_allreduce_s")
NAMES = {  # what each sets at both ends and in the middle
    "card": ("card_frac", "clock_hz"), "engine": ("engine_frac", "between_s", "cycles", "draft_gap_s", "swaps"),
    "link": ("pair_latency_s", "link_latency_s", "bulk_latency_s", "link_bytes_per_s"),
    "model": ("mfu_frac",)}
REACH, WAIT = ("card_frac", "engine_frac"), ("between_s", "cycles", "clock_hz")


def allreduce(v, message_bytes):
    """The time of one by NCCL, or swapped in pairs."""
    pairs, times = ops.where(v.ranks > 2, v.swaps, 0), ops.where(v.ranks > 4, 3, 2)
    start = ops.where(pairs > 0, times * v.pair_latency_s, v.allreduce_latency_s)
    slower = ops.where(pairs > 0, (v.ranks - 1) / (v.ranks * times), 1)  # as a ring that sends what the swaps send
    return v(collectives.protocol_allreduce_s, message_bytes=message_bytes, allreduce_latency_s=start,
             bulk_latency_s=ops.where(pairs > 0, start, v.bulk_latency_s),
             link_bytes_per_s=slower * v.link_bytes_per_s)


RECIPES = PASS | {name: f"{name}_{MIDDLE}" for names in NAMES.values() for name in names} | {
    "achieved_frac": lambda v: ops.where(v.engine_frac > 0, v.engine_frac, v.card_frac),
    "kernels_s": lambda v: v.cycles / v.clock_hz,
    "gap_s": lambda v: v.between_s + v.kernels_s,
    "allreduce_latency_s": "group_latency_s",
    "protocol_allreduce_s": lambda v: allreduce(v, v.message_bytes)}


def at(end, *names):
    """A function that puts these quantities of any view at one end of their ranges, or all that a choice sets."""
    moved = names or tuple(name for found in NAMES.values() for name in found)
    return lambda v: v.extended(**{name: getattr(v, f"{name}_{end}") for name in moved})


LOW, MID, HIGH = map(at, ENDS)
BOUND = holding(achieved_frac=1.0)


def _ended(**ranges):
    return {f"{name}_{end}": number for name, numbers in ranges.items() for end, number in enumerate(numbers)}


def _card(key):
    card = gpu(key)
    clock, reach = (assume.number(name, card, assumed("card")) for name in ("clock_hz", "achieved_frac"))
    return {"memory_bytes_per_s": card.memory_bytes_per_s, "attention_flop_per_s": card.bf16_flop_per_s,
            **_ended(card_frac=reach.base_range, clock_hz=clock.base_range)}


def _engine(name):
    known, (layers, states) = (*assume.engine(name), assumed("card")), one_pass.waiting(CONFIG)
    reach = next((entry.numbers["achieved_frac"].base_range for entry in known[:-1]
                  if "achieved_frac" in entry.numbers), (0, 0, 0))  # none of its own: the card's counts
    gap, cycles, more = (assume.number(quantity, *known).base_range[::-1]
                         for quantity in ("gap_s", "layer_cycles", "state_cycles"))
    pairs = float(assume.engine(name)[-1].said.get("allreduce") == "pairs")
    return {"as_vllm": float(name == "sglang"), **_ended(
        engine_frac=reach, between_s=gap, cycles=[layers * each + states * extra for each, extra in zip(cycles, more)],
        draft_gap_s=assume.draft_gap(name).base_range[::-1],
        swaps=[0.0 if end == FAST else pairs for end in ENDS])}  # at best the engine was built with NCCL


def _link(key):
    """Of a pair at each end, and of each hop that more GPUs add, there and back."""
    way = wire.in_step(link(key))
    pair = [wire.numbers(way, 2, end) for end in ENDS]
    return _ended(
        pair_latency_s=[here["allreduce_latency_s"] for here in pair],
        link_latency_s=[(wire.latency(way, 3, end) - pair[end]["allreduce_latency_s"]) / 2 for end in ENDS],
        bulk_latency_s=[here["bulk_latency_s"] for here in pair],
        link_bytes_per_s=[here["link_bytes_per_s"] for here in pair])


def _options(keys, made, number):
    """{words: what each sets}, its number among them too."""
    return {words: made(key) | {number: float(i)} for i, (words, key) in enumerate(keys.items())}


AS_VLLM = note(lambda v: v.as_vllm > 0, "taken as vLLM's: no public rows of its own")
CARD_NAMES = {gpu(key).name.removeprefix("GeForce "): key for key in CARDS}


def choices():
    """The controls: card, engine, link."""
    return (Choice("card", "Card", _options(CARD_NAMES, _card, "card_number"), GPU.name.removeprefix("GeForce ")),
            Choice("engine", "Engine", _options(ENGINES, _engine, "engine_number"), "vLLM", AS_VLLM),
            Choice("transport", "Link", _options(TRANSPORTS, _link, "link_number"), "NCCL through host memory",
                   ONE_GPU))


def loads():
    """The sliders of what is read for a token, from what `plan` counts."""
    return (slider("read_bytes", "Weights read per step, all GPUs", 2, 200, COUNTED["read_bytes"], "GB"),
            slider("context_tokens", "Context in the cache", 0, 262144, COUNTED["context_tokens"], "tokens", step=4096))
