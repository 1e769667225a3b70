"""vLLM's cache planning: layers -> groups -> blocks -> what is needed, what fits, what is printed."""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, groupby

from ...formula.units import DTYPE_BYTES
from ...formulas import blocks as rules
from .versions import Refused, Setting

RECORD_BYTES = {"fp8_ds_mla": 656}
KV_SCALE_BYTES = {"int8_per_token_head": 8, "fp8_per_token_head": 8}
KV_BYTES = {**DTYPE_BYTES, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "nvfp4": 9 / 16, **dict.fromkeys(KV_SCALE_BYTES, 1.0),
            "fp8_ds_mla": 1.0}
INDEX_SCALE_BYTES = 4
FULL, RECENT = ("full", "latent"), ("window", "chunk")  # kinds of layers that keep all tokens, or the last ones


@dataclass(frozen=True)
class Page:
    """A cached layer: its index in the model, the bytes of its page, the tokens of its block."""

    layer: object
    index: int
    page_bytes: float
    block_tokens: float


@dataclass(frozen=True)
class Pool:
    """What vLLM finds for one size of the pool."""

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
    dtype = setting.kv_dtype
    if dtype not in KV_BYTES:
        raise ValueError(f"kv_dtype = {dtype!r} is not accepted: it must be one of {', '.join(KV_BYTES)}")
    if layer.kind == "latent":
        latent = rules.latent_bytes_per_token(layer.latent_elements, layer.rope_elements, KV_BYTES[dtype])
        index = layer.index_elements + INDEX_SCALE_BYTES if layer.index_elements else 0
        return index + RECORD_BYTES.get(dtype, latent)
    return rules.layer_bytes_per_token(layer.kv_heads, setting.ranks, layer.head_elements, layer.value_head_elements,
                                       KV_BYTES[dtype], KV_SCALE_BYTES.get(dtype, 0))


def state_bytes(state, setting):
    """One state of one layer on one GPU, unpadded."""
    n, key_heads = setting.ranks, state.key_heads
    if state.value_heads % n:
        raise Refused(f"ranks = {n} is not accepted: it must divide the {state.value_heads} heads of the state layers")
    if key_heads % n and state.family != "mamba2":
        raise Refused(f"ranks = {n} is not accepted: it must divide the {key_heads} key heads of the state layers")
    key_heads = max(n, key_heads) if key_heads % n else key_heads
    drafts = 0 if state.family == "mamba1" else setting.drafts
    return rules.state_page_bytes(state.value_heads, state.value_elements, key_heads, state.key_elements,
                                  state.element_bytes, state.convolution, drafts, 2, n)


def resolved(order, setting):
    """The setting with the version's defaults put in."""
    r, stages = setting.rules, len(setting.stages)
    families = {layer.state.family for layer in order if layer.state}
    kept = max("mamba2" in families and r.mamba2_checkpoints, "gdn" in families and r.gdn_step > 16)
    caching = setting.caching if setting.caching is not None else r.caching or not families
    defaults = {"caching": caching, "checkpoints": caching * kept, "mode": "align" if caching else "none",
                "in_flight": r.in_flight if stages < 2 else stages + (r.in_flight > 1)}
    return replace(setting, **{name: it for name, it in defaults.items() if getattr(setting, name) is None})


def paged(order, setting):
    """The Page of every cached layer; and the padding of the states."""
    attention = [layer for layer in order if layer.kind not in ("state", "none")]
    states = {layer.state for layer in order if layer.state}
    block = setting.block_tokens
    page = state = max((state_bytes(s, setting) for s in states), default=1)
    if states and attention:
        step = max(16, block, 128 if attention[0].kind == "latent" else 0)
        if setting.checkpoints and any(s.family == "gdn" for s in states):
            step = max(step, setting.rules.gdn_step)
        per_token = token_bytes(attention[0], setting)
        block = rules.aligned_block_tokens(block, step, state, per_token)
        page = block * per_token
    kinds = {layer for layer in order if layer.kind != "none"}
    sizes = {layer: page if layer.state else block * token_bytes(layer, setting) for layer in kinds}
    return [Page(layer, i, sizes[layer], block) for i, layer in enumerate(order) if layer in sizes], page / state - 1


