"""Mixed ways for many cards, offload on each, uneven pipelines, many users, and what is undecided."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpmodel.catalog.gpus import gpu
from tpmodel.catalog.links import link
from tpmodel.planner.engine.versions import Setting
from tpmodel.planner.plan import one_pass, partition, placement, uneven, verdict
from tpmodel.planner.plan.machine import machine, model
from tpmodel.planner.plan.plan import make, plan
from tpmodel.planner.plan.values import Ask
from tpmodel.planner.plan.why import why
from tpmodel.inputs import counted
from tpmodel.planner.shapes.models import find_config

FOUR = ["rtx-3090"] * 4
GIB = 2**30


def placed(name, count=4, model="llama-3.1-8b", card="rtx-3090"):
    return placement.place(find_config(model), (gpu(card),) * count, name)


def step(name, sequences=1, count=4, end=1, **more):
    config = find_config("llama-3.1-8b")
    return one_pass.terms(config, placed(name, count), link("nvlink-h200"),
                          one_pass.decode(Setting(), 1024, sequences, **more))


@pytest.mark.parametrize(
    "name", ["tp2xpp2", "pp4", "tp4", "pp2[20,12]", "tp2xpp2[10,22]", "replicas2xtp2", "replicas4"])
def test_all_gpus_of_a_replica_hold_and_read_the_whole_model(name):
    config, here = find_config("llama-3.1-8b"), placed(name)
    assert sum(here.weights_bytes) == pytest.approx(here.replicas * config.weights_bytes)
    assert sum(placement.reads(config, here, 1)[0]) == pytest.approx(here.replicas * config.read_bytes)
    assert len(here.cards) == len(here.weights_bytes) == here.ranks * len(here.layers) * here.replicas


def test_a_stage_of_two_ranks_by_hand():
    """Llama 3.1 8B: 32 layers of 436,207,616 byte; table and head of 1,050,673,152 each; norms aside."""
    first, second = placed("tp2xpp2[20,12]").weights_bytes[::2]
    assert first == pytest.approx((20 * 436_207_616 + 1_050_673_152) / 2, rel=1e-3)
    assert second == pytest.approx((12 * 436_207_616 + 1_050_673_152) / 2, rel=1e-3)


def test_a_token_passes_all_stages_and_all_their_all_reduces():
    """Of tp2xpp2 a step reads what tp2 reads, sends as many all-reduces, and hands over once."""
    mixed, tensor = step("tp2xpp2"), step("tp2", count=2)
    for name in ("weight read", "all-reduces"):
        assert mixed[name] == pytest.approx(tensor[name], rel=0.01), name
    assert mixed["hand-overs"][1] > 0 and "hand-overs" not in tensor


def test_sequences_in_groups_keep_both_stages_busy():
    """64 sequences, two equal stages: a round is two groups of 32 through the slower stage, in the middle; at the
    slow end all 64 go through both in turn, where that takes longer."""
    config, both = find_config("llama-3.1-8b"), placed("pp2", 2)
    job = one_pass.decode(Setting(), 8192, 64)
    found = one_pass.terms(config, both, link("nvlink-h200"), job)
    half = one_pass.stages(config, both, link("nvlink-h200"), one_pass.decode(Setting(), 8192, 32), 1)
    whole = one_pass.stages(config, both, link("nvlink-h200"), job, 0)
    work = [sum(found[name][end] for name in one_pass.WORK if name in found) for end in (0, 1)]
    assert work[1] == pytest.approx(2 * max(v.busy_s for v in half))
    assert work[0] == pytest.approx(sum(v.busy_s for v in whole))
    assert step("pp2", 1, 2)["weight read"] == pytest.approx(step("one", 1, 1)["weight read"], rel=0.01)


def test_two_copies_share_a_batch_and_say_so_in_the_line():
    one, two = plan("qwen3-8b", ["rtx-3090"], batch=8, context=4096), plan(
        "qwen3-8b", ["rtx-3090"] * 2, "replicas", batch=16, context=4096)
    assert two["decode"]["mid"] == pytest.approx(2 * one["decode"]["mid"])
    assert two["gpus"] == one["gpus"] * 2 and two["split"]["replicas"] == 2
    assert "--data-parallel-size 2" in two["command"] and "--max-num-seqs 8" in two["command"]
    single = plan("qwen3-8b", ["rtx-3090"] * 2, "replicas")
    assert single["decode"]["mid"] == plan("qwen3-8b", ["rtx-3090"])["decode"]["mid"], "one user has one card"


def test_copies_of_experts_are_servers_of_their_own():
    found = plan("gpt-oss-20b", ["rtx-4090"] * 2, "replicas")
    assert "--data-parallel" not in found["command"]
    assert any("start the line 2 times" in said for said in found["assumptions"])


def test_of_three_cards_two_may_share_the_model_and_the_third_is_idle():
    found = plan("qwen3-8b", FOUR[:3], context=8192)
    assert found["split"] == {
        "kind": "tp", "label": "tp2", "layers": [36], "ranks": 2, "replicas": 1, "offloaded_bytes": 0}
    assert "on the first 2 GPUs, the other is idle" in found["verdict"]
    assert {"tp2", "one", "3 replicas"} <= {row["label"] for row in found["compared"]}


def test_why_gives_the_rate_of_every_way_and_batch():
    for way, batch, more in (("one", 8, {}), ("tp2xpp2", 1, {}), ("tp2xpp2", 8, {}), ("replicas2xtp2", 8, {}),
                             ("pp+offload", 2, {"cpu_offload_gib": 2})):
        made = make(Ask("llama-3.1-8b", tuple(FOUR), way, context=4096, batch=batch, **more))
        assert why(made, "decode_tokens_per_s")["value"] == pytest.approx(made.best.rate("decode")), (way, batch)


def test_the_line_of_a_mixed_way():
    found = plan("llama-3.1-8b", FOUR, "tp2xpp2[15,17]")
    assert found["command"].startswith("CUDA_DEVICE_ORDER=PCI_BUS_ID VLLM_PP_LAYER_PARTITION=15,17 vllm serve ")
    assert "--tensor-parallel-size 2 --pipeline-parallel-size 2" in found["command"]
    assert found["split"] | {"offloaded_bytes": 0} == {
        "kind": "tp-pp", "label": "tp2 x pp 15,17", "layers": [15, 17], "ranks": 2, "replicas": 1, "offloaded_bytes": 0}


def test_auto_compares_every_way_of_four_cards():
    found = plan("qwen3-32b", FOUR, context=8192)
    labels = [row["label"] for row in found["compared"]]
    assert {"one", "tp", "4 replicas", "2 replicas of tp2", "offload"} <= set(labels)
    assert len(labels) == len(set(labels)) and {label.split(" ")[0] for label in labels} >= {"tp2", "pp"}
    fits = [row for row in found["compared"] if row["fits"]]
    assert found["decode"]["mid"] >= 0.95 * max(row["decode"]["mid"] for row in fits)


def test_offload_leaves_as_much_of_every_gpu_in_main_memory():
    found = plan("llama-3.1-70b", FOUR, "tp+offload", context=4096)
    here = plan("llama-3.1-70b", FOUR, "tp+offload", context=4096, cpu_offload_gib=20)
    assert here["split"]["offloaded_bytes"] == 4 * 20 * GIB and "--cpu-offload-gb 20.0" in here["command"]
    assert found["split"]["offloaded_bytes"] < 80 * GIB and here["decode"]["mid"] < found["decode"]["mid"]
    assert len({one["weights_bytes"] for one in here["gpus"]}) == 1
    pipe = plan("llama-3.1-70b", FOUR, "pp+offload", context=4096)
    assert pipe["fits"] and "--pipeline-parallel-size 4 --cpu-offload-gb" in pipe["command"]
    assert all(row["label"].endswith("offload") for row in plan(
        "qwen3-8b", FOUR[:2], cpu_offload_gib=1)["compared"]), "asked for, every way has it"


def test_the_uneven_search_is_the_best_of_all_splits():
    """Brute force over every split of 32 layers on three unlike cards."""
    cards = ("rtx-3060-12gb", "rtx-5090", "rtx-3080")
    found = make(Ask("llama-3.1-8b", cards, context=32768))
    tried = [way for way in found.tried if len(way.placement.layers) == 3 and not way.placement.offloaded_bytes]
    best = {part: max(way.rate(part) for way in tried) for part in ("decode", "prefill")}
    for a, b in list(combinations(range(1, 32), 2))[::3]:
        made = make(Ask("llama-3.1-8b", cards, "pp", (a, b - a, 32 - b), context=32768)).best
        for part in best:
            assert made.rate(part) <= 1.01 * best[part], (a, b, part)


def test_without_room_for_a_context_only_the_longest_split_is_searched():
    ask = Ask("llama-3.1-70b", ("rtx-3090", "rtx-5090"), context=4096)
    rig, (config, setting) = machine(ask), model(ask)
    (layers,) = uneven.searched(config, rig, setting, ask, "pp")
    assert sum(layers) == 80 and layers[1] > layers[0]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_a_way_has_one_name(ranks, stages, replicas, offload):
    name = f"replicas{replicas}xtp{ranks}xpp{stages}" + "+offload" * offload
    made = partition.split(name, 64)
    assert (made.ranks, made.stages, made.replicas, made.offload) == (ranks, stages, replicas, offload)
    assert made.gpus == ranks * stages * replicas


@pytest.mark.parametrize("name", ["", "x", "tp2xtp2", "tpxpp", "tp5", "tp2[1,2]", "one2x", "tp+load", "pp2[a]"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="is not accepted"):
        partition.split(name, 4)


# --- many users ----------------------------------------------------------------------------------

@settings(max_examples=12, deadline=None)
@given(st.sampled_from(["one", "tp", "pp", "replicas"]), st.sampled_from([512, 4096]), st.sampled_from(["bf16", "fp8"]))
def test_the_largest_batch_fits_and_one_more_does_not(way, context, kv_dtype):
    ask = lambda batch: plan("llama-3.1-8b", ["rtx-4090"] * 2, way, context=context, kv_dtype=kv_dtype, batch=batch)
    most = ask(1)["users"]["largest_batch"]
    there = ask(most)
    assert there["fits"] and (most == placement.MOST_SEQUENCES or not ask(most + 1)["fits"])
    assert there["users"]["together"] == pytest.approx(there["decode"]["mid"])
    assert there["users"]["each"] == pytest.approx(there["decode"]["mid"] / most)
    assert ask(1)["users"]["largest_together"] == pytest.approx(there["decode"]["mid"])


def test_more_users_are_free_until_the_pass_computes_or_the_cache_ends():
    short, long = (plan("qwen3-8b", ["h200"], context=tokens)["users"] for tokens in (128, 32768))
    assert short["free_batch"] < short["largest_batch"] and "computing" in short["ends_by"]
    assert long["free_batch"] == long["largest_batch"] and "cache" in long["ends_by"]
    # 16 bits: two operations for two bytes, so the turn is about at FLOP/s over byte/s tokens
    turn = gpu("h200").bf16_flop_per_s * 0.75 / (gpu("h200").memory_bytes_per_s * 0.8)
    assert 0.7 * turn < short["free_batch"] < 1.5 * turn


def test_a_batch_that_does_not_fit_still_says_how_many_do():
    found = plan("qwen3-8b", ["rtx-3090"] * 2, batch=640, context=2048)
    users = found["users"]
    assert not found["fits"] and users["together"] is None and 0 < users["largest_batch"] < 640
    assert users["largest_together"] == max(row["users"]["largest_together"] or 0 for row in found["compared"])


@pytest.mark.parametrize("model, gpu_, context", [
    ("qwen3-8b", "rtx-4090", None), ("qwen3-8b", "h200", 128), ("qwen3.8-27b-nvfp4", "rtx-5090", 4096)])
def test_users_are_those_that_the_printed_line_takes(model, gpu_, context):
    """The line's own sequences take memory: fewer fit than where the engine is started for just as many."""
    made = make(Ask(model, (gpu_,), context=context))
    users, line, at = made.best.users, made.best.setting, made.best.context_tokens
    fits = lambda n: placement.longest(made.config, made.best.placement, line, made.best.memories, n) >= at
    assert users.line_batch <= min(line.sequences, users.largest_batch) and fits(users.line_batch)
    assert users.line_batch == line.sequences or not fits(users.line_batch + 1)
    assert f"the line takes {users.line_batch:,} at once" in users.words
    more = users.largest_batch > users.line_batch
    assert (f"with `--batch {users.largest_batch}`" in users.words) == more
    row = next(row for row in made.document()["compared"] if row["label"] == made.best.label)
    assert row["users"]["line_together"] == pytest.approx(users.line_together)


