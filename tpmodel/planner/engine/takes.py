"""What vLLM takes of a GPU beside weights and cache, part by part: numbers of shape and start, and their view.

A model's structure is folded here into the names that `formulas.overhead` computes with.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from ...catalog.assumptions import assumed
from ...formula.view import View

PARTS = ("padding", "buffers", "workspace", "counts", "graph")  # beside the peak: kept, or taken off at once
PEAK = ("forward", "sampler", "vision")  # of these the largest
WORDS = {  # in words, and the flags that make it smaller
    "padding": ("zeros round weights", ""), "buffers": ("kernels and buffers", ""),
    "workspace": ("experts' workspace", "--max-num-batched-tokens"), "counts": ("penalty counters", "--max-num-seqs"),
    "graph": ("CUDA graphs", "--max-num-seqs, or --enforce-eager"),
    "forward": ("activations", "--max-num-batched-tokens"), "sampler": ("logits and sampler", "--max-num-seqs"),
    "vision": ("vision tower at its largest input", "--language-model-only (here --text-only), or --skip-mm-profiling")}
UNSURE = ("buffers_bytes", "graph_piece_bytes", "sampler_element_bytes", "compile_bytes")
MOST_CAPTURED, FINE, COARSE, FINE_TO = 512, 8, 16, 256  # sizes of CUDA graphs: steps of 8 below 256, then of 16
COUNTER_BYTES, PIXEL_BYTES = 4 + 1 / 8, 6
EXPERT_ROWS, EXPERT_COLUMNS = 128, 256  # MXFP4's experts are padded to these


@dataclass(frozen=True)
class Stage:
    """The GPU that is asked about: the Layers it holds, if it is first and last of a pipeline, GPUs that share it."""

    order: tuple
    first: bool
    last: bool
    ranks: int


@dataclass(frozen=True)
class Taken:
    """(low, middle, high) of all parts together; the view behind the middle; the parts as rows."""

    ends: tuple
    view: View
    parts: tuple  # of dicts


def sizes(sequences, drafts, batch_tokens):
    """How many sizes of a batch vLLM captures graphs for.

    >>> sizes(256, 0, 2048), sizes(1, 0, 2048), sizes(8, 0, 2048)
    (51, 2, 5)
    """
    top = min(2 * sequences * (1 + drafts), MOST_CAPTURED, batch_tokens)
    steps = [1, 2, 4, *range(FINE, FINE_TO, FINE), *range(FINE_TO, MOST_CAPTURED + 1, COARSE)]
    return len({size for size in steps if size <= top} | {min(sequences, top)})


def widest(config, order):
    """Elements of one token that the widest module of these layers holds at once: matrix products' results."""
    names, found = {module.name for module in config.modules}, [0]
    if "mlp" in names:
        found.append(3 * config.intermediate)  # gate, up, and their product
    for layer in set(order):
        state = layer.state
        if state:  # queries, keys, values, a gate, the result; in KDA a second gate
            values, keys = state.value_heads * state.value_elements, state.key_heads * state.key_elements
            found.append(2 * keys + (4 if state.family == "kda" else 3) * values)
        elif layer.kind != "none":
            heads = config.heads * (layer.head_elements + layer.value_head_elements)
            found.append(heads + layer.kv_heads * (layer.head_elements + layer.value_head_elements)
                         + (config.heads * layer.value_head_elements if layer.kind == "latent" else 0))
    return max(found)


