"""Which input matters: each uncertain one alone at both ends of its range, the largest swing on top."""

from functools import reduce
from operator import add

from ...formula import ops
from ...formulas import memory
from ...planner.evidence.articles import GPU, MODEL, OVERHEAD, UTILISATION_FRAC, setting
from ..live import Axes, Box, Figure, Label, Line, Table, holding, quantity, template
from . import ends
from .options import COUNTED, NO_CACHE, SHAPE, cache_format, gpus, sources

SIZES = MODEL.numbers["weights_bytes"].base_range[::2]
BUILDS = [setting()(memory.read_bytes, weights_bytes=size) for size in SIZES]


def _alone(*names):
    """Two functions of a view: these quantities at their slow end, at their fast end."""
    return ends.at(ends.SLOW, *names), ends.at(ends.FAST, *names)


def _held(name, worse, better):
    return holding(**{name: float(worse)}), holding(**{name: float(better)})


RATES = {  # key -> words, both ends, the input as the table prints it, its kind
    "build": ("size of the build", _held("read_bytes", *BUILDS[::-1]), "{read_bytes/GB:1} GB", "estimate"),
    "reach": ("bandwidth reached", _alone(*ends.REACH), "{achieved_frac:2}", "community"),
    "kernels": ("small kernels", _alone("cycles", "clock_hz"), "{kernels_s/MS:1} ms", "community"),
    "gap": ("wait between two steps", _alone("between_s"), "{between_s/MS:1} ms", "community"),
    "start": ("start of an all-reduce", _alone("pair_latency_s", "link_latency_s", "bulk_latency_s"),
              "{allreduce_latency_s/US:1} µs", "community"),
    "link": ("bandwidth of the link", _alone("link_bytes_per_s"), "{link_bytes_per_s/GB:1} GB/s", "community")}
ROOM = {
    "build": ("size of the build", _held("weights_bytes", *SIZES[::-1]), "{weights_bytes/GB:1} GB", "estimate"),
    "overhead": ("graphs and buffers", _held("overhead_bytes", *OVERHEAD.base_range[::-2]),
                 "{overhead_bytes/GIB:1} GiB", OVERHEAD.kind),
    "share": ("the engine's share", _held("utilisation_frac", 0.9, 0.95), "{utilisation_frac:2}", "choice"),
    "card": ("memory of the card", _held("vram_bytes", GPU.reported_bytes, GPU.vram_bytes),
             "{vram_bytes/GIB:2} GiB", GPU.numbers["reported_bytes"].kind)}


def _rank(key, keys):
    """How many swings are larger; of two that are equal the first counts as the larger one."""
    swing = lambda one: f"{one}_swing"

    def rank(v):
        mine, early = getattr(v, swing(key)), keys[: keys.index(key)]
        above = (ops.where(getattr(v, swing(one)) >= mine if one in early else getattr(v, swing(one)) > mine, 1, 0)
                 for one in keys if one != key)
        return reduce(add, above, 0)
    return rank


def _marks(keys, inputs, decimals, most):
    """Name, two bars with what they end at, for each input; and the middle."""
    for key in keys:
        y = lambda by, key=key: lambda v: by - getattr(v, f"{key}_row")
        yield Label(f"{key}-name", -0.97 * most, y(0.28), (inputs[key][0],), align="left")
        for end, color, align, by in (("low", "red", "right", -0.02), ("high", "blue", "left", 0.02)):
            x = lambda by=0, key=key, end=end: lambda v: 100 * (getattr(v, f"{key}_{end}") / v.middle - 1) + by
            yield Box(f"{key}-{end}", 0, x(), y(-0.4), y(0.06), color, "" if key != keys[0] else f"{end} end")
            yield Label(f"{key}-{end}-said", x(by * most), y(-0.19), f"{{{key}_{end}:{decimals}}}", align=align)
    yield Line("middle", 0, 0.6, 0, 0.5 - len(keys), "text")


def _tornado(inputs, answer, decimals, most, unit, recipes, **more):
    keys = tuple(inputs)
    for key, (_, pair, _, _) in inputs.items():
        recipes = recipes | {f"{key}_{end}": quantity(answer, at) for end, at in zip(("low", "high"), pair)} | {
            f"{key}_swing": lambda v, key=key: getattr(v, f"{key}_high") - getattr(v, f"{key}_low"),
            f"{key}_row": _rank(key, keys)}
    top = lambda v: reduce(lambda at, i: ops.where(getattr(v, f"{keys[i]}_row") < 1, i, at), range(len(keys)), 0)
    swing = lambda v: reduce(ops.maximum, (getattr(v, f"{key}_swing") for key in keys))
    said = lambda key: f"{{{key}:{decimals}}}"
    return Figure(
        size=(4.6, 0.52 * len(keys) + 0.9), recipes=recipes | {"middle": answer},
        axes=(Axes(f"{unit}, % from the middle", xlim=(-most, most), ylim=(0.4 - len(keys), 0.6), legend=2,
                   yticks=((0.6, ""),)),),
        marks=tuple(_marks(keys, inputs, decimals, most)),
        readouts={"middle": f"The middle: {said('middle')} {unit}.",
                  "most": ("Most matters: ", (top, tuple(inputs[key][0] for key in keys)), ", ", (swing, decimals),
                           f" {unit} between its ends.")},
        table=Table("Each input alone, from its low end to its high end",
                    ("", "low end", "high end", f"{unit}, low", f"{unit}, high", "swing", "kind"), tuple(
                        (words, *(template(cell, at) for at in pair), said(f"{key}_low"), said(f"{key}_high"),
                         said(f"{key}_swing"), kind) for key, (words, pair, cell, kind) in inputs.items())), **more)


def rate_tornado():
    """What each uncertain input does to the rate of one stream, live."""
    return _tornado(
        RATES, "decode_tokens_per_s", 1, 85, "tokens/s", ends.RECIPES, name="rate-tornado",
        title="Which input moves the speed?",
        caption="Each input alone at both ends of its source's range, the rest in the middle. "
                "The longest bar stands on top.",
        controls=(*ends.choices(), gpus(2, 4, 8), ends.loads()[1], cache_format(NO_CACHE)),
        constants=ends.CONSTANTS | {"tokens": 1, "read_bytes": float(COUNTED["read_bytes"]) * 1e9},
        sources=sources(ends.SHAPE, MODEL), given=ends.GIVEN)


def room_tornado():
    """The same for the tokens of cache that fit, by division."""
    return _tornado(
        ROOM, "pool_tokens", 0, 110, "tokens", {}, name="room-tornado", title="Which input moves the context?",
        caption="The same for the tokens of cache that fit, from article 1's setting, by division.",
        controls=(cache_format(), gpus(2, 4, 8)),
        constants={name: SHAPE[name] for name in ("full_layers", "kv_heads", "head_elements")} | {
            "weights_bytes": MODEL.weights_bytes, "overhead_bytes": OVERHEAD.base, "vram_bytes": GPU.vram_bytes,
            "utilisation_frac": UTILISATION_FRAC})