# --- undecided -----------------------------------------------------------------------------------

def test_what_is_not_known_may_turn_the_order_and_then_nothing_is_claimed():
    found = plan("qwen3-8b", FOUR, batch=64, context=2048, link="shm-rtx-4090")
    rival = found["next_best"]
    assert not rival["decided"] and rival["ratio"]["low"] < 1 < rival["ratio"]["high"]
    assert all(said in found["verdict"] for said in ("undecided", rival["label"], "tpmodel measure"))
    other = next(row for row in found["compared"] if row["label"] == rival["label"])
    assert rival["ratio"]["mid"] == pytest.approx(found["decode"]["mid"] / other["decode"]["mid"])


def test_where_the_terms_carry_it_a_winner_is_named():
    found = plan("qwen3.8-27b-nvfp4", ["rtx-5060-ti-16gb"] * 2, kv_dtype="fp8", context=8192)
    assert found["next_best"]["decided"] and found["next_best"]["ratio"]["low"] > 1
    assert "undecided" not in found["verdict"] and "tp is 1." in found["verdict"]


def test_a_way_as_fast_that_holds_half_as_much_again_is_chosen_or_named():
    found = plan("qwen3-8b", ["rtx-3090"] * 2, goal="decode")
    near = [row for row in found["compared"] if row["fits"] and row["decode"]["mid"] > 0.95 * found["decode"]["mid"]]
    for row in near:
        assert row["max_context_tokens"] <= 1.5 * found["max_context_tokens"] or row["label"] in found["verdict"]


