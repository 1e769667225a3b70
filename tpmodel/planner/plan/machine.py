"""What was asked, checked; its cards, link and model looked up in our catalog or in the user's own."""

import re
from dataclasses import replace

from ... import inputs
from ...catalog import sourced
from ...catalog.gpus import gpu, gpus, namesakes
from ...catalog.links import link as find_link
from ..engine import kernels, starts
from ..engine.architectures import pools
from ..engine.memory import KV_BYTES
from ..engine.versions import Setting, version
from . import drafts, partition, places
from .assume import ENGINE, ENGINES, other_engine
from .build import build
from .values import PARTS, Machine

LATENT_KV, NEVER_LATENT_KV = "fp8_ds_mla", "nvfp4"  # vLLM 0.33 has no kernels for the other kind of cache
NATIVE_TOKENS = 32768  # where a config.json prints no length
MOST_SEQUENCES, MOST_TOKENS = 65536, 2**24  # no engine takes more
REPOSITORY = re.compile(r"(?!-)[^\s\x00-\x1f]{1,200}")
CARD_NEEDS = ("vram_bytes", "memory_bytes_per_s", "bf16_flop_per_s")
LINK_NEEDS = ("link_bytes_per_s", "allreduce_latency_s")


def check(ask):
    """Refuse what no machine could answer."""
    n, kinds = len(ask.gpus), [name for name in KV_BYTES if name != "fp32"]
    way, seqs = partition.split("one" if ask.parallel == "auto" else ask.parallel, max(n, 1)), ask.max_num_seqs
    least = max(seqs or ask.batch, 1 + ask.mtp)
    for name, value, fine, wanted in (
        ("gpu", ", ".join(ask.gpus), n >= 1 and all(ask.gpus), "a name, once for each GPU"),
        ("layers", ask.layers, ask.layers is None or way.stages > 1 and not way.layers, "given with a pipeline only"),
        ("kv_dtype", ask.kv_dtype, ask.kv_dtype in (None, *kinds), f"one of {', '.join(kinds)}"),
        ("context", ask.context, ask.context is None or ask.context >= 1, "a whole number >= 1"),
        ("util", ask.util, 0 < ask.util <= 1, "a number above 0, at most 1"),
        ("mtp", ask.mtp, 0 <= ask.mtp <= 16, "a whole number from 0 to 16"),
        *drafts.asked(ask),
        ("batch", ask.batch, 1 <= ask.batch <= 4096, "a whole number from 1 to 4096"),
        ("prompt", ask.prompt, ask.prompt is None or 1 <= ask.prompt <= (ask.context or ask.prompt),
         f"a whole number from 1 to the context, {ask.context}" if ask.context else "a whole number >= 1"),
        ("host", ask.host, ask.host is None or n > 1, "given with two GPUs or more"),
        ("slot", ask.slot, ask.slot is None or n > 1, "given with two GPUs or more"),
        ("max_num_seqs", seqs, seqs is None or ask.batch <= seqs <= MOST_SEQUENCES,
         f"a whole number from {ask.batch}, the sequences of --batch, to {MOST_SEQUENCES}"),
        ("max_num_batched_tokens", ask.max_num_batched_tokens,
         ask.max_num_batched_tokens is None or least <= ask.max_num_batched_tokens <= MOST_TOKENS,
         f"a whole number from {least}, one for each sequence and more than are drafted, to {MOST_TOKENS}"),
        ("repository", ask.repository, ask.repository is None or REPOSITORY.fullmatch(ask.repository),
         "owner/name as on the Hub, or a folder"),
        ("cpu_offload_gib", ask.cpu_offload_gib, 0 <= (ask.cpu_offload_gib or 0) <= partition.MOST_GIB,
         "a number of GiB, 0 or more"),
        ("goal", ask.goal, ask.goal in PARTS, "decode or prefill"),
    ):
        if not fine:
            raise inputs.refused(name, value, f"it must be {wanted}")


