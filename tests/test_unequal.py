"""Two unequal cards: hand-worked numbers, limits, searches as oracles, and article 2's measurements as the gate."""

import itertools
import json
import random
import subprocess
import sys

import pytest

from tpmodel.book import figures
from tpmodel.planner.evidence.unequal import CARDS, MODEL, batch
from tpmodel.planner.evidence import article2 as a2
from tpmodel.planner.evidence.claims import findings, summary
from tpmodel.formula import solve, symbol
from tpmodel.formulas import collectives, passes, pipeline, weights
from tpmodel.planner.plan.partition import fastest
from tpmodel.planner.plan.split import split

ROWS = {finding.id: finding for finding in findings()}
SPEEDS = [f for f in ROWS.values() if f.status == "predicted" and f.unit == "tok/s" and f.id not in a2.OUTLIERS]
WEIGHTS = [f for f in ROWS.values() if f.status == "predicted" and f.unit == "GiB"]
PAIR = ["rtx-5080", "rtx-5060-ti-16gb"]


# --- the gate ------------------------------------------------------------------------------------

def test_every_measured_speed_is_predicted():
    assert len(SPEEDS) == 25 and len(WEIGHTS) == 7


@pytest.mark.parametrize("row", SPEEDS, ids=lambda f: f.id)
def test_speeds_within_8_percent_and_inside_the_range(row):
    assert abs(row.error_frac) <= 0.08
    assert row.low <= row.article <= row.high and row.low < row.computed < row.high


@pytest.mark.parametrize("row", WEIGHTS, ids=lambda f: f.id)
def test_weights_within_three_hundredths_of_a_gib(row):
    assert abs(row.computed - row.article) <= 0.03 and row.low <= row.article <= row.high


@pytest.mark.parametrize("mfu", [0.93, 0.98])
def test_the_gate_does_not_hang_on_the_chosen_fraction(mfu):
    for row in SPEEDS:
        name, length = row.id.removeprefix("a2.").rsplit("_", 1)
        assert abs(a2.speed(a2.view(int(length), mfu_frac=mfu), a2.PASSES[name][0]) / row.article - 1) <= 0.08, row.id


def test_the_fall_with_length_is_that_of_attention_in_both_directions():
    """Free of the achieved fraction; a causal model, half the attention, would miss by more than the gate."""
    def fall(long):
        return a2.speed(long, lambda w: a2.pipeline_s(w, 20)) / ROWS["a2.pp2014_512"].computed

    v, measured = a2.view(8192), ROWS["a2.pp2014_8192"].article / ROWS["a2.pp2014_512"].article
    causal = v.given(layer_flop=pipeline.layer_flop(v.layer_parameters, 8190 / 2, 32, 128))
    assert abs(fall(v) / measured - 1) < 0.02 and abs(fall(causal) / measured - 1) > 0.08


def test_the_gate_can_fail():
    v = a2.view(last_copy_bytes_per_s=41.2e9)
    assert a2.speed(v, lambda w: a2.offload_s(w, "5060")) / ROWS["a2.off5060_512"].article - 1 > 0.08
    assert a2.speed(a2.view(link_bytes_per_s=8e9), a2.tensor_parallel_s) / ROWS["a2.tp_512"].article - 1 > 0.08


def test_the_summary_names_what_is_apart():
    text = summary(ROWS.values())
    assert text.startswith("32 predictions (a2.off5080_512 apart)") and "33 predicted" in text.splitlines()[-1]
    assert not any(f.status in ("open", "miss") for f in ROWS.values() if f.id.startswith("a2."))


# --- by hand -------------------------------------------------------------------------------------

def test_weights_by_hand():
    layer = 2 * (4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336 + 2 * 4096)
    table = 131072 * 4096 * 2
    v = a2.view()
    assert v.layer_bytes == layer and v.embedding_bytes == table == 2**30
    assert v(weights.stage_bytes, stage_layers=20, loaded_extra_bytes=0) == 20 * layer + table
    assert v(weights.tp_rank_bytes, loaded_extra_bytes=0) == (34 * layer + table) / 2
    assert MODEL.loaded_extra_bytes == 262144 * 128 * 4


