"""vLLM's cache planning: layers -> groups -> blocks -> what is needed, what fits, what is printed."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby

from ...formula.units import DTYPE_BYTES
from ...formulas import blocks as rules
from .versions import Refused

RECORD_BYTES = {"fp8_ds_mla": 656}
KV_BYTES = {**DTYPE_BYTES, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "nvfp4": 9 / 16, "int8_per_token_head": 1.0, "fp8_per_token_head": 1.0,
            "fp8_ds_mla": 1.0}
KV_SCALE_BYTES = {"int8_per_token_head": 8, "fp8_per_token_head": 8}
INDEX_SCALE_BYTES = 4


@dataclass(frozen=True)
class Group:
    """Layers that share one block table: how many, their page, tokens of their block."""

    layer: object
    members: tuple  # indices of the layers
    page_bytes: float
    block_tokens: float


@dataclass(frozen=True)
class Pool:
    """What vLLM finds for one size of the pool."""

    kv_pool_bytes: float
    groups: int
    block_tokens: float
    block_bytes: float
    request_blocks: float
    needed_bytes: float
    pool_blocks: float
    concurrency: float
    printed_tokens: float
    printed_tokens_old: float
    fitting_tokens: float
    fits: bool
    state_padding_frac: float


def token_bytes(layer, setting):
    """Cache of one token in one attention layer on one GPU."""
    b = KV_BYTES.get(setting.kv_dtype)
    if b is None:
        raise ValueError(f"kv_dtype = {setting.kv_dtype!r} is not accepted: it must be one of {', '.join(KV_BYTES)}")
    if layer.kind == "latent":
        index = layer.index_elements + INDEX_SCALE_BYTES if layer.index_elements else 0
        record = RECORD_BYTES.get(setting.kv_dtype)
        return index + (record or rules.latent_bytes_per_token(layer.latent_elements, layer.rope_elements, b))
    return rules.layer_bytes_per_token(layer.kv_heads, setting.ranks, layer.head_elements, layer.value_head_elements, b,
                                       KV_SCALE_BYTES.get(setting.kv_dtype, 0))


def state_bytes(state, setting):
    """One state of one layer on one GPU, unpadded."""
    n, key_heads = setting.ranks, state.key_heads
    if state.value_heads % n:
        raise Refused(f"ranks = {n} is not accepted: it must divide the {state.value_heads} heads of the state layers")
    if key_heads % n:
        if state.family != "mamba2":
            raise Refused(f"ranks = {n} is not accepted: it must divide the {key_heads} key heads of the state layers")
        key_heads = max(n, key_heads)
    drafts = 0 if state.family == "mamba1" else setting.drafts
    return rules.state_page_bytes(state.value_heads, state.value_elements, key_heads, state.key_elements, state.element_bytes,
                                  state.convolution, drafts, 2, n)


def resolved(order, setting):
    """The setting with the version's defaults put in."""
    r = setting.rules
    states = [layer.state for layer in order if layer.state]
    caching = (r.caching if states else True) if setting.caching is None else setting.caching
    gdn = any(state.family == "gdn" for state in states)
    checkpoints = setting.checkpoints
    if checkpoints is None:
        mamba2 = any(state.family == "mamba2" for state in states)
        checkpoints = int(caching) * max(mamba2 * r.mamba2_checkpoints, int(gdn and r.gdn_step > 16))
    in_flight = setting.in_flight
    if in_flight is None:
        in_flight = r.in_flight if len(setting.stages) < 2 else len(setting.stages) + (r.in_flight > 1)
    return replace(setting, caching=caching, checkpoints=checkpoints, in_flight=in_flight,
                   mode=setting.mode or ("align" if caching else "none"))


def paged(order, setting):
    """Groups of one layer each, with page and block of every cached layer; and the padding of the states."""
    attention = [layer for layer in order if layer.kind not in ("state", "none")]
    states = {layer.state for layer in order if layer.state}
    block, padding, page = setting.block_tokens, 0.0, None
    if states:
        state = max(state_bytes(s, setting) for s in states)
        if attention:
            step = max(16, block, 128 if attention[0].kind == "latent" else 0)
            if setting.rules.gdn_step > step and setting.checkpoints and any(s.family == "gdn" for s in states):
                step = setting.rules.gdn_step
            per_token = token_bytes(attention[0], setting)
            block = rules.aligned_block_tokens(block, step, state, per_token)
            page = block * per_token
            padding = page / state - 1
        else:
            page = state
    sizes = {layer: page if layer.state else block * token_bytes(layer, setting) for layer in set(order) if layer.kind != "none"}
    return [Group(layer, (i,), sizes[layer], block) for i, layer in enumerate(order) if layer in sizes], padding