@pytest.mark.parametrize("batch", [24, 64])
def test_many_users_move_no_weights_out_where_all_of_them_fit(batch):
    found = make(Ask("qwen3-8b", ("rtx-3090",) * 2, batch=batch))
    assert found.best.placement.offloaded_bytes == 0 and found.best.context_tokens >= verdict.LEAST_TOKENS
    assert any(way.placement.offloaded_bytes and way.context_tokens > found.best.context_tokens for way in found.tried)
    assert "with offload holds" in found.verdict


def test_a_copy_of_the_model_is_no_rival_for_one_stream():
    found = make(Ask("nemotron-3-nano-30b-a3b", ("rtx-6000-ada",) * 2))
    assert found.rival is None or found.rival.other.placement.ranks != found.best.placement.ranks or (
        len(found.rival.other.placement.layers) != len(found.best.placement.layers))


def test_copies_of_experts_say_under_the_line_how_they_are_started():
    found = make(Ask("qwen3-30b-a3b", ("h200",) * 4, "replicas2xtp2")).document()
    assert found["split"]["label"] == "2 replicas of tp2"
    assert ["start the line 2 times" in said for said in found["notes"]] == [True]
    assert found["notes"][0] in found["assumptions"]


def test_where_nothing_fits_nobody_is_counted_as_a_user():
    found = make(Ask("llama-3.1-70b", ("rtx-3090",), "one"))
    assert not found.best.fits and found.best.users.largest_batch == 0