def machine(ask):
    """The Machine that was asked about."""
    extra = {} if ask.catalog is None else sourced.read_file(ask.catalog)
    cards = tuple(needed(_entry(extra, key, gpu), CARD_NEEDS, "plan") for key in ask.gpus)
    kinds = sorted({starts.runtime(card) for card in cards})
    if len(kinds) > 1:
        raise inputs.refused("gpu", ", ".join(card.key for card in cards),
                             f"one engine runs on GPUs of one kind, not of {' and '.join(kinds)}")
    if ask.kernel:
        kernels.needed(ask.kernel, cards)
    here = places.place(ask.host, ask.slot, cards)
    wire = needed(places.chosen(ask.link, here, cards, lambda key: _entry(extra, key, find_link)), LINK_NEEDS, "plan")
    reserves = partition.parse_reserves(ask.reserve_gib, len(cards))
    links = (key for key, entry in extra.items() if "link_bytes_per_s" in entry.numbers)
    return Machine(cards, wire, reserves, tuple(key for key in links if key != wire.key))


def meant(ask, cards):
    """Which card a name was taken for that several have: a sentence for each, or none."""
    said = []
    for name, card in dict(zip(ask.gpus, cards)).items():
        asked = name not in gpus() and card.key in gpus()  # not by its key, nor of the user's own catalog
        others = namesakes(name, card) if asked else []
        said += [f"{card.key} is taken, {card.name}: there is also {', '.join(others)}"] if others else []
    return said


def _entry(extra, key, find):
    """An entry of the user's own catalog, or of ours."""
    try:
        return extra[key] if key in extra else find(key)
    except ValueError as error:
        raise ValueError(f"{error}{', or of your catalog: ' if extra else ''}{', '.join(extra)}") from None


def needed(entry, names, task):
    """The entry, which must have the numbers that the task, a plan or a split, needs."""
    missing = [name for name in names if name not in entry.numbers]
    if missing:
        raise ValueError(f"{entry.key} has no {', '.join(missing)} in the catalog: a {task} needs it")
    return entry


def _rules(ask):
    """The release whose rules count for the cache; the default's where the engine is not vLLM, as the verdict says."""
    if other_engine(ask.engine):
        return version(ENGINE)
    try:
        return version(ask.engine)
    except ValueError as error:
        others = ", ".join(sorted({entry.name for entry in ENGINES.values()} - {"vLLM"}))
        raise ValueError(f"{error}, or name one of {others}") from None


def model(ask):
    """(the model's shape, the engine's setting) that was asked about."""
    config = build(ask)
    latent = any(layer.kind == "latent" for layer in config.order)
    if ask.kv_dtype == (NEVER_LATENT_KV if latent else LATENT_KV):
        cache = "keys and values" if latent else "a latent"
        said = f"it is for models with {cache} in the cache, which {ask.model} has not"
        raise inputs.refused("kv_dtype", ask.kv_dtype, said)
    if ask.kernel and not config.quantised:
        raise inputs.refused("kernel", ask.kernel, f"{ask.model} has no quantised weights that it would multiply")
    if ask.mtp and not config.draft_layers:
        raise ValueError(f"mtp = {ask.mtp} is not accepted: {ask.model} has no MTP layer")
    if ask.mtp > config.draft_layers > 0 and ask.mtp % config.draft_layers:
        wanted = f"at most the {config.draft_layers} MTP layers of {ask.model}, or a multiple of them"
        raise inputs.refused("mtp", ask.mtp, f"it must be {wanted}")
    if ask.batch > 1 and pools(config):
        raise inputs.refused("batch", ask.batch, f"{ask.model} decodes nothing: documents fill a pass by themselves")
    native = config.native_tokens or NATIVE_TOKENS
    for name, tokens in ("context", ask.context), ("prompt", ask.prompt):
        if tokens is not None and tokens > native:
            raise inputs.refused(name, tokens, f"it must be at most {native}, the native length of {ask.model}")
    if not ask.mtp and ask.weights_gib is None:  # vLLM loads the layer only where it drafts
        config = replace(config, modules=tuple(module for module in config.modules if module.name != "mtp"))
    return config, Setting(_rules(ask), kv_dtype=config.kv_dtype if ask.kv_dtype is None else ask.kv_dtype,
                           context_tokens=ask.context or native, drafts=ask.mtp,
                           batch_tokens=ask.batch_tokens, pooling=pools(config),
                           kernels=((ask.kernel,),) * 3 if ask.kernel else ())
