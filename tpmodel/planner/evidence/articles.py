"""The machine and model of article 1: where the figures start and what the claims are recomputed with."""

from ...catalog.assumptions import assumed
from ...catalog.gpus import gpu
from ...catalog.links import link
from ...formula.view import View
from ..shapes.models import model

RANKS = 2
OVERHEAD = assumed("article-1-start").numbers["overhead_bytes"]
"""What article 1 takes an engine to need; `planner.plan` counts it part by part."""
UTILISATION_FRAC = assumed("article-1").utilisation_frac
MODEL = model("qwen3.8-27b-nvfp4")
GPU = gpu("rtx-5060-ti-16gb")
LINK = link("pcie5-x8-line-rate")
PLAIN = dict.fromkeys(("experts_s", "floor_s", "unhidden_frac"), 0)
"""A dense model whose kernels cost nothing but their work, and overlap it."""
RECIPES = {"message_bytes": "allreduce_payload_bytes", "bulk_latency_s": "allreduce_latency_s"}
"""What every setting of the articles means by two names: the message of a pass; a link of one straight line."""


def without(found, names):
    """What is left of a dict."""
    return {name: value for name, value in found.items() if name not in names}


def setting(recipes=None, **more):
    """Article 1's setting as one view: its model, its card, its link, two GPUs, one token; `more` adds or replaces."""
    base = {**MODEL.values(), **GPU.values(), **LINK.values(), "overhead_bytes": OVERHEAD.base, "ranks": RANKS,
            "utilisation_frac": UTILISATION_FRAC, "tokens": 1, "context_tokens": 0, "achieved_frac": 1, "mfu_frac": 1,
            "gap_s": 0, **PLAIN, "flop_per_s": GPU.bf16_flop_per_s, "attention_flop_per_s": GPU.bf16_flop_per_s,
            "read_bytes": MODEL.weights_bytes}
    recipes = without(RECIPES | (recipes or {}), more)
    sources = {**MODEL.numbers, **GPU.numbers, **LINK.numbers, "overhead_bytes": OVERHEAD}
    return View(without(base, recipes) | more, recipes, ("read_bytes", *more), without(sources, more))
