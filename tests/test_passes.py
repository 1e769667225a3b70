"""One pass on two H200: rows by hand, four constants found from four rows, links left out; what an expert gets."""

import csv
import statistics
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpmodel.catalog.gpus import gpu
from tpmodel.catalog.links import link
from tpmodel.formulas import passes
from tpmodel.planner.engine.versions import Setting
from tpmodel.planner.evidence import checks, checks_pass
from tpmodel.planner.evidence.checks import Cells
from tpmodel.planner.plan import one_pass, placement, products
from tpmodel.planner.shapes.models import find_config

FILE = resources.files("tpmodel.planner.evidence") / "data" / "pass_cases.csv"
LINES = {line["id"]: Cells(line) for line in csv.DictReader(FILE.read_text().splitlines())}
DENSE = [line for line in LINES.values() if not line["experts"]]
PARAMETERS = 64 * 5120 * (14336 + 6144 + 3 * 17408)  # of the 27 B shape: QKV, output, gate, up and down
PEAK = 989.4e12
SECONDS = st.floats(0, 1e3)


def allreduces_s(line):
    """128 of a row: early start and twice the bytes, or late; in a graph the part of its start that is left."""
    if line["ranks"] == "1":
        return 0
    of, message = link(line["link"]), int(line["tokens"]) * 10240
    early = of.allreduce_latency_s * (of.in_step_frac if line["graph"] == "yes" else 1)
    carry_s = message / of.link_bytes_per_s
    return 128 * min(early + 2 * carry_s, max(early, of.bulk_latency_s) + carry_s)


def by_hand(line, rate, kernel_s, flop_per_s, unhidden):
    share, tokens = PARAMETERS / int(line["ranks"]), int(line["tokens"])
    read, compute = 2 * share / rate, 2 * share * tokens / flop_per_s
    return max(read, compute) + unhidden * min(read, compute) + 256 * kernel_s + allreduces_s(line)


def from_four_rows(one, two, most, turn):
    """Rate of reading, start of a kernel, rate of computing, unhidden part: in turn, until they stay."""
    left = {line["id"]: float(line["pass_s"]) - allreduces_s(line) for line in (one, two, most, turn)}
    kernel_s = unhidden = 0
    for _ in range(50):
        read = left[one["id"]] - left[two["id"]]  # half of the weights
        flop_per_s = 2 * PARAMETERS * int(most["tokens"]) / (left[most["id"]] - 256 * kernel_s - unhidden * 2 * read)
        compute = [2 * PARAMETERS * int(line["tokens"]) / flop_per_s for line in (one, turn)]
        read -= unhidden * compute[0] / 2
        kernel_s = (left[one["id"]] - 2 * read - unhidden * compute[0]) / 256
        unhidden = (left[turn["id"]] - 256 * kernel_s - max(2 * read, compute[1])) / min(2 * read, compute[1])
    return PARAMETERS / read, kernel_s, flop_per_s, unhidden


def errors(lines, constants):
    return [by_hand(line, *constants) / float(line["pass_s"]) - 1 for line in lines]


def test_the_four_constants_of_the_card_come_from_four_rows_and_predict_the_other_38():
    used = [LINES[name] for name in ("V001", "V057", "V014", "V009")]
    rate, kernel_s, flop_per_s, unhidden = found = from_four_rows(*used)
    card = gpu("h200")
    assert (rate / 4.8e12, kernel_s, flop_per_s / PEAK, unhidden) == pytest.approx(
        (card.achieved_frac, card.kernel_s, card.mfu_frac, card.unhidden_frac), rel=5e-3)
    away = [abs(error) for error in errors([line for line in DENSE if line not in used], found)]
    assert len(away) == 38 and statistics.median(away) < 0.025 and max(away) < 0.08


@pytest.mark.parametrize("left_out, rows", [
    ("shm-h200", ("V001", "V057", "V014", "V009")), ("nvlink-h200", ("V001", "V099", "V014", "V009"))])
def test_a_link_left_out_is_predicted_from_the_rows_of_the_others(left_out, rows):
    away = [abs(e) for e in errors([line for line in DENSE if line["link"] == left_out],
                                   from_four_rows(*(LINES[name] for name in rows)))]
    assert len(away) == 14 and statistics.median(away) < 0.05 and max(away) < 0.12


