"""Where every byte of a build goes: its modules, what a decode step reads of each, and each GPU's share."""

from ...formula import ops
from ...planner.shapes.models import find_config
from ..live import Axes, Choice, Figure, Table, bar
from .options import gpus

BUILDS = {
    "Qwen3.8-27B, BF16": "qwen3.8-27b", "Qwen3.8-27B, FP8": "qwen3.8-27b-fp8",
    "Qwen3.8-27B, NVFP4 (article 1)": "qwen3.8-27b-nvfp4", "Qwen3.6-27B, public NVFP4 + FP8": "qwen3.6-27b-nvfp4",
    "Qwen3-32B, BF16": "qwen3-32b", "Qwen3-8B, BF16": "qwen3-8b", "Llama 3.1 8B, BF16": "llama-3.1-8b",
    "gpt-oss-20b, MXFP4": "gpt-oss-20b", "Qwen3-30B-A3B, BF16": "qwen3-30b-a3b", "Mixtral 8x7B, BF16": "mixtral-8x7b"}
ROWS = {  # a row of the figure: the modules of a build that it adds up
    "FFN": ("mlp", "shared_experts", "router", "bias"), "experts": ("experts",), "attention": ("attention",),
    "state layers": ("state",), "output head": ("head",), "embedding": ("embedding",), "vision tower": ("vision",),
    "MTP layer": ("mtp",)}
BARS = (("size", "row{}_bytes", "gray", "held, not read", 0.62),
        ("read", "row{}_read_bytes", "blue", "read for each token", 0.36))


def sizes(name):
    """{figure name: bytes}: each row's size and what one decode step reads of it."""
    config, found = find_config(name), {}
    for i, modules in enumerate(ROWS.values()):
        mine = [m for m in config.modules if m.name in modules]
        found[f"row{i}_bytes"] = sum(m.bytes for m in mine)
        found[f"row{i}_read_bytes"] = sum(m.bytes * m.read for m in mine)
    return found | {"build_bytes": config.weights_bytes, "build_read_bytes": config.read_bytes}


def _most(v):
    """The largest part."""
    found = v.row0_bytes
    for i in range(1, len(ROWS)):
        found = ops.maximum(found, getattr(v, f"row{i}_bytes"))
    return found


def module_bytes():
    """The figure, live."""
    return Figure(
        name="module-bytes", title="Where every byte goes.", size=(4.6, 3.2),
        caption="Each row is a part of the model: what it takes, and of that, what one decode step reads. "
                "The largest fills the axis.",
        controls=(Choice("build", "Build", {words: sizes(name) for words, name in BUILDS.items()},
                         "Qwen3.8-27B, NVFP4 (article 1)"), gpus()),
        recipes={
            "own_bytes": lambda v: v.build_bytes / v.ranks,
            "most_bytes": _most, "read_percent": lambda v: 100 * v.build_read_bytes / v.build_bytes},
        axes=(Axes("of the largest part", xlim=(0, 1.01), ylim=(0.6 - len(ROWS), 0.6), legend=2,
                   xticks=((0, "0"), (1 / 2, "half"), (1, "all")),
                   yticks=tuple((-i, words) for i, words in enumerate(ROWS))),),
        marks=tuple(bar(f"{name}-{i}", -i, 0, lambda v, size=size.format(i): getattr(v, size) / v.most_bytes, color,
                        "" if i else label, thickness)
                    for name, size, color, label, thickness in BARS for i in range(len(ROWS))),
        readouts={
            "total": "{build_bytes/GB:2} GB of weights, {own_bytes/GIB:2} GiB on each GPU",
            "read": "One token reads {build_read_bytes/GB:2} GB of them, {read_percent:0} %."},
        table=Table("In GB", ("", "held", "read per token"), tuple(
            (words, f"{{row{i}_bytes/GB:2}}", f"{{row{i}_read_bytes/GB:2}}") for i, words in enumerate(ROWS))))
