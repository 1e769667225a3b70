"""vLLM's memory rules: worked by hand, the engine's own unit tests, limits, and the closed form against the search."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpmodel.planner.shapes.layers import Layers, State, spread
from tpmodel.book.figures.context import BLOCKED, context_budget
from tpmodel.formula.units import GIB, MIB
from tpmodel.formulas import blocks as rules
from tpmodel.planner.engine.versions import Refused, Setting, split_layers, version
from tpmodel.planner.engine.memory import group_blocks, grouped, paged, plan, resolved

NOW, OLD = version("0.32"), version("0.19")
FULL = Layers("full", 4, 256, 256)
GDN = Layers("state", state=State("gdn", 48, 128, 16, 128, 4, 4.0))
QWEN_27B = (GDN, GDN, GDN, FULL) * 16


def small(kind="full", d=64, **more):
    """A layer of the engine's unit tests: 2 heads, FP32 cache, block 16: a page of 16384 bytes at d = 64."""
    return Layers(kind, 2, d, d, **more)


def pool_of(order, pages, **more):
    setting = Setting(rules=OLD, kv_dtype="fp32", context_tokens=16, batch_tokens=16, **more)
    return plan(tuple(order), setting, pages * 16384)


# --- the 27B hybrid, by hand --------------------------------------------------------------------------

@pytest.mark.parametrize("dtype, drafts, ranks, block, pad", [
    ("bf16", 0, 1, 784, 0.13), ("fp8", 0, 1, 1568, 0.13), ("fp8", 0, 2, 1568, 0.13), ("fp8", 2, 1, 1600, 0.88),
    ("fp8", 3, 2, 1600, 0.25), ("nvfp4", 3, 1, 2848, None)])
def test_block_of_the_27b_hybrid(dtype, drafts, ranks, block, pad):
    setting = Setting(rules=NOW, ranks=ranks, kv_dtype=dtype, drafts=drafts, draft_layers=1, context_tokens=1)
    found = plan(QWEN_27B, setting, GIB)
    assert found.block_tokens == block
    assert pad is None or round(100 * found.state_padding_frac, 2) == pad


@pytest.mark.parametrize("vram, blocks, fits, longest", [
    (16 * GIB, 175, True, 262144), (16311 * MIB, 173, False, 260288)])
def test_article_1_reaches_262144_by_one_block_on_a_nominal_card_only(vram, blocks, fits, longest):
    """0.92 of the card less 10 GB of weights less 1.2 GiB: 168 + 6 blocks are needed, and the null block."""
    setting = Setting(rules=NOW, ranks=2, kv_dtype="fp8", context_tokens=262144)
    found = plan(QWEN_27B, setting, vram * 0.92 - 20e9 / 2 - 1.2 * GIB)
    assert (found.request_blocks, found.pool_blocks, found.fits, found.fitting_tokens) == (174, blocks, fits, longest)
    assert found.block_bytes == 16 * 1568 * 2 * 2 * 256
    without = plan(QWEN_27B, Setting(rules=NOW, ranks=2, kv_dtype="fp8", context_tokens=262144, caching=False),
                   171 * found.block_bytes)
    assert without.request_blocks == 171 and not without.fits, "the null block is missing"


def test_flashinfer_prefill_of_0_33_wants_larger_blocks_and_one_state_more():
    new = plan(QWEN_27B, Setting(rules=version("0.33"), ranks=2, kv_dtype="fp8", context_tokens=131072), 4.99 * GIB)
    assert (new.block_tokens, new.request_blocks, new.printed_tokens) == (1600, 82 + 3 * 3, 293831)
    without = Setting(rules=version("0.33"), ranks=2, kv_dtype="fp8", context_tokens=131072, caching=False)
    off = plan(QWEN_27B, without, 4.99 * GIB)
    assert off.block_tokens == 1568


def test_a_state_page_by_hand():
    by_hand = 48 * 128 * 128 * 4 + (2 * 16 * 128 + 48 * 128) * 3 * 2
    assert rules.state_page_bytes(48, 128, 16, 128, 4, 4, 0, 2, 1) == by_hand


