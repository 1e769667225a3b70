"""Which architectures of a config.json vLLM 0.33 knows, which of them write, and which may be cut into stages."""

import tomllib
from functools import lru_cache
from importlib import resources

from ...inputs import shown
from .versions import Refused

# What a name ends in says what vLLM does with it, the first that fits; it may know the model under another ending.
WRITING = ("ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel")
POOLING = ("ForTextEncoding", "EmbeddingModel", "ForSequenceClassification", "ForTokenClassification",
           "ForAudioClassification", "ForImageClassification", "ForVideoClassification", "ClassificationModel",
           "ForRewardModeling", "RewardModel", "Model")
SINCE = (0, 33)  # the release whose registry the table holds


@lru_cache(maxsize=None)
def _table():
    text = (resources.files(__package__) / "data" / "architectures.toml").read_text(encoding="utf-8")
    return {key: frozenset(names) if isinstance(names, list) else names for key, names in tomllib.loads(text).items()}


def pools(config):
    """Whether a model gives vectors or classes in place of text.

    >>> from ..shapes.models import find_config
    >>> pools(find_config("nemotron-3-embed-8b")), pools(find_config("qwen3-8b"))
    (True, False)
    """
    for name in config.architectures:
        if name in _table()["pooling"]:
            return True
        if name not in _table()["writing"]:
            return not name.endswith(WRITING) and name.endswith(POOLING)
    return False


def _known(name):
    names = _table()["known"] | _table()["transformers"]
    ends = [end for end in WRITING + POOLING if name.endswith(end)]
    return name in names or any(name.removesuffix(ends[0]) + end in names for end in WRITING + POOLING if ends)


def check_architecture(config, rules, stages):
    """Refuse what the release does not know, and a pipeline of what it cannot cut into stages."""
    names = config.architectures
    if rules.since < SINCE or not names:
        return
    if not any(map(_known, names)):
        last = next((_table()["dropped"][name] for name in names if name in _table()["dropped"]), None)
        why = f"it was known until {last}: say that --engine" if last else "its registry and Transformers lack it"
        raise Refused(f"architectures = {shown(names[0])} is not accepted: vLLM 0.33 does not know it; {why}")
    whole = next((name for name in names if name in _table()["whole"]), None)
    if stages > 1 and whole:
        raise Refused(f"stages = {stages} is not accepted: vLLM 0.33 cannot cut {whole} into pipeline stages")
