"""The engine as it is started: what differs between vLLM's versions, the settings, the pipeline stages."""

import re
from dataclasses import dataclass

from ...inputs import refused


class Refused(ValueError):
    """vLLM itself would refuse this."""


class TooMany(Refused):
    """More sequences were asked for than there are blocks for states."""

    def __init__(self, asked, blocks, name):
        self.blocks = blocks
        super().__init__(f"max_num_seqs = {asked} is not accepted: it must be at most {blocks:.0f}, "
                         f"the blocks for states of {name}")


@dataclass(frozen=True)
class Version:
    """What differs between releases: of 0.32 and 0.33 as in the source, of older ones as issues and logs bracket it."""

    since: tuple
    null_blocks: int = 0  # held back when checking that one sequence fits
    in_flight: int = 1  # batches in flight; with asynchronous scheduling 2
    caching: bool = False  # prefix caching of hybrids, by default
    printed: str = "old"  # whole blocks of one group, or concurrency times length
    grouped: bool = True  # needed bytes count padding layers
    whole_model: bool = False  # each pipeline stage is charged with all layers (issues 32105 and 34076)
    mamba2_checkpoints: int = 0  # states that prefix caching keeps besides
    expert_rows: int = 128  # smallest blocks of FP8 that a rank's experts may be cut into
    least_card: int = 70  # ten times the compute capability of the oldest cards that its wheels have kernels for
    gdn_step: int = 16  # FlashInfer's gated-delta prefill wants 64 and one state more; a card without it: checkpoints=0
    whole_prompt: bool = False  # the profile run is a pass of the whole context
    sorts: bool = False  # sampling sorts whole rows of the vocabulary
    graphs: bool = True  # what CUDA graphs are expected to take is taken off before the cache is sized
    counts: bool = True  # the counters of penalties are kept
    workspaces: bool = True  # of experts and all-reduces, which are kept; else experts' buffers go with their layer


_NEW = dict(caching=True, printed="new", least_card=75)
VERSIONS = (
    Version((0, 0), grouped=False, whole_prompt=True, sorts=True, graphs=False, counts=False, workspaces=False),
    Version((0, 8), grouped=False, sorts=True, graphs=False, counts=False, workspaces=False),
    Version((0, 14), whole_model=True, sorts=True, graphs=False, counts=False),
    Version((0, 16), graphs=False, counts=False),
    Version((0, 21), counts=False),
    Version((0, 24), **_NEW, counts=False),
    Version((0, 29), **_NEW),
    Version((0, 32), **_NEW, null_blocks=1, in_flight=2, mamba2_checkpoints=1),
    Version((0, 33), **_NEW, null_blocks=1, in_flight=2, mamba2_checkpoints=1, gdn_step=64, expert_rows=32),
)
READ = 0, 33  # the newest release whose source was read
RELEASE = r"(?:vllm-)?[~v]{0,2}([0-9]{1,4})\.([0-9]{1,4})((\.|\+|-|a|b|rc|post|dev)[0-9a-z.+-]*)?"


def version(text):
    """The rules of a release.

    >>> version("0.19.0").printed, version("vllm-0.33").gdn_step
    ('old', 64)
    """
    found = re.fullmatch(RELEASE, str(text).strip().lower())
    if not found:
        raise refused("vLLM version", str(text), "it must look like 0.33 or vllm-0.33.0")
    return [rule for rule in VERSIONS if rule.since <= (int(found[1]), int(found[2]))][-1]


def unread(text):
    """What to know of a release that is newer than those whose source was read: a sentence, or none."""
    found = re.fullmatch(RELEASE, str(text).strip().lower())
    newer = found and (int(found[1]), int(found[2])) > READ
    said = f"vLLM {found[1]}.{found[2]} was not read: the rules are those of {READ[0]}.{READ[1]}" if newer else ""
    return [said] if newer else []


@dataclass(frozen=True)
class Setting:
    """How the engine is started. None means the version's own default."""

    rules: Version = VERSIONS[-1]
    ranks: int = 1
    stages: tuple = ()  # layers of each pipeline stage; empty for one stage
    kv_dtype: str = "bf16"
    block_tokens: int = 16
    batch_tokens: int = 8192
    context_tokens: int = 1
    sequences: int = 256  # that may run at once
    in_flight: int = None
    caching: bool = None
    mode: str = None  # of the states: none, align, all
    drafts: int = 0
    draft_layers: int = 0
    checkpoints: int = None
    packed: bool = False  # block-outermost layout
    hybrid: bool = True  # the hybrid cache manager
    kernels: tuple = ()  # of quantised weights, slow, middle and fast, where engine, format and card do not decide
    pooling: bool = False  # vectors or classes of documents, in place of text


def split_layers(layers, stages, given=None):
    """Layers of each pipeline stage: vLLM's default rule, or the `given` list.

    >>> split_layers(61, 4), split_layers(5, 3), split_layers(34, 2, (20, 14))
    ((15, 15, 16, 15), (2, 2, 1), (20, 14))
    """
    if given:
        if len(given) != stages or sum(given) != layers or min(given) < 1:
            raise ValueError(f"layers = {','.join(map(str, given))} is not accepted: "
                             f"it must be {stages} whole numbers >= 1 that add up to {layers}")
        return tuple(given)
    if not 1 <= stages <= layers:
        raise refused("stages", stages, f"it must be a whole number from 1 to {layers}, the number of layers")
    share, rest = divmod(layers, stages)
    return tuple(share + (stages - 1 - rest <= i < stages - 1) for i in range(stages))