@pytest.mark.parametrize("asked, leave", [(0, 0), (1, 1), (4 * 2**30, 10), (34 * 436224000, 34), (1e12, 34)])
def test_whole_layers_leave(asked, leave):
    assert weights.offloaded_layers(asked, 436224000, 34) == leave


def test_speeds_by_hand():
    tokens, flop = 16 * 510, 2 * 218112000 + 4 * 510 * 4096
    slow, fast, message = 0.95 * 47.4e12, 0.95 * 112.6e12, 16 * 510 * 8192
    tp = 17 * flop * tokens / slow + 68 * (93e-6 + message / 4e9)
    pp = 14 * flop * tokens / slow + 93e-6 + 2 * message / 4e9 + 20 * flop * tokens / fast / 16
    off = 34 * flop * tokens / slow + 10 * 436224000 / 7e9
    for row, seconds in (("tp", tp), ("pp2014", pp), ("off5060", off)):
        assert ROWS[f"a2.{row}_512"].computed == pytest.approx(tokens / seconds, rel=1e-12)


def test_batches_hold_whole_documents():
    assert batch(64) == {"sequence_tokens": 62, "tokens": 136 * 62, "batches": 16}
    assert batch(8192) == {"sequence_tokens": 8190, "tokens": 8190, "batches": 16}


# --- limits --------------------------------------------------------------------------------------

def test_pipeline_limits():
    assert pipeline.pipeline_s(3, 4, 0, 1) == 7  # one batch visits both cards
    assert pipeline.pipeline_s(3, 4, 0, 10**9) == pytest.approx(4)
    assert pipeline.pipeline_s(4, 3, 0.5, 8) == pipeline.pipeline_s(3, 4, 0.5, 8)  # which card is first does not matter
    assert pipeline.pipeline_overlapped_s(3, 4, 9, 8) == 9 + 3 / 8


def simulated(stages, transfer, batches):
    """When the last batch leaves: a batch enters a stage once it has arrived and the stage is free; it is handed on."""
    free = [0.0] * len(stages)
    for _ in range(batches):
        arrived = 0.0
        for i, seconds in enumerate(stages):
            begin = max(arrived, free[i])
            free[i] = arrived = begin + seconds + (transfer if i < len(stages) - 1 else 0)
    return arrived


@pytest.mark.parametrize("seed", range(20))
def test_fill_and_drain_against_a_simulation(seed):
    rng = random.Random(seed)
    stages = [rng.uniform(0.1, 2) for _ in range(rng.randint(2, 5))]
    batches, handed = rng.randint(1, 30), rng.uniform(0, 0.5)
    run_s = lambda handover: pipeline.run_s(batches, max(stages), sum(stages), handover, len(stages))
    assert run_s(0) == pytest.approx(simulated(stages, 0, batches))
    assert run_s(0) - 1e-9 <= simulated(stages, handed, batches) <= run_s(handed) + 1e-9
    if len(stages) == 2:
        first, last = stages
        assert batches * pipeline.pipeline_s(first, last, 0, batches) == pytest.approx(run_s(0))


def test_tensor_parallel_runs_at_the_pace_of_the_slower_card():
    v = a2.view()
    assert a2.tensor_parallel_s(a2.view(first_flop_per_s=1e18)) == a2.tensor_parallel_s(v)
    assert a2.tensor_parallel_s(a2.turned(v)) == a2.tensor_parallel_s(v)
    assert a2.tensor_parallel_s(a2.view(last_flop_per_s=2 * v.last_flop_per_s)) < a2.tensor_parallel_s(v)


