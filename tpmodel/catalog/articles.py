"""The machine and model of article 1: where the figures start and what the claims are recomputed with."""

from ..formula import View
from .assumptions import assumed
from .gpus import gpu
from .links import link
from .models import model

RANKS = 2
UTILISATION_FRAC = assumed("article-1").utilisation_frac

MODEL = model("qwen3.8-27b-nvfp4")
GPU = gpu("rtx-5060-ti-16gb")
LINK = link("pcie5-x8-line-rate")


def setting(**more):
    """Article 1's setting as one view: its model, its card, its link, two GPUs, one token; `more` adds or replaces."""
    base = {**MODEL.values(), **GPU.values(), **LINK.values(), "ranks": RANKS, "utilisation_frac": UTILISATION_FRAC,
            "tokens": 1, "context_tokens": 0, "achieved_frac": 1, "read_bytes": MODEL.weights_bytes}
    return View(base | more)
