"""What engines print of drafts, engines by name and version, cards and formats as people write them."""

import re

import pytest
import sympy

from tpmodel.catalog.gpus import gpu
from tpmodel.formulas import speculation
from tpmodel.planner.evidence import checks, checks_decode, formats, spread
from tpmodel.planner.plan import assume
from tpmodel.planner.plan.plan import plan

PAIR = ["rtx-5060-ti-16gb", "rtx-5060-ti-16gb"]


@pytest.mark.parametrize("drafts, chance", [(1, 0.7), (2, 0.6), (3, 0.5), (7, 0.9)])
def test_the_three_ways_to_say_what_is_accepted_turn_into_each_other(drafts, chance):
    """Independent: the sum 1 + a + ... + a^K, and SymPy, which solves it for a where a root can be written."""
    length = sum(chance**i for i in range(drafts + 1))
    assert speculation.round_tokens(drafts, chance) == pytest.approx(length)
    assert speculation.accepted_frac(length, drafts) == pytest.approx((length - 1) / drafts)
    assert speculation.printed_round_tokens((length - 1) / drafts, drafts) == pytest.approx(length)
    assert speculation.chance(length, drafts) == pytest.approx(chance, abs=1e-12)
    if drafts <= 2:
        a = sympy.Symbol("a", positive=True)
        root, = sympy.solve(sum(a**i for i in range(drafts + 1)) - sympy.Rational(str(round(length, 6))), a)
        assert float(root) == pytest.approx(chance)


def test_what_an_engine_printed_gives_the_plan_of_its_chance():
    ask = dict(parallel="tp", kv_dtype="fp8", mtp=3)
    said, printed, long = (plan("qwen3.8-27b-nvfp4", PAIR, **ask, **one) for one in (
        {"acceptance": 0.7}, {"accepted_per_draft": (0.7 + 0.49 + 0.343) / 3}, {"acceptance_length": 2.533}))
    assert said["decode"]["mid"] == pytest.approx(printed["decode"]["mid"]) == pytest.approx(long["decode"]["mid"])
    assert printed["drafts"] == {"tokens": 3} | {name: pytest.approx(value) for name, value in (
        ("acceptance", 0.7), ("acceptance_length", 2.533), ("accepted_per_draft", 0.511))}
    assert plan("qwen3.8-27b-nvfp4", PAIR, "tp")["drafts"] is None


@pytest.mark.parametrize("more, words", [
    ({"accepted_per_draft": 0.5}, "given with --mtp only"), ({"mtp": 3, "acceptance_length": 4}, "up to but not 4"),
    ({"mtp": 3, "acceptance_length": 0.9}, "from 1"), ({"mtp": 3, "accepted_per_draft": 1}, "from 0 up to but not 1"),
    ({"mtp": 3, "acceptance": 0.5, "acceptance_length": 2}, "the only one of acceptance, acceptance_length")])