def test_a_queue_of_documents_goes_to_every_copy():
    one, two = (make(Ask("nemotron-3-embed-8b", ("rtx-3090",) * 2, kind)).best for kind in ("one", "replicas2"))
    assert two.rate("prefill") == pytest.approx(2 * one.rate("prefill"))


def test_the_sequences_of_the_line_end_the_users_before_the_cache():
    users = make(Ask("qwen3-8b", ("rtx-3090",) * 2, "replicas2", max_num_seqs=2)).best.users
    assert users.largest_batch == 4 and users.words.endswith("the line takes no more at once")


def test_offload_takes_no_graphs_and_moves_what_one_sequence_needs():
    best = make(Ask("qwen3.8-27b-nvfp4", ("rtx-5060-ti-16gb",) * 2, "tp+offload", kv_dtype="fp8",
                    context=262144)).best
    graphs = [row["bytes"] for gpu in best.memories for row in gpu["parts"] if row["quantity"] == "graph_bytes"]
    assert sum(graphs) == 0 and 0 < best.placement.offloaded_bytes < 4 * GIB and best.fits


def test_only_layers_are_moved_to_main_memory():
    ask = Ask("qwen3-8b", ("rtx-3090",) * 2, "tp+offload", context=4096)
    layers = placement.bytes_of(find_config("qwen3-8b")) / 2
    assert make(replace(ask, cpu_offload_gib=layers / GIB)).best.placement.offloaded == pytest.approx((layers,) * 2)
    with pytest.raises(ValueError, match="cpu_offload_gib = 4000 is not accepted: at most .* the layers of a GPU"):
        make(replace(ask, cpu_offload_gib=4000))


@pytest.mark.parametrize("name", ["0x rtx-3090", "1000x rtx-3090"])
def test_a_count_of_cards_has_bounds(name):
    with pytest.raises(ValueError, match="it must be counted from 1x to 99x"):
        counted([name])