def grouped(pages, setting):
    """Layers of one kind share a group; kinds are cut into groups of equally many layers, or packed by bytes."""
    if not setting.hybrid and any(p.layer.kind in ("full", "latent") for p in pages):
        pages = [replace(p, layer=replace(p.layer, kind="full")) if p.layer.kind in ("window", "chunk") else p for p in pages]
    key = lambda p: ("full" if p.layer.kind in ("full", "latent") else p.layer.kind, p.layer.window_tokens * (p.layer.kind in ("window", "chunk")))
    buckets = [list(same) for _, same in groupby(sorted(pages, key=key), key)]
    largest = max(p.page_bytes for p in pages)
    if len(buckets) == 1:
        parts = [1]
    elif setting.packed and any(p.page_bytes != largest for p in pages):
        small = lambda bucket: bucket[0].layer.kind in ("window", "state")
        anchor = max(max(p.page_bytes for p in b) if small(b) else sum(p.page_bytes for p in b) for b in buckets)
        parts = [-(-len(b) // max(1, int(anchor // b[0].page_bytes))) if small(b) else 1 for b in buckets]
    else:
        buckets = [[_widened(p, largest) for p in bucket] for bucket in buckets]
        counts = list(map(len, buckets))
        size = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
        parts = [-(-count // size) for count in counts]
    return [tuple(bucket[i::n]) for bucket, n in zip(buckets, parts) for i in range(n)]


def _widened(page, largest):
    """A smaller page gets a block that fills the largest page, or is padded to it."""
    if page.page_bytes == largest:
        return page
    ratio, rest = divmod(largest, page.page_bytes)
    if rest and page.layer.kind == "latent":
        raise Refused(f"an MLA page of {page.page_bytes:.0f} bytes does not divide the largest page of {largest:.0f} bytes: vLLM refuses")
    grow = 1 if rest or page.layer.state else ratio
    return replace(page, page_bytes=largest, block_tokens=page.block_tokens * grow)


def group_blocks(layer, block, context_tokens, setting):
    """Blocks of one sequence in one group of such layers."""
    if layer.kind == "state" and setting.mode != "all":
        return rules.state_blocks(setting.drafts, int(setting.mode == "align"), setting.checkpoints)
    if layer.kind in ("window", "chunk"):
        rule = rules.window_blocks if layer.kind == "window" else rules.chunk_blocks
        return rule(layer.window_tokens, setting.in_flight, setting.batch_tokens, context_tokens, block)
    return rules.full_blocks(context_tokens, block)


def plan(order, setting, kv_pool_bytes):
    """vLLM's plan for layers in `order` (a tuple of Layers) and `kv_pool_bytes` on every GPU."""
    stages = setting.stages or (len(order),)
    if sum(stages) != len(order):
        raise ValueError(f"stages = {stages} is not accepted: they must add up to {len(order)} layers")
    setting = resolved(order, setting)
    full = next((layer for layer in order if layer.kind in ("full", "latent")), order[-1])
    drafting = setting.draft_layers if setting.drafts else 0
    order, stages = order + (full,) * drafting, stages[:-1] + (stages[-1] + drafting,)
    pages, padding = paged(order, setting)
    if not pages:
        return Pool(kv_pool_bytes, 0, 0, 0, 0, 0, 1, 0, 0, 0, setting.context_tokens, True, 0.0)
    groups = grouped(pages, setting)
    ends = [sum(stages[: i + 1]) for i in range(len(stages))]
    spans = [(0, len(order))] if setting.rules.whole_model else list(zip([0, *ends], ends))
    sizes = [max(sum(p.page_bytes for p in g if lo <= p.members[0] < hi) for g in groups) for lo, hi in spans]
    if min(sizes) == 0:
        raise Refused(f"stages = {stages} is not accepted: a stage without any cached layer stops vLLM")
    alike = Counter((g[0].layer, g[0].block_tokens) for g in groups)
    blocks = lambda tokens: sum(n * group_blocks(layer, block, tokens, setting) for (layer, block), n in alike.items())
    needs = lambda tokens: rules.needed_bytes(blocks(tokens), max(sizes))
    if not setting.rules.grouped:
        needs = lambda tokens: max(sum(group_blocks(p.layer, p.block_tokens, tokens, setting) * p.page_bytes for g in groups for p in g
                                       if lo <= p.members[0] < hi) for lo, hi in spans)
    room = kv_pool_bytes - setting.rules.null_blocks * max(sizes)
    longest = setting.context_tokens
    need = needs(longest)
    fits = need <= room
    request, pool = blocks(longest), min(rules.pool_blocks(kv_pool_bytes, size) for size in sizes)
    return Pool(kv_pool_bytes, len(groups), pages[0].block_tokens, max(sizes), request, need, pool,
                rules.concurrency(pool, request), rules.printed_tokens(pool, request, longest),
                pool // len(groups) * min(g[0].block_tokens for g in groups), longest if fits else _longest(needs, longest, room),
                fits, padding)


def plan_model(config, setting, kv_pool_bytes):
    """`plan` for a model read by catalog.configs; ranks that do not divide its heads are refused, as vLLM does."""
    if setting.ranks < 1 or config.heads % setting.ranks:
        raise Refused(f"ranks = {setting.ranks} is not accepted: it must divide the {config.heads} attention heads of {config.name or config.family}")
    return plan(config.order, replace(setting, draft_layers=config.draft_layers), kv_pool_bytes)


def _longest(needs, upper, room):
    """The largest length whose need fits, by bisection; 0 if not even one token does."""
    low, high = 0, upper
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if needs(middle) <= room else (low, middle - 1)
    return low