def padding(config, ranks):
    """Bytes of zeros on one GPU of all layers: experts in MXFP4 are padded in both directions."""
    up = lambda size, step: -(-size // step) * step
    inner = config.expert_intermediate / ranks
    grown = up(inner, EXPERT_ROWS) * up(config.hidden, EXPERT_COLUMNS) / max(1, inner * config.hidden) - 1
    return sum(m.bytes / ranks * grown for m in config.modules if m.name == "experts" and m.format == "mxfp4")


def _patches(config, setting, first):
    """Patches of the largest input; none where the tower is left out, or on a later stage."""
    tower = config.tower
    if not (first and tower and any(m.name == "vision" for m in config.modules)):
        return 0
    vision = assumed("vision")
    pictures = 1
    if tower.film:  # as many pictures as the context holds
        pictures = max(1, min(int(vision.item_frames) // 2, int(setting.context_tokens // vision.item_tokens)))
    most, item = setting.batch_tokens, int(vision.item_tokens)  # as many pictures as a pass holds, but one
    tokens = max(most // item, pictures) * item if tower.pictures else most
    return math.ceil(tokens * tower.patches)


def numbers(config, setting, stage):
    """{name: number of the catalog} of what nobody can compute."""
    entry, rules = assumed("vllm"), setting.rules
    found = {name: entry.numbers[name] for name in UNSURE}
    if stage.ranks > 1:
        group = "vllm-tensor-parallel" if rules.workspaces else "vllm-tensor-parallel-bare"
        found["buffers_bytes"] = assumed(group).numbers["buffers_bytes"]
    if rules.sorts:
        found["sampler_element_bytes"] = assumed("vllm-sorting").numbers["sampler_element_bytes"]
    return found


def _view(config, setting, stage):
    """The view of the middle, with the sources of what is assumed."""
    rules, tower, found = setting.rules, config.tower, numbers(config, setting, stage)
    tokens = max(setting.batch_tokens, setting.context_tokens) if rules.whole_prompt else setting.batch_tokens
    told = setting.sequences if stage.last and not setting.pooling else 0  # a pooler has no logits
    share = len(stage.order) / len(config.order)
    experts = config.experts_read if any(m.name == "experts" for m in config.modules) else 0
    wide = widest(config, stage.order)
    if not rules.workspaces:  # two buffers of a layer: up and gate, whose place its result takes, and their product
        inner = config.expert_intermediate / stage.ranks
        wide, experts = max(wide, stage.ranks * experts * (inner + max(2 * inner, config.hidden))), 0
    shape = f"the shape of {config.name or config.family}"
    given = {
        "batch_tokens": (tokens, "tokens of the profile run"), "sequences": (told, "sequences that may run at once"),
        "hidden": (config.hidden, shape), "vocabulary": (config.vocabulary, shape), "element_bytes": (2, "16 bits"),
        "ranks": (stage.ranks, "the setting"), "widest_elements": (wide, shape),
        "experts_read": (experts, shape), "expert_intermediate": (config.expert_intermediate, shape),
        "patches": (_patches(config, setting, stage.first), "the largest input of the tower"),
        "vision_hidden": (tower.hidden if tower else 0, shape), "vision_widest": (tower.widest if tower else 0, shape),
        "pixel_elements": (tower.pixels if tower else 0, shape),
        "pixel_bytes": (PIXEL_BYTES, "FP32, and a copy in 16 bits"),
        "counter_bytes": (COUNTER_BYTES * rules.counts, "a counter in 32 bits and a flag; none before 0.29"),
        "padding_bytes": (padding(config, stage.ranks) * share, "the shape: experts in MXFP4 padded to 128 and 256"),
        "graph_sizes": (sizes(setting.sequences, setting.drafts, setting.batch_tokens) * rules.graphs,
                        "sizes of a batch up to twice the sequences"),
        "stage_layers": (len(stage.order), "the setting"),
        **{name: (number.base, number) for name, number in found.items()}}
    values, sources = ({name: pair[i] for name, pair in given.items()} for i in (0, 1))
    return View(values, sources=sources), found


@lru_cache(maxsize=512)
def taken(config, setting, stage):
    """The Taken of one GPU. Ends of what is unsure move one at a time; their distances add as squares."""
    view, found = _view(config, setting, stage)
    at = {name: [view.extended(**{name: end}) for end in number.base_range[::2]] for name, number in found.items()}
    moved = [[abs(one.parts_bytes - view.parts_bytes) for one in ends] for ends in zip(*at.values())]
    middle = view.parts_bytes
    ends = middle - math.hypot(*moved[0]), middle, middle + math.hypot(*moved[1])
    counted = max(PEAK, key=lambda name: getattr(view, f"{name}_bytes"))
    rows = tuple(_row(name, view, at, found, counted) for name in PARTS + PEAK if getattr(view, f"{name}_bytes") > 0)
    return Taken(ends, view, rows)


def _row(name, view, at, found, counted):
    """A part as a row; its range is what the unsure numbers make of it, its source the first of those that move it."""
    quantity, (words, less) = f"{name}_bytes", WORDS[name]
    size = getattr(view, quantity)
    spans = {unsure: [getattr(one, quantity) for one in views] for unsure, views in at.items()}
    number = next((found[unsure] for unsure, span in spans.items() if any(one != size for one in span)), None)
    every = [size, *(one for span in spans.values() for one in span)]
    return {"name": words, "quantity": quantity, "bytes": size, "low_bytes": min(every), "high_bytes": max(every),
            "counted": name not in PEAK or name == counted, "less_with": less,
            "apart": "" if name not in PEAK or name == counted else "not at the same time, so not added",
            "kind": number.kind if number else "computed",
            "source": number.source if number else f"tpmodel.formulas.overhead.{quantity}"}
