"""What vLLM 0.33 refuses at its start, of what a plan knows, and what it takes where a line says nothing.

Read in its source, and held to its own start-up checks by `make vllm-lines`. A card is asked for its compute
capability; of one that has none nothing is known.
"""

import math
from dataclasses import replace

from ...catalog.assumptions import assumed
from ...catalog.gpus import memory
from ...formula.units import GIB
from ...inputs import shown
from .versions import Refused, TooMany

LARGE_BYTES = 70 * GIB  # from here on vllm serve takes more sequences and more tokens a pass
SEQUENCES, SEQUENCES_LARGE = 256, 1024
SMALL_ALL_THE_SAME = (8.0, 12.1)  # A100 and GB10
FP8_KERNELS = 8.9  # from here on Triton's attention reads an FP8 cache
STATE_KERNEL, LATENT_KERNEL = 9.0, 10.0  # from here on FlashInfer's for gated-delta states, and its block for latents
FP8_HEADS = {64, 128, 256, 512}  # FlashInfer's, before FP8_KERNELS
TURING, AMPERE = 75, 80  # ten times the capability that a quantised build needs; one in MXFP4, or in ModelOpt's 8 bits
EIGHT_BITS = {"fp8", "mxfp8"}
TABLE_ROWS = 64  # to which a vocabulary is padded
FREE_FIRST = 0, 14  # of these rules on, vLLM refuses to start with less memory free than its share
DROPPED = ("nf4", "bnb-int8")  # bitsandbytes


def capability(card):
    """Of a card; None where it has none."""
    found = card.numbers.get("compute_capability")
    return found and found.value


def runtime(card):
    """What programs reach it by: cuda where the card does not say."""
    return card.said.get("runtime", "cuda")


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


def check_build(config, cards, rules):
    """Refuse a build in a format that vLLM has dropped, and cards too old for it, or for the release."""
    dropped = next((module.format for module in config.modules if module.format in DROPPED), None)
    if dropped:
        raise Refused(f"quant_method = 'bitsandbytes' ({dropped}) is not accepted: vLLM 0.33 has dropped it")
    formats = {module.format for module in config.quantised}
    modern = config.quant_method == "mxfp4" or config.quant_method == "modelopt" and formats <= EIGHT_BITS
    needs = AMPERE if formats and modern else TURING if formats else 0
    for card in cards:
        sm = capability(card)
        old = sm is not None and round(10 * sm)
        if old and old < rules.least_card:
            raise Refused(f"gpu = {card.key!r} is not accepted: this vLLM has kernels from compute capability "
                          f"{rules.least_card / 10:g} on, and this is {sm:g}: say an older --engine")
        if old and old < needs:
            method = shown(config.quant_method)
            raise Refused(f"gpu = {card.key!r} is not accepted: quant_method = {method} needs compute capability "
                          f"{needs / 10:g} in vLLM, and this is {sm:g}")


def check_cache(config, kv_dtype, cards):
    """Refuse a format of the cache that vLLM has no kernel for on one of the cards."""
    for card in cards:
        foreign = kv_dtype == "nvfp4" and runtime(card) != "cuda"
        wanted = "on NVIDIA's cards only" if foreign else _no_kernel(config, kv_dtype, capability(card))
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
    if kv_dtype == "nvfp4" and (sm < 8 or sinks or not heads <= FP8_HEADS - {64}):
        return "from compute capability 8 on, for heads of 128, 256 or 512 elements and without sinks"
    if kv_dtype == "fp8_ds_mla" and latent and not latent.index_elements:
        return "only for models whose attention is sparse"
    return ""


def group_of(module, method, cards, rules):
    """Rows of a matrix, of which a rank's share must be a multiple; 1 for any.

    Blocks of FP8 experts are refined by the kernels of some releases and cards; experts in MXFP4 are padded, and those
    of AWQ and GPTQ have a kernel for any rows.
    """
    if module.name == "experts" and (module.format == "mxfp4" or method.startswith(("awq", "gptq"))):
        return 1
    refined = module.name == "experts" and module.format == "fp8" and (least(cards) or FP8_KERNELS) >= FP8_KERNELS
    return min(module.group, rules.expert_rows) if refined else module.group


def check_ranks(config, cards, ranks, rules):
    """Refuse a split whose shares of a matrix do not fall on whole elements and whole groups of scales."""
    value = next((layer.value_head_elements for layer in config.order if layer.value_head_elements), 0)
    state = next((layer.state for layer in config.order if layer.state), None)
    rows = {"attention": config.heads * value, "mlp": config.intermediate, "experts": config.expert_intermediate,
            "state": state.value_heads * state.value_elements if state else 0}
    heads = next((layer.kv_heads for layer in config.order if layer.kv_heads), 0)
    if config.family == "gpt_oss" and ranks > heads:  # its class does not copy key/value heads to more ranks
        raise Refused(f"ranks = {ranks} is not accepted: at most the {heads} key/value heads of {config.name}")
    table = -(-config.vocabulary // TABLE_ROWS) * TABLE_ROWS
    if table % ranks:
        raise Refused(f"ranks = {ranks} is not accepted: it must divide the {table} rows of the padded vocabulary")
    for module in config.modules if ranks > 1 else ():
        inputs, group = rows.get(module.name, 0), group_of(module, config.quant_method, cards, rules)
        if inputs % (ranks * group):
            size = f"{inputs} / {ranks} = {inputs / ranks:g}"
            needs = f"a multiple of {group}, the group of its {module.format} scales" if group > 1 else "a whole number"
            raise Refused(f"ranks = {ranks} is not accepted: a rank's rows of {module.name} of {config.name}, {size}, "
                          f"must be {needs}")


def context(card, gpus):
    """What CUDA, and NCCL among several GPUs, takes of one before the engine counts: a number of the catalog."""
    own = card.numbers.get("context_bytes", assumed("vllm").numbers["context_bytes"])
    group = assumed("vllm-tensor-parallel").numbers["context_bytes"]
    low, mid, high = (max(ends) for ends in zip(own.base_range, group.base_range))
    return own if gpus == 1 else replace(group, low=low, value=mid, high=high, unit="byte")


def check_free(cards, reserves, util, gpus, rules):
    """Refuse a share of the memory that CUDA's context leaves free on no card; a sentence where it may not.

    reserves : bytes that something else has taken of each card
    gpus : that serve together
    """
    if rules.since < FREE_FIRST or runtime(cards[0]) != "cuda":
        return ""
    shares = [[(memory(card).base - taken - end) / memory(card).base for end in context(card, gpus).base_range]
              for card, taken in zip(cards, reserves)]
    tightest = min(range(len(cards)), key=lambda i: shares[i][1])
    card = cards[tightest]
    most, _, least = shares[tightest]
    low, _, high = (end / GIB for end in context(card, gpus).base_range)
    said = (f"CUDA's context takes {low:.2f} to {high:.2f} GiB of the {memory(card).base / GIB:.2f} of {card.key} "
            "before vLLM counts")
    sure = math.floor(least * 1000) / 1000
    if util > most:
        wanted = f"it must be at most {math.floor(most * 1000) / 1000:g}, or {sure:g} to be sure"
        raise Refused(f"util = {util:g} is not accepted: {said}: {wanted}")
    return f"{said}, and vLLM refuses a share that is not free: if it does, say --util {sure:g}" * (util > least)


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