# --- the best split ------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(200))
def test_closed_form_equals_the_search(seed):
    rng = random.Random(seed)
    layers = rng.randint(2, 100)
    a, b = (rng.choice([rng.uniform(1, 9), rng.randint(1, 5)]) for _ in range(2))
    low, high = sorted((rng.randint(1, layers - 1), rng.randint(1, layers - 1)))
    found = pipeline.best_first_layers(layers, a, b, low, high)
    cost = lambda i: pipeline.slowest_s(i, layers, a, b)
    assert cost(found) == min(cost(float(i)) for i in range(low, high + 1)) and low <= found <= high
    rooms = (high, layers - low)
    assert max(n / r for n, r in zip(fastest(layers, (a, b), rooms), (a, b))) == cost(found)


@pytest.mark.parametrize("seed", range(100))
def test_three_cards_with_caps_against_every_partition(seed):
    rng = random.Random(seed)
    layers, rates = rng.randint(3, 16), [rng.uniform(1, 5) for _ in range(3)]
    rooms = [rng.randint(1, layers) for _ in range(3)]
    every = [p for p in itertools.product(*(range(1, room + 1) for room in rooms)) if sum(p) == layers]
    if not every:
        with pytest.raises(ValueError, match="no split fits"):
            fastest(layers, rates, rooms)
        return
    slowest = lambda p: max(n / r for n, r in zip(p, rates))
    found = fastest(layers, rates, rooms)
    assert sum(found) == layers and all(1 <= n <= room for n, room in zip(found, rooms))
    assert slowest(found) == min(map(slowest, every))


def test_equal_cards_halve_and_twice_as_fast_takes_two_thirds():
    assert fastest(34, (1, 1), (34, 34)) == [17, 17] and fastest(30, (2, 1), (30, 30)) == [20, 10]
    assert fastest(34, (2.38, 1), (20, 34)) == [20, 14]


def test_split_of_the_article():
    found = split("nemotron-3-embed-8b", PAIR, reserve_gib="1.3,0")
    assert found["layers"] == [24, 10] and found["env"]["VLLM_PP_LAYER_PARTITION"] == "24,10"
    assert found["tokens_per_s"]["low"] < found["tokens_per_s"]["mid"] < found["tokens_per_s"]["high"]
    worse = [split("nemotron-3-embed-8b", PAIR, layers=f"{i},{34 - i}") for i in range(1, 34)]
    assert max(w["tokens_per_s"]["mid"] for w in worse) == found["tokens_per_s"]["mid"]
    assert worse[32]["fits"] is False and worse[32]["tokens_per_s"]["high"] == 0
    assert "memory of rtx-5080" in worse[32]["limited_by"]
    tight = split("nemotron-3-embed-8b", PAIR, util=0.7)
    assert tight["limited_by"] == "memory of rtx-5080" and tight["layers"][0] == tight["gpus"][0]["room_layers"]
    head = split("nemotron-3-embed-8b", PAIR, head=True)
    assert head["gpus"][1]["weights_bytes"] - found["gpus"][1]["weights_bytes"] == 2**30


def test_split_gives_what_the_figure_and_the_claims_give():
    shown = figures.unequal_speeds().shown_texts({"first_layers": "24"})["readout-pp"]
    best = split("nemotron-3-embed-8b", PAIR, reserve_gib="1.3,0")
    assert f"Pipeline 24/10: {best['tokens_per_s']['mid']:,.0f} tokens/s" in shown
    batch_tokens = batch(512)["tokens"]
    for layers, row in (("17,17", "pp1717"), ("20,14", "pp2014")):
        found = split("nemotron-3-embed-8b", PAIR, layers=layers, batch_tokens=batch_tokens)
        assert found["tokens_per_s"]["mid"] == pytest.approx(ROWS[f"a2.{row}_512"].computed, rel=1e-6)


def test_three_gpus_and_a_display():
    three = split("nemotron-3-embed-8b", ["rtx-5080", *PAIR[1:] * 2])
    assert len(three["layers"]) == 3 and sum(three["layers"]) == 34
    assert three["env"]["CUDA_VISIBLE_DEVICES"] == "0,1,2"
    assert split("nemotron-3-embed-8b", PAIR, reserve_gib="5,0")["gpus"][0]["room_layers"] < 20


# --- where TP meets PP ---------------------------------------------------------------------------