def grouped(pages, setting):
    """Layers of one kind share a group; kinds are cut into groups of equally many layers, or packed by bytes."""
    if not setting.hybrid and any(p.layer.kind in FULL for p in pages):
        pages = [replace(p, layer=replace(p.layer, kind="full")) if p.layer.kind in RECENT else p for p in pages]
    kind = lambda layer: ("full" if layer.kind in FULL else layer.kind, layer.window_tokens * (layer.kind in RECENT))
    key = lambda page: kind(page.layer)
    buckets = [list(same) for _, same in groupby(sorted(pages, key=key), key)]
    largest = max(p.page_bytes for p in pages)
    if len(buckets) == 1:
        parts = [1]
    elif setting.packed and any(p.page_bytes != largest for p in pages):
        small = [bucket[0].layer.kind in ("window", "state") for bucket in buckets]
        anchor = max((max if one else sum)(p.page_bytes for p in bucket) for one, bucket in zip(small, buckets))
        parts = [-(-len(bucket) // max(1, int(anchor // bucket[0].page_bytes))) if one else 1
                 for one, bucket in zip(small, buckets)]
    else:
        buckets = [[_widened(p, largest) for p in bucket] for bucket in buckets]
        counts = list(map(len, buckets))
        size = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
        parts = [-(-count // size) for count in counts]
    return [tuple(bucket[i::n]) for bucket, n in zip(buckets, parts) for i in range(n)]


def _widened(page, largest):
    """A smaller page gets a block that fills the largest page, or is padded to it."""
    ratio, rest = divmod(largest, page.page_bytes)
    if rest and page.layer.kind == "latent":
        raise Refused(f"an MLA page of {page.page_bytes:.0f} bytes does not divide the largest page "
                      f"of {largest:.0f} bytes: vLLM refuses")
    grow = 1 if rest or page.layer.state else ratio
    return replace(page, page_bytes=largest, block_tokens=page.block_tokens * grow)


def group_blocks(layer, block, context_tokens, setting):
    """Blocks of one sequence in one group of such layers."""
    if layer.kind == "state" and setting.mode != "all":
        return rules.state_blocks(setting.drafts, int(setting.mode == "align"), setting.checkpoints)
    if layer.kind in RECENT:
        rule = rules.window_blocks if layer.kind == "window" else rules.chunk_blocks
        return rule(layer.window_tokens, setting.in_flight, setting.batch_tokens, context_tokens, block)
    return rules.full_blocks(context_tokens, block)


@dataclass(frozen=True)
class Layout:
    """What a pool is cut into, whatever its size: the groups, of each stage the bytes that a block takes of it."""

    setting: Setting
    groups: tuple
    held: tuple  # of each stage the pages of each group
    sizes: tuple
    block_tokens: float
    padding: float

    @cached_property
    def alike(self):
        """How many groups are alike: ((layer, tokens of a block), number) of each kind."""
        return tuple(Counter((group[0].layer, group[0].block_tokens) for group in self.groups).items())

    def blocks(self, tokens):
        """Blocks of one sequence."""
        return sum(n * group_blocks(*kind, tokens, self.setting) for kind, n in self.alike)

    def needs(self, tokens):
        """Bytes of one sequence."""
        if self.setting.rules.grouped:
            return rules.needed_bytes(self.blocks(tokens), max(self.sizes))
        of_page = lambda p: group_blocks(p.layer, p.block_tokens, tokens, self.setting) * p.page_bytes
        return max(sum(of_page(p) for group in stage for p in group) for stage in self.held)


@lru_cache(maxsize=512)
def layout(order, setting):
    """The Layout of layers in `order` (a tuple of Layers)."""
    stages = setting.stages or (len(order),)
    named = ",".join(map(str, stages))
    if sum(stages) != len(order):
        raise ValueError(f"stages = {named} is not accepted: they must add up to {len(order)} layers")
    setting = resolved(order, setting)
    full = next((layer for layer in order if layer.kind in FULL), order[-1])
    drafting = setting.draft_layers if setting.drafts else 0
    order, stages = order + (full,) * drafting, stages[:-1] + (stages[-1] + drafting,)
    pages, padding = paged(order, setting)
    groups = grouped(pages, setting) if pages else []
    ends = list(accumulate(stages))
    spans = [(0, len(order))] if setting.rules.whole_model else list(zip([0, *ends], ends))
    held = [[[p for p in group if lo <= p.index < hi] for group in groups] for lo, hi in spans]
    sizes = [max((sum(p.page_bytes for p in group) for group in stage), default=0) for stage in held]
    if pages and min(sizes) == 0:
        raise Refused(f"stages = {named} is not accepted: a stage without any cached layer stops vLLM")
    return Layout(setting, tuple(groups), tuple(held), tuple(sizes), pages[0].block_tokens if pages else 0, padding)


def plan(order, setting, kv_pool_bytes):
    """vLLM's plan for layers in `order` (a tuple of Layers) and `kv_pool_bytes` on every GPU."""
    longest = setting.context_tokens
    cut = layout(order, replace(setting, context_tokens=1, sequences=1))  # on which it does not depend
    groups, sizes = cut.groups, cut.sizes
    if not groups:
        return Pool(0, 0, 0, 0, 0, 1, 0, 0, 0, longest, True, 0.0)
    request, need = cut.blocks(longest), cut.needs(longest)
    room = kv_pool_bytes - setting.rules.null_blocks * max(sizes)
    pool = min(rules.pool_blocks(kv_pool_bytes, size) for size in sizes)
    fitting = longest if need <= room else bisect_right(range(1, longest + 1), room, key=cut.needs)
    whole_blocks = pool // len(groups) * min(g[0].block_tokens for g in groups)
    return Pool(len(groups), cut.block_tokens, max(sizes), request, need, pool, rules.concurrency(pool, request),
                rules.printed_tokens(pool, request, longest), whole_blocks, fitting, need <= room, cut.padding)


def plan_model(config, setting, kv_pool_bytes):
    """`plan` for a model read by catalog.configs; ranks that do not divide its heads are refused, as vLLM does."""
    if setting.ranks < 1 or config.heads % setting.ranks:
        raise Refused(f"ranks = {setting.ranks} is not accepted: it must divide the {config.heads} attention heads "
                      f"of {config.name or config.family}")
    return plan(config.order, replace(setting, draft_layers=config.draft_layers), kv_pool_bytes)
