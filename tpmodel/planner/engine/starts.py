"""What vLLM 0.33 refuses at its start, of what a plan knows, and what it takes where a line says nothing.

Read in its source, and held to its own start-up checks by `make vllm-lines`. A card is asked for its compute
capability; of one that has none nothing is known.
"""

from math import isclose

from ...formula.units import GIB
from .versions import Refused, TooMany

LARGE_BYTES = 70 * GIB  # from here on vllm serve takes more sequences and more tokens a pass
SEQUENCES, SEQUENCES_LARGE = 256, 1024
SMALL_ALL_THE_SAME = (8.0, 12.1)  # A100 and GB10
FP8_KERNELS = 8.9  # from here on Triton's attention reads an FP8 cache
STATE_KERNEL, LATENT_KERNEL = 9.0, 10.0  # from here on FlashInfer's for gated-delta states, and its block for latents
FP8_HEADS = {64, 128, 256, 512}  # FlashInfer's, before FP8_KERNELS
INT_GROUPS = (32, 64, 128)
DROPPED = ("nf4", "bnb-int8")  # bitsandbytes
GROUPS = {"nvfp4": 16, "nvfp4 (w4a16)": 16, "mxfp8": 32}


def capability(card):
    """Of a card; None where it has none."""
    found = card.numbers.get("compute_capability")
    return found and found.value


def least(cards):
    """The lowest capability among the cards; None where one has none."""
    found = [capability(card) for card in cards]
    return None if None in found else min(found)


def _latent(config):
    return next((layer for layer in config.order if layer.kind == "latent"), None)


def kernels(config, kv_dtype, cards):
    """What the cards' kernels change in a Setting: the blocks of a latent, the kept states of gated-delta layers.

    >>> from ...catalog.gpus import gpu
    >>> from ..shapes.models import find_config
    >>> kernels(find_config("qwen3.8-27b-nvfp4"), "fp8", [gpu("rtx-3090")])
    {'checkpoints': 0}
    """
    sm, latent = least(cards), _latent(config)
    if sm is None:
        return {}
    if latent:
        hopper = sm >= STATE_KERNEL and (kv_dtype.startswith("fp8") or latent.index_elements)
        return {"block_tokens": 32} if sm >= LATENT_KERNEL and sm < 12 else {"block_tokens": 64} if hopper else {}
    gated = any(layer.state and layer.state.family == "gdn" for layer in config.order)
    return {"checkpoints": 0} if gated and sm < STATE_KERNEL else {}


def check_build(config):
    """Refuse a build in a format that vLLM has dropped."""
    dropped = next((module.format for module in config.modules if module.format in DROPPED), None)
    if dropped:
        raise Refused(f"quant_method = 'bitsandbytes' ({dropped}) is not accepted: vLLM 0.33 has dropped it")


def check_cache(config, kv_dtype, cards):
    """Refuse a format of the cache that vLLM has no kernel for on one of the cards."""
    for card in cards:
        wanted = _no_kernel(config, kv_dtype, capability(card))
        if wanted:
            raise Refused(f"kv_dtype = {kv_dtype!r} is not accepted on {card.key}: vLLM 0.33 takes it {wanted}")


def _no_kernel(config, kv_dtype, sm):
    """What the format would need, in words; nothing where it can be had."""
    if sm is None:
        return ""
    latent, sinks = _latent(config), config.family == "gpt_oss"
    heads = {layer.head_elements for layer in config.order if layer.kind in ("full", "window", "chunk")}
    old = sm < FP8_KERNELS
    if kv_dtype == "fp16" and sm >= 8:
        return "only where the model itself is in FP16; bf16 is as large"
    if kv_dtype == "fp8_per_token_head" and old:
        return f"from compute capability {FP8_KERNELS} on, and this is {sm:g}"
    if kv_dtype in ("fp8", "fp8_e4m3", "fp8_e5m2") and old and (sm < 8 or latent or sinks or not heads <= FP8_HEADS):
        return f"for this model from compute capability {FP8_KERNELS} on, and this is {sm:g}"
    if kv_dtype == "nvfp4" and (sm < 8 or sinks or 64 in heads):
        return "from compute capability 8 on, for heads of other than 64 elements and without sinks"
    if kv_dtype == "fp8_ds_mla" and latent and not latent.index_elements:
        return "only for models whose attention is sparse"
    return ""


def group_of(module):
    """Rows of a matrix that share one scale, where a rank's share must be a multiple of them; 1 for none."""
    if module.format == "fp8" and module.bits > 8:  # in blocks of 128 x 128; those of experts are refined down to 32
        return 32 if module.name == "experts" else 128
    if module.format in ("int4", "int8"):
        bits = int(module.format[3:])
        more = module.bits - bits  # a scale of 16 bits for each group, and a zero where it has one
        return next((n for n in INT_GROUPS if isclose(more * n, 16) or isclose(more * n, 16 + bits)), 1)
    return GROUPS.get(module.format, 1)


def check_ranks(config, ranks):
    """Refuse a split whose shares of a matrix do not fall on whole elements and whole groups of scales."""
    value = next((layer.value_head_elements for layer in config.order if layer.value_head_elements), 0)
    state = next((layer.state for layer in config.order if layer.state), None)
    rows = {"attention": config.heads * value, "mlp": config.intermediate, "experts": config.expert_intermediate,
            "state": state.value_heads * state.value_elements if state else 0}
    heads = next((layer.kv_heads for layer in config.order if layer.kv_heads), 0)
    if config.family == "gpt_oss" and ranks > heads:  # its class does not copy key/value heads to more ranks
        raise Refused(f"ranks = {ranks} is not accepted: at most the {heads} key/value heads of {config.name}")
    for module in config.modules if ranks > 1 else ():
        inputs, group = rows.get(module.name, 0), group_of(module)
        if inputs % (ranks * group):
            size = f"{inputs} / {ranks} = {inputs / ranks:g}"
            needs = f"a multiple of {group}, the group of its {module.format} scales" if group > 1 else "a whole number"
            raise Refused(f"ranks = {ranks} is not accepted: a rank's rows of {module.name} of {config.name}, {size}, "
                          f"must be {needs}")


def default_sequences(card):
    """Sequences at once where no --max-num-seqs is given."""
    large = card.vram_bytes >= LARGE_BYTES and capability(card) not in SMALL_ALL_THE_SAME
    return SEQUENCES_LARGE if large else SEQUENCES


def check_sequences(config, asked, blocks):
    """Refuse more sequences, where so many were asked for, than a model with states has blocks."""
    if asked and asked > blocks and any(layer.state for layer in config.order):
        raise TooMany(asked, blocks, config.name)


def sequences(config, cards, blocks, batch):
    """--max-num-seqs of a line: the batch; of a model with states at most the blocks, and 256; None where vLLM's fits.

    1,024 sequences take memory of a large card that no pool of ours leaves to them.
    """
    if batch > 1:
        return batch
    most = max(1, min(int(blocks), SEQUENCES))
    states = any(layer.state for layer in config.order)
    return most if states and most < max(map(default_sequences, cards)) else None
