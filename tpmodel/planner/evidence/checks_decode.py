"""Decode speeds as people measured them, one stream, beside the additive model.

Read are the columns that describe the setting, never the speed: bytes read, card, split, link, engine, drafts, cache.
"""


from ...catalog.gpus import by_name, gpu
from ...formula.units import GB
from ...formulas import memory, speculation
from ..engine.memory import state_bytes
from ..engine.versions import Setting
from ..plan import assume, one_pass, wire
from ..shapes.models import by_name as model_by_name
from . import transports
from .checks import judged, need_columns
from .measured import MIDDLE

KV_BYTES = {"q4_0": 18 / 32, "q8_0": 34 / 32,  # llama.cpp adds a scale per 32
            "int8": 1, "fp8": 1, "bf16": 2, "f16": 2, "auto": 2, "n/s": 2}
SHORT_TOKENS = 1024  # a cache that one card reads in no time beside its weights
MOST_TOKENS, MOST_GB, MOST_DRAFTS = 10**8, 10**5, 16
UNKNOWN_SHAPE = {"hidden": 1, "heads": 1, "full_layers": 0, "head_elements": 1, "allreduces": 0}  # of one card


def rows(columns, lines):
    """The Rows of a table with the columns of decode_cases.csv."""
    need_columns(columns, "id model weight_read_gb gpu tp pp link engine spec_tokens kv_dtype")
    return judged(lines, "tokens_per_s", predict)


def predict(line, gap=True):
    """((low, middle, high) in tokens/s, what was assumed) of one row; without `gap` the engine never makes it wait."""
    rates, drafts, accepted = [], line.number("spec_tokens", most=MOST_DRAFTS), assume.ACCEPTANCE
    for end in range(len(assume.ENDS)):
        v, draft_s, handover_s = _step(line, drafts, end, gap)
        round_s = v.pass_s + handover_s + drafts * draft_s
        rates.append(speculation.round_tokens(drafts, accepted[end]) / round_s)
    return tuple(rates), f"a draft is accepted with a chance of {accepted[0]} to {accepted[-1]}" if drafts else ""


def parts_s(line):
    """(reads at the full bandwidth, all-reduces and hand-overs, engine's wait) of a middle step without drafts."""
    v, _, handover_s = _step(line, 0, MIDDLE, True)
    return (v.weight_read_s + v.kv_read_s) * v.achieved_frac, v.communication_s + handover_s, v.gap_s


def _step(line, drafts, end, gap):
    """(one step as a view, time of a draft step, time of all hand-overs) of a row."""
    if line.text("cuda_graphs", "yes") != "yes":
        raise ValueError("cuda_graphs is not yes: then the host's launches set the pace, which no column tells")
    ranks, stages = transports.split_of(line)
    card, link = gpu(by_name(line.text("gpu"))), wire.in_step(transports.of(line))
    try:
        config = model_by_name(line.text("model"))
    except ValueError:
        if ranks * stages > 1 or line.number("kv_depth_tokens", 0) > SHORT_TOKENS or line.number("spec_tokens"):
            raise
        config = None  # not needed: one card, a short cache, no drafts
    v = one_pass.stage(
        card, link, end, **one_pass.shape(config, config.order) if config else UNKNOWN_SHAPE, ranks=ranks, linear_s=0,
        tokens=1 + drafts, context_tokens=line.number("kv_depth_tokens", 0, most=MOST_TOKENS), mfu_frac=1,
        read_bytes=line.number("weight_read_gb", whole=False, least=1e-3, most=MOST_GB) * GB,
        cache_read_bytes=_cache_bytes(line, config, ranks), gap_s=gap * assume.gap_range_s(line.text("engine"))[end])
    if drafts and not config.draft_layers:
        raise ValueError(f"spec_tokens is not predicted: {config.name} has no MTP layer")
    draft_s = one_pass.draft_view(config, (card,), link, ranks, 1, drafts, end).draft_s if drafts else 0.0
    return v, draft_s, (stages - 1) * one_pass.handover_s(link, v.message_bytes, end)


def _cache_bytes(line, config, ranks):
    """What a step reads of the cache on one GPU: of a layer with a window no more than that; a state is written too."""
    depth, kind = line.number("kv_depth_tokens", 0, most=MOST_TOKENS), line.text("kv_dtype", "n/s")
    if kind not in KV_BYTES:
        raise ValueError(f"kv_dtype = {kind[:40]!r} is not accepted: it must be one of {', '.join(KV_BYTES)}")
    if config is None:
        return 0.0
    if depth and any(layer.kind == "latent" for layer in config.order):
        raise ValueError("a latent cache is not predicted here")

    def read_bytes(layer):
        if layer.state:
            return 2 * state_bytes(layer.state, Setting(ranks=ranks))
        token = memory.kv_bytes_per_token(1, layer.kv_heads, layer.head_elements, KV_BYTES[kind], ranks)
        return token * min(depth, layer.window_tokens or depth)

    return sum(count * (read_bytes(layer) if layer.state or layer.kv_heads else 0.0)
               for layer, count in config.alike.items())