def test_check_pass_predicts_as_by_hand_and_keeps_its_targets():
    rows, summary = checks.check("pass", FILE)
    card = gpu("h200")
    constants = card.achieved_frac * 4.8e12, card.kernel_s, card.mfu_frac * PEAK, card.unhidden_frac
    found = {row.id: row for row in rows}
    for line in DENSE:
        row = found[line["id"]]
        assert row.predicted == pytest.approx(by_hand(line, *constants), rel=1e-9)
        assert row.low <= row.predicted <= row.high
        assert abs(row.error_frac) < 0.15, "dense rows, at the turn too"
    assert (summary["gate"], summary["skipped"]) == (42, 0) and summary["ok"] >= 39
    assert summary["median_abs_error_frac"] < 0.03
    assert all(row.note == "turns to computing at 166 tokens" for row in rows)


def test_a_row_of_experts_by_hand():
    """V044: two tokens draw 15.5 of 128 experts, eight each; so few take twice their time."""
    line, touched = LINES["V044"], 1 - (15 / 16) ** 2
    whole = 48 * 3 * 128 * 2048 * 768
    read, compute = 2 * whole * touched / (0.898 * 4.8e12), 2 * whole * (2 / 16 + 2 / 16) / (0.722 * PEAK)
    experts = max(read, compute) + 0.287 * min(read, compute) + 48 * 78e-6
    dense = 48 * 2048 * (5120 + 4096)
    linear = 2 * dense / (0.898 * 4.8e12) + 0.287 * 2 * dense * 2 / (0.722 * PEAK)
    v = checks_pass.view(line, 1)
    assert v.experts_s == pytest.approx(experts, rel=1e-12)
    assert v.pass_s == pytest.approx(experts + linear + 192 * 7.27e-6, rel=1e-12)


@pytest.mark.parametrize("change, reason", [
    ({"tokens": "0"}, "tokens = '0' is not accepted"), ({"dtype": "fp3"}, "dtype = 'fp3' is not accepted"),
    ({"dtype": "fp4"}, "h200 has rates for bf16, fp8"), ({"gpu": "H300"}, "'H300' is not in gpus.toml"),
    ({"link": "string"}, "link = 'string' is not accepted"), ({"qkv_rows": ""}, "qkv_rows is empty"),
    ({"experts": "8", "expert_intermediate": "7"}, "experts_per_token is empty")])
def test_a_bad_cell_is_named(change, reason):
    with pytest.raises(ValueError, match=reason):
        checks_pass.predict(Cells(LINES["V057"] | change))


@given(SECONDS, SECONDS, st.floats(0, 1))
def test_limits_of_a_kind_of_layer(read, compute, unhidden):
    found = passes.roofline_s(read, compute, unhidden)
    assert max(read, compute) <= found <= read + compute + 1e-9
    assert found == passes.roofline_s(compute, read, unhidden)
    assert passes.roofline_s(read, compute, 0) == max(read, compute)


BYTES, RATES, PARTS = st.floats(1e6, 1e12), st.floats(1e9, 1e15), st.floats(0.01, 1)


@given(BYTES, BYTES, RATES, PARTS, RATES, PARTS)
def test_at_the_turn_reading_takes_as_long_as_computing(read, parameters, flop, mfu, memory, achieved):
    tokens = passes.turning_tokens(read, parameters, flop, mfu, memory, achieved)
    read_s = passes.weight_read_s(read, 2, memory, achieved)
    assert passes.linear_s(parameters, tokens, 2, flop, mfu) == pytest.approx(read_s)


def test_kinds_of_layers_take_turns():
    """Attention that computes does not hide behind weights that are read."""
    v = passes.busy_s(0.020, 0.004, 0.001, 0.003, 0.005, 0.002, 0)
    assert v == pytest.approx(0.020 + 0.003 + 0.005 + 0.002)


def test_the_planner_takes_the_experts_apart():
    """Qwen3-30B-A3B on one H200: of 2,048 tokens an expert gets 128 and takes the time of 256; of 8,192 that of 712."""
    config, card = find_config("qwen3-30b-a3b"), gpu("h200")
    placed = placement.place(config, (card,), "one")
    v = one_pass.view(config, placed, link("shm"), one_pass.decode(Setting(), 0), 1)
    whole = 48 * 3 * 128 * 2048 * 768
    read = 2 * whole / 16 / (0.898 * 4.8e12)
    compute = 2 * whole * 2 / 16 / (0.722 * PEAK)
    assert v.experts_s == pytest.approx(read + 0.287 * compute + 48 * 16e-6, rel=1e-6)
    assert v.floor_s == pytest.approx(4 * 48 * 7.27e-6)
    assert products.expert_tokens(2048, 1 / 16, 1) == 256 and products.expert_tokens(8192, 1 / 16, 1) == 712
    all_of_it = placement.bytes_of(config, tokens=1) + placement.head_bytes(config)
    assert v.read_bytes + 2 * whole / 16 == pytest.approx(all_of_it)

