"""The machine and model of article 2: two unequal cards without peer access, an embedding model of 8 B."""

from dataclasses import replace

from ...catalog.assumptions import assumed
from ...catalog.gpus import gpu
from ...catalog.links import link
from ...formula.view import View
from ..shapes.models import model
from .articles import RECIPES, without

MODEL = model("nemotron-3-embed-8b")
SHOWN = {key: gpu(key).numbers | assumed(f"article-2-{key}").numbers for key in ("rtx-5080", "rtx-5060-ti-16gb")}
CARDS = {name: replace(gpu(key), numbers=SHOWN[key]) for name, key in zip(("5080", "5060"), SHOWN)}
LINK = link("nccl-shm-wsl2")
COPIES = {"5080": link("host-pcie5-x16-pageable"), "5060": link("host-pcie4-x4-pageable")}
PINNED = {"5080": link("host-pcie5-x16-pinned"), "5060": link("host-pcie4-x4-pinned")}
RANKS = 2
BATCH_TOKENS = 8448  # max_num_batched_tokens, article 2's conditions
OFFLOAD_GIB = 4
SHORTER = 2  # a document of "512" has 510 tokens
RUN_TOKENS = 131072  # of a run: 2,048 documents of "64" tokens, 16 of "8192"


def batch(length):
    """Names of one run at a nominal length: whole documents in a batch, whole batches in a run."""
    tokens = length - SHORTER
    documents = BATCH_TOKENS // tokens
    batches = -(-max(1, RUN_TOKENS // length) // documents)
    return {"sequence_tokens": tokens, "tokens": documents * tokens, "batches": batches}


def setting(recipes=None, **more):
    """Article 2's setting as one view at 512 tokens a document; `more` adds or replaces."""
    base = {**MODEL.values(), **LINK.values(), **batch(512), "ranks": RANKS, "tables": 1, "gap_s": 0}
    return View(base | more, without(RECIPES | (recipes or {}), more), more)