def test_mamba2_groups_are_extended_where_the_ranks_do_not_divide_them():
    granite = Layers("state", state=State("mamba2", 128, 64, 1, 128, 4, 2.0))
    found = plan((granite, Layers("full", 8, 128, 128)), Setting(rules=NOW, ranks=4, context_tokens=1), GIB)
    page_bytes = 32 * 64 * 128 * 2 + (2 * 4 * 128 + 8192) // 4 * 3 * 2
    assert found.block_tokens == 16 * -(-page_bytes // (16 * 2 * 2 * 128 * 2))
    with pytest.raises(Refused, match="must divide the 48 heads"):
        plan(QWEN_27B, Setting(rules=NOW, ranks=5), GIB)


# --- the engine's own unit tests ----------------------------------------------------------------------

@pytest.mark.parametrize("length, longest", [(16385, 16384), (16383, 16383)])
def test_estimated_length(length, longest):
    order = (Layers("full", 32, 128, 128),) * 32
    found = plan(order, Setting(rules=OLD, kv_dtype="fp16", context_tokens=length), 8 * GIB)
    assert found.fitting_tokens == longest and found.fits == (length <= 16384)


@pytest.mark.parametrize("order, blocks, expected", [
    (("full",), 1536, 1.5), (("window",), 129 * 3, 3.0), (("full", "window"), (1024 + 129) * 3, 3.0)])
def test_concurrency(order, blocks, expected):
    layers = tuple(small(kind, window_tokens=1024 if kind == "window" else 0) for kind in order)
    found = plan(layers, Setting(rules=OLD, kv_dtype="fp32", context_tokens=16384, batch_tokens=1024), blocks * 16384)
    assert found.concurrency == expected


WINDOW = dict(kind="window", window_tokens=16)


@pytest.mark.parametrize("order, more, groups, blocks", [
    ([small()] * 2, {}, 1, 32),
    ([small(), small(**WINDOW)], {}, 2, 64),
    ([small(), small(**WINDOW)], {"hybrid": False}, 1, 32),
    ([small()] * 2 + [small(**WINDOW)] * 4, {}, 3, 32),
    ([small()] * 3 + [small(**WINDOW)] * 7, {}, 4, 21),
    ([small()] * 6 + [small(**WINDOW)] * 5, {}, 2, 10),
    ([small(d=128), small(d=64)], {}, 1, 21),
    ([small(d=64), small(d=32, **WINDOW)], {}, 2, 64),
    ([Layers("none")] * 2, {}, 0, 1),
])
def test_groups_and_blocks(order, more, groups, blocks):
    found = pool_of(order, 64, **more)
    assert (found.groups, found.pool_blocks) == (groups, blocks)


def test_a_smaller_page_gets_a_larger_block():
    setting = Setting(rules=OLD, kv_dtype="fp32")
    parts = grouped(paged((small(d=64), small(d=32, **WINDOW)), setting)[0], setting)
    assert sorted(part[0].block_tokens for part in parts) == [16, 32]


def test_pages_that_do_not_divide_are_padded_but_mla_is_refused():
    assert pool_of([small(d=64), small(d=96, **WINDOW)], 64).block_bytes == 16384 * 96 / 64
    mla = Layers("latent", latent_elements=512, rope_elements=64)
    with pytest.raises(Refused, match="MLA page"):
        plan((mla, Layers("window", 8, 100, 100, 128)), Setting(rules=NOW), GIB)


def test_packed_layout_splits_windows_to_the_block_that_full_layers_need():
    order = spread([(Layers("full", 4, 512, 512), 10), (Layers("window", 16, 256, 256, 1024), 50)], 60)
    found = plan(order, Setting(rules=NOW, context_tokens=131072, batch_tokens=2048, packed=True), 10 * GIB)
    assert (found.groups, found.block_bytes) == (11, 10 * 16 * 4 * 1024 * 2)


# --- the pipeline -------------------------------------------------------------------------------------

@pytest.mark.parametrize("layers, stages, expected", [
    (2, 2, (1, 1)), (3, 2, (2, 1)), (3, 3, (1, 1, 1)), (4, 3, (1, 2, 1)), (5, 3, (2, 2, 1)), (61, 4, (15, 15, 16, 15)),
    (92, 8, (11, 11, 11, 12, 12, 12, 12, 11)), (64, 6, (10, 11, 11, 11, 11, 10)), (36, 8, (4, 4, 4, 5, 5, 5, 5, 4)),
    (80, 3, (27, 27, 26))])
def test_default_split(layers, stages, expected):
    assert split_layers(layers, stages) == expected


@pytest.mark.parametrize("given", [(5, 5, 5), (5, 5, 5, 6), (6, 0, 7, 7), (21, -1, 0, 0)])
def test_a_given_split_must_fit(given):
    with pytest.raises(ValueError, match="must be 4 whole numbers >= 1 that add up to 20"):
        split_layers(20, 4, given)


def test_a_stage_holds_its_own_layers_and_the_largest_decides():
    order = (Layers("full", 8, 128, 128),) * 34
    even, uneven, one = (plan(order, Setting(rules=NOW, stages=s, context_tokens=8192), GIB)
                         for s in ((17, 17), (20, 14), ()))
    assert (even.needed_bytes, uneven.needed_bytes) == (one.needed_bytes / 2, one.needed_bytes * 20 / 34)
    wrong = plan(order, Setting(rules=version("0.15.2rc1"), stages=(17, 17), context_tokens=8192), GIB)
    assert wrong.needed_bytes == one.needed_bytes, "releases 0.14 and 0.15 charged every stage with all layers"


def test_drafting_adds_a_layer_to_the_last_stage():
    found = plan(QWEN_27B, Setting(rules=NOW, stages=(32, 32), drafts=1, draft_layers=1, context_tokens=1), GIB)
    page = found.block_bytes / 9
    assert found.block_tokens * 2 * 4 * 256 * 2 == page and found.groups == 4


# --- MLA, quantised caches, versions ------------------------------------------------------------------

def test_latents_are_kept_once_on_every_gpu():
    mla = Layers("latent", latent_elements=512, rope_elements=64)
    sizes = [plan((mla,) * 61, Setting(rules=NOW, ranks=n, block_tokens=64, kv_dtype=dtype), GIB).block_bytes
             for n, dtype in ((1, "bf16"), (8, "bf16"), (8, "fp8"), (8, "fp8_ds_mla"))]
    assert sizes == [61 * 64 * b for b in (1152, 1152, 576, 656)]
    indexed = Layers("latent", latent_elements=512, rope_elements=64, index_elements=128)
    assert plan((indexed,), Setting(rules=NOW, kv_dtype="fp8_ds_mla"), GIB).block_bytes == 16 * (656 + 132)


def test_more_gpus_than_heads_keep_one_head_each():
    layer = Layers("full", 8, 128, 128)
    sizes = [plan((layer,), Setting(rules=NOW, ranks=n), GIB).block_bytes for n in (1, 2, 8, 16)]
    assert sizes == [65536, 32768, 8192, 8192]
    assert plan((layer,), Setting(rules=NOW, kv_dtype="int8_per_token_head"), GIB).block_bytes == 32768 + 2 * 16 * 8 * 4
    with pytest.raises(ValueError, match="kv_dtype = 'fp3'"):
        plan((layer,), Setting(kv_dtype="fp3"), GIB)


@pytest.mark.parametrize("text, printed, in_flight, null", [
    ("0.8.3.dev172", "old", 1, 0), ("~0.11.0", "old", 1, 0), ("0.24.0", "new", 1, 0), ("vllm-0.33", "new", 2, 1)])
def test_versions(text, printed, in_flight, null):
    rule = version(text)
    assert (rule.printed, rule.in_flight, rule.null_blocks) == (printed, in_flight, null)


@pytest.mark.parametrize("text", ["", "nightly 58996f35", None, "1", "x.y"])
def test_bad_versions_are_named(text):
    with pytest.raises(ValueError, match="must look like 0.33"):
        version(text)


# --- the closed form, and what must hold for any model ------------------------------------------------

@given(st.integers(1, 40), st.integers(0, 40), st.integers(1, 9), st.integers(1, 5000), st.integers(1, 4096),
       st.integers(0, 2))
@settings(max_examples=150, deadline=None)
def test_the_closed_form_equals_the_search(full, windows, heads, blocks, window, drafts):
    kinds = [(Layers("full", heads, 64, 64), full), (Layers("window", heads, 64, 64, window), windows)]
    order = spread(kinds, full + windows)
    setting = resolved(order, Setting(rules=NOW, context_tokens=10**7, batch_tokens=256, drafts=drafts))
    groups = grouped(paged(order, setting)[0], setting)
    found = plan(order, setting, blocks * plan(order, setting, GIB).block_bytes)
    fixed = sum(group_blocks(g[0].layer, g[0].block_tokens, 10**7, setting)
                for g in groups if g[0].layer.kind != "full")
    growing = [g for g in groups if g[0].layer.kind == "full"]
    closed = rules.fitting_tokens(found.pool_blocks, 1, fixed, len(growing), 16)
    if closed > window + 2 * 256:
        assert found.fitting_tokens == closed
    else:
        assert found.fitting_tokens >= closed


@given(st.integers(1, 64), st.integers(1, 10**6), st.integers(1, 10**6), st.sampled_from(["bf16", "fp8"]))
@settings(max_examples=80, deadline=None)
def test_what_fits_is_the_largest_that_fits(pool_gib, short, longer, dtype):
    ask = lambda tokens: plan(QWEN_27B, Setting(rules=NOW, kv_dtype=dtype, context_tokens=tokens), pool_gib * GIB / 8)
    low, high = ask(min(short, longer)), ask(max(short, longer))
    assert low.needed_bytes <= high.needed_bytes and low.fitting_tokens <= high.fitting_tokens
    if not high.fits and high.fitting_tokens:
        assert ask(int(high.fitting_tokens)).fits and not ask(int(high.fitting_tokens) + 1).fits


@pytest.mark.parametrize("full_layers", [4, 16, 31, 33, 48, 64, 71, 73, 96])
@pytest.mark.parametrize("kv_dtype", ["BF16", "FP8"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_blocks_of_figure_5_are_the_planners(full_layers, kv_dtype, ranks):
    """For hybrids of other proportions too: how layers share a block decides."""
    v = context_budget().view({"counting": BLOCKED, "full_layers": str(full_layers), "kv_dtype": kv_dtype,
                               "native": "1M", "vram_bytes": "40", "tp": f"{ranks} GPU{'s' * (ranks > 1)}"})
    asked = Setting(rules=version("0.33"), ranks=ranks, kv_dtype=kv_dtype.lower(), context_tokens=1048576)
    found = plan((FULL,) * full_layers + (GDN,) * 48, asked, v.kv_pool_bytes)
    theirs = (found.fitting_tokens, found.pool_blocks, found.block_bytes)
    assert (v.longest_tokens, v.pool_blocks, v.block_bytes) == theirs