def test_what_is_accepted_is_said_once_and_possible(more, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        plan("qwen3.8-27b-nvfp4", PAIR, "tp", **more)


def test_another_engine_gets_speeds_and_no_line():
    ask = lambda engine: plan("qwen3-32b", ["rtx-3090"] * 2, "tp", quant="awq", engine=engine)
    ours, theirs, old = map(ask, ("0.33", "llama.cpp", "vllm-0.10"))
    assert theirs["command"] == "" and "llama.cpp counts its memory by rules of its own" in theirs["verdict"]
    assert theirs["max_context_tokens"] == ours["max_context_tokens"]
    wait = lambda found: found["decode"]["terms"]["engine's wait"]["mid_ms"]
    # 64 layers at 1.695 GHz: 130,000 cycles each and 0.5 ms, against 75,000 and 0.8
    kernels = lambda cycles: 64 * cycles / 1.695e9 * 1e3
    assert wait(theirs) == pytest.approx(0.5 + kernels(130_000)) and wait(ours) == pytest.approx(0.8 + kernels(75_000))
    assert wait(old) - wait(ours) == pytest.approx(4 - 0.8), "before 0.14 it scheduled after each step"


def test_a_card_whose_starts_are_counted_apart_does_not_count_them_twice():
    card, layers = gpu("h200"), 64
    alone, with_starts = (assume.wait("vllm-0.33", layers, 0, card, counted_s).base for counted_s in (0, 256 * 7.27e-6))
    assert alone - with_starts == pytest.approx(256 * 7.27e-6) and alone == pytest.approx(0.8e-3 + 64 * 75e3 / 1.98e9)
    assert assume.wait("vllm-0.33", layers, 0, card, 1).base == pytest.approx(0.8e-3), "never below the wait itself"


def test_a_step_of_unequal_cards_by_hand():
    """vLLM gives two stages half the layers each; llama.cpp as much as they have memory: 2 GB of weights, no cache."""
    line = {"model": "qwen3-8b", "gpu": "rtx-5080 + rtx-3060-12gb", "tp": "1", "pp": "2", "link": "shm",
            "engine": "vllm", "spec_tokens": "0", "kv_dtype": "", "weight_read_gb": "2"}
    even = checks_decode.step_of(checks.Cells(line)).full_read_s
    mine = checks_decode.step_of(checks.Cells(line | {"engine": "llama.cpp"})).full_read_s
    assert even == pytest.approx(1 / 960 + 1 / 360) and mine == pytest.approx(2 * (16 / 28 / 960 + 12 / 28 / 360))


def test_a_row_under_a_power_limit_is_shown_and_not_counted(tmp_path):
    head = "id,model,weight_read_gb,gpu,tp,pp,link,engine,spec_tokens,kv_dtype,power_limit_w,tokens_per_s,use\n"
    line = "a,qwen3-8b,15.1,RTX 3090,1,1,none,vllm,0,bf16,{},20,gate\n"
    (tmp_path / "t.csv").write_text(head + line.format("") + line.format("220"))
    (free, held), summary = checks.check("decode", tmp_path / "t.csv")
    assert free.status == held.status == "miss" and (free.use, held.use) == ("gate", "report")
    assert "held to 220 W" in held.note and summary["gate"] == 1


def test_width_coverage_and_bias_by_hand(tmp_path):
    """Two sources, one of two rows: middle 10 and 20 % too fast, and 30 % too slow; ends half and twice the middle."""
    row = lambda name, error: checks.Row(
        name, "x", 1 + error, (1 + error) / 2, (1 + error) * 2, 1.0, error, True, "gate", "ok", "")
    lines = [checks.Cells({"id": name, "source": f"https://github.com/me/{where}/issues/1", "engine": "vllm"})
             for name, where in (("a", "one"), ("b", "one"), ("c", "two"))]
    found = spread.spread([row("a", 0.1), row("b", 0.2), row("c", -0.3)], lines)
    assert found["median_error_frac"] == 0.1 and found["median_width"] == 4 and found["inside_frac"] == 1
    one, two = found["by"]["source"]["github.com/me/one"], found["by"]["source"]["github.com/me/two"]
    assert one["median_error_frac"] == pytest.approx(0.15) == two["median_error_frac_without"]
    assert one["median_error_frac_without"] == -0.3 and found["by"]["engine"]["vllm"]["rows"] == 3


def test_cards_as_people_write_them():
    keys = lambda text, count: [card.key for card in checks_decode.cards_of(checks.Cells({"gpu": text}), count)]
    assert keys("3090 + 3090Ti", 2) == ["rtx-3090", "rtx-3090-ti"]
    assert keys("4070 Ti Super", 2) == ["rtx-4070-ti-super"] * 2
    assert keys("2x RTX 5090 + rtx-3090", 3) == ["rtx-5090"] * 2 + ["rtx-3090"]


@pytest.mark.parametrize("text, size", [
    ("q8", 34 / 32), ("q4_0", 18 / 32), ("q4_1", 20 / 32), ("q5_0", 22 / 32), ("fp16", 2), ("fp8_e4m3", 1), ("n/s", 2),
    ("q8_0/q4_0", 26 / 32)])
def test_formats_of_a_cache_as_engines_print_them(text, size):
    assert formats.cache_bytes(text) == size