def test_meeting_point_by_sympy_and_by_trial():
    once_s = collectives.allreduce_s.expr(ranks=2, allreduce_latency_s=0)
    carry_s = collectives.communication_s.expr(protocol_allreduce_s=once_s)
    together_s = passes.pass_s.expr(busy_s=symbol("even_s"), communication_s=carry_s, gap_s=0)
    in_turn_s = pipeline.pipeline_s.expr(handover_s=pipeline.transfer_s.expr())
    solved = solve(together_s - in_turn_s, "link_bytes_per_s")
    v = a2.view(allreduce_latency_s=0)
    names = {**a2.stages(v, 17), "even_s": a2.even_s(v), "batches": 16, "allreduces": 68,
             "message_bytes": v.message_bytes}
    meeting = v(pipeline.meeting_bytes_per_s, even_s=a2.even_s(v), **a2.stages(v, 17))
    assert float(solved.subs({symbol(n): x for n, x in names.items()})) == pytest.approx(meeting, rel=1e-12)
    at = a2.view(allreduce_latency_s=0, link_bytes_per_s=meeting)
    assert a2.tensor_parallel_s(at) == pytest.approx(a2.pipeline_s(at, 17), rel=1e-12)
    assert v(pipeline.meeting_bytes_per_s, even_s=a2.even_s(v), **a2.stages(v, 20)) == 0
    endless = a2.view(allreduce_latency_s=0, link_bytes_per_s=1e18)
    assert a2.tensor_parallel_s(endless) > a2.pipeline_s(endless, 20)


# --- the command line ----------------------------------------------------------------------------

def run(*more):
    gpus = [word for name in PAIR for word in ("--gpu", name)]
    return subprocess.run([sys.executable, "-m", "tpmodel", "split", "--model", "nemotron-3-embed-8b", *gpus, *more],
                          capture_output=True, text=True)


def test_split_json():
    done = run("--json", "--reserve-gib", "1.4,0")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["layers"] == [24, 10]
    assert {"layers", "tokens_per_s", "limited_by", "env"} <= set(found)
    assert set(found["env"]) == {"VLLM_PP_LAYER_PARTITION", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"}
    assert "limited by: arithmetic of rtx-5080" in run().stdout


@pytest.mark.thorough
@pytest.mark.parametrize("more", [
    ("--layers", "20"), ("--layers", "20,13"), ("--layers", "34,0"), ("--layers=-1,35",), ("--layers", "17.5,16.5"),
    ("--layers", "a,b"), ("--layers", "20,14,0"), ("--layers", ""), ("--gpu", "gtx-1"), ("--util", "0"),
    ("--util", "nan"), ("--util", "0.5"), ("--reserve-gib", "1,2,3"), ("--reserve-gib", "x"), ("--tokens", "0"),
    *(("--tokens", n) for n in ("1e300", "1e-300", "nan", "1_0")),
    *(("--batch-tokens", n) for n in ("1e308", "1e-308")), ("--link", "tin-can"),
    ("--link", "host-pcie4-x4-pinned"), ("--model", "qwen9")])
def test_bad_input_is_one_line_and_exit_2(more):
    done = run(*more)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("tpmodel split: ")


def test_one_gpu_is_refused_and_any_model_is_split():
    with pytest.raises(ValueError, match="at least 2 GPUs"):
        split("nemotron-3-embed-8b", PAIR[:1])
    assert sum(split("qwen3.8-27b-nvfp4", PAIR)["layers"]) == 64


def test_the_1b_model_bounds_the_ratio_of_the_cards():
    """Its shape is not known: only the ratio of two runs of the same work is used."""
    peak = CARDS["5080"].bf16_flop_per_s / CARDS["5060"].bf16_flop_per_s
    assert 2.0 < a2.relative_speed(8192) < a2.relative_speed(512) < peak < 2.4
    implied = [a2.implied_flop_per_s(card, 2048) for card in CARDS]
    assert a2.relative_speed(512) < implied[0] / implied[1] < peak
