"""The block counts of article 1's setting, by vLLM's planner: what the chapter on bytes tells."""

from ..engine.memory import plan_model
from ..engine.versions import Setting, version
from ..shapes.models import find_config
from .articles import MODEL, RANKS, setting


def article_plan(engine="0.32", kv_dtype="fp8", drafts=0, model=MODEL.key, context_tokens=None, **more):
    """vLLM's plan for the article's 20 GB, 1.2 GiB and 0.92 of a card; `more` replaces numbers of its setting."""
    pool = setting(**more).kv_pool_bytes
    config = find_config(model)
    rules = Setting(rules=version(engine), ranks=int(more.get("ranks", RANKS)), kv_dtype=kv_dtype,
                    context_tokens=context_tokens or config.native_tokens, drafts=drafts)
    return plan_model(config, rules, pool)


def least_utilisation(needed_bytes, block_bytes, **more):
    """The least fraction of the card at which a need and the null block fit, all else as in the article."""
    v = setting(**more)
    return (needed_bytes + block_bytes + v.weights_bytes / v.ranks + v.overhead_bytes) / v.vram_bytes
