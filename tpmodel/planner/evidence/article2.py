"""Article 2: its measured weights and speeds, predicted from shapes, data-sheet rates and its own link measurements.

Used as given: the shape of the model, the rates of the cards, the all-reduce (4.00 GB/s, 93 us) and the copies from
main memory (12.2 and 7.0 GB/s), which the article measured apart from the model. Chosen with its results in view: two
numbers, `loaded_extra_bytes` (0.125 GiB, for seven weights) and `mfu_frac` (0.95 for both cards, for 25 speeds).

A speed's range: low with mfu 0.85 and the all-reduce at 2.95 GB/s; high with the rates at the upper end of their own
estimate (cards clock above their rated boost) and what can overlap hidden: the hand-over of a pipeline and the copies
of offload, but no all-reduce, since the next layer waits for the sum.
"""

from ...formula import ops
from ...formula.units import GIB, HOUR
from ...formulas import memory, pipeline, weights
from .rows import printed
from .unequal import CARDS, COPIES, LINK, MODEL, OFFLOAD_GIB, batch, setting

RECIPES = {"offload_bytes": lambda v: OFFLOAD_GIB * GIB}
PLACES = {"5080": "first", "5060": "last"}


def view(length=512, **more):
    """Article 2's machine at a nominal document length, the RTX 5080 first."""
    rates = {f"{place}_flop_per_s": CARDS[card].bf16_flop_per_s for card, place in PLACES.items()}
    return setting(RECIPES, **{**rates, **copies(COPIES), **batch(length), **more})


def copies(paths):
    """The rates of the copies from main memory to both cards, as names of a view."""
    return {f"{place}_copy_bytes_per_s": paths[card].copy_bytes_per_s for card, place in PLACES.items()}


def stage_s(v, layers, rate):
    return v(pipeline.stage_s, stage_layers=layers, flop_per_s=rate)


def even_s(v):
    """The slower card's even share."""
    return stage_s(v, v.layers, ops.minimum(v.first_flop_per_s, v.last_flop_per_s)) / v.ranks


def tensor_parallel_s(v):
    return v.given(busy_s=even_s(v)).pass_s


def stages(v, first):
    """Arithmetic of both stages, `first` layers on the first."""
    return {"first_s": stage_s(v, first, v.first_flop_per_s), "last_s": stage_s(v, v.layers - first, v.last_flop_per_s)}


def pipeline_s(v, first, form=pipeline.pipeline_s):
    return v(form, **stages(v, first))


def turned(v):
    """The same machine with the other card first."""
    return v.extended(first_flop_per_s=v.last_flop_per_s, last_flop_per_s=v.first_flop_per_s)


def copy_s(v, card):
    return v(pipeline.copy_s, copy_bytes_per_s=getattr(v, f"{PLACES[card]}_copy_bytes_per_s"))


def alone_s(v, card):
    """The arithmetic of the whole model on one card."""
    return stage_s(v, v.layers, getattr(v, f"{PLACES[card]}_flop_per_s"))


def offload_s(v, card):
    return v(pipeline.offload_s, stage_s=alone_s(v, card), copy_s=copy_s(v, card))


def split_passes(first, swapped=False):
    """(time of a batch, the same with a hidden hand-over) of a pipeline with `first` layers on its first card."""
    order = turned if swapped else lambda v: v
    return tuple(lambda v, form=form: pipeline_s(order(v), first, form)
                 for form in (pipeline.pipeline_s, pipeline.pipeline_overlapped_s))


PASSES = {  # configuration -> (time of a batch, the same with hidden what can be hidden)
    "tp": (tensor_parallel_s, tensor_parallel_s),
    "pp1717": split_passes(17), "pp2014": split_passes(20), "pp1717r": split_passes(17, swapped=True),
    **{f"off{card}": (lambda v, c=card: offload_s(v, c), lambda v, c=card: ops.maximum(alone_s(v, c), copy_s(v, c)))
       for card in CARDS},
}


def speed(v, seconds):
    return v(pipeline.tokens_per_s, pass_s=seconds(v))


def speeds(way, length, **more):
    """(low, computed, high) tokens a second of one configuration, or of such a pair of times."""
    nothing, hidden = PASSES[way] if isinstance(way, str) else way
    slow = {"mfu_frac": MODEL.numbers["mfu_frac"].base_range[0],
            "link_bytes_per_s": LINK.numbers["link_bytes_per_s"].base_range[0]}
    fast = {f"{place}_flop_per_s": CARDS[card].numbers["bf16_flop_per_s"].base_range[2]
            for card, place in PLACES.items()}
    return tuple(speed(view(length, **at, **more), how) for at, how in ((slow, nothing), ({}, nothing), (fast, hidden)))


def stage_gib(v, layers, tables=0):
    return v(weights.stage_bytes, stage_layers=layers, tables=tables) / GIB


WEIGHTS = {
    "a2.tp_weights": lambda v: v(weights.tp_rank_bytes) / GIB,
    "a2.whole_weights": lambda v: stage_gib(v, v.layers, 1),
    "a2.pp1717_first": lambda v: stage_gib(v, 17, 1), "a2.pp1717_last": lambda v: stage_gib(v, 17),
    "a2.pp2014_first": lambda v: stage_gib(v, 20, 1), "a2.pp2014_last": lambda v: stage_gib(v, 14),
    "a2.offload_weights": lambda v: stage_gib(v, v.layers - v.offloaded_layers, 1),
}
EXTRA_BYTES = MODEL.numbers["loaded_extra_bytes"].base_range  # what loading takes beside the weights
PREDICTED = {  # claim -> (low, computed, high)
    **{name: lambda form=form: tuple(form(view(loaded_extra_bytes=extra)) for extra in EXTRA_BYTES)
       for name, form in WEIGHTS.items()},
    **{f"a2.{way}_{length}": lambda way=way, length=length: speeds(way, length)
       for way in PASSES for length in (64, 512, 2048, 4096, 8192)},
}
OUTLIERS = ("a2.off5080_512",)


def measured(name):
    """A value of claims.csv."""
    return printed(f"a2.{name}")


def documents(name):
    """Documents of "512" tokens a second, from the article's own tokens a second."""
    return pipeline.documents_per_s(measured(f"{name}_512"), batch(512)["sequence_tokens"])


def implied_flop_per_s(card, length):
    """The rate at which one card must have computed for its measured speed with offload, if nothing overlapped."""
    v = view(length)
    seconds = v.tokens / measured(f"off{card}_{length}") - copy_s(v, card)
    return v.layers * v.layer_flop * v.tokens / seconds


def relative_speed(length):
    """The RTX 5080's speed, in that of the RTX 5060 Ti, with the 1B model that fits on either."""
    return measured(f"b1_5080_{length}") / measured(f"b1_5060_{length}")


COMPUTED = {
    **{f"a2.docs_{way}": lambda way=way: documents(way) for way in PASSES},
    "a2.hours_pp": lambda: 1e5 / documents("pp2014") / HOUR, "a2.hours_tp": lambda: 1e5 / documents("tp") / HOUR,
    **{f"a2.req_{name}": lambda card=card: memory.budget_bytes(card.reported_bytes, 0.97) / GIB
       for name, card in CARDS.items()},
}
VERDICTS = {
    "a2.hours_tp": ("loose", None, "4.3 hours; the pipeline's 2.0 is rounded by less"),
    "a2.off5080_512": ("", None, "an outlier the article leaves open: the same card is faster at 64 and at 2048; "
                                 "left out of the summary"),
    "a2.tp_weights": ("", None, "0.02 GiB less than the whole table of rotary positions on each card would make it; "
                                "unexplained"),
}
