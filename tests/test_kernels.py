"""Which kernel multiplies: engine, build and card decide; what is asked for instead; what a card lacks; the plan."""

import csv
from importlib import resources

import pytest

from tpmodel.catalog.gpus import gpu, gpus
from tpmodel.planner.engine import kernels
from tpmodel.planner.evidence import checks_prefill
from tpmodel.planner.evidence.checks import Cells
from tpmodel.planner.plan.plan import plan
from tpmodel.planner.shapes.models import find_config, quants, shapes

AMPERE, ADA, HOPPER, BLACKWELL, VOLTA = "rtx-3090", "rtx-4090", "h200", "rtx-5060-ti-16gb", "v100-sxm2-16gb"
PAIR = ["rtx-5060-ti-16gb"] * 2


@pytest.mark.parametrize("engine, format, met", [  # on Volta, Ampere, Ada, Hopper, Blackwell
    ("vllm", "nvfp4", "marlin marlin marlin marlin fp4"), ("vllm", "nvfp4 (w4a16)", "marlin " * 5),
    ("vllm", "fp8", "marlin marlin fp8 fp8 fp8"), ("vllm", "int4", "marlin " * 5), ("vllm", "mxfp4", "marlin " * 5),
    ("vllm", "bf16", "bf16 " * 5), ("sglang", "nvfp4", "marlin marlin marlin marlin fp4"),
    ("llama.cpp", "gguf", "bf16 int8 int8 int8 int8"), ("ik_llama.cpp", "gguf", "bf16 int8 int8 int8 int8"),
    ("llama.cpp", "bf16", "bf16 " * 5), ("exllamav2", "exl", "bf16 hgemm hgemm bf16 hgemm"),
    ("vllm", "w8a8", "bf16 w8a8 w8a8 w8a8 w8a8")])
def test_engine_build_and_card_decide(engine, format, met):
    cards = (VOLTA, AMPERE, ADA, HOPPER, BLACKWELL)
    assert [kernels.decide(engine, format, gpu(card)).kernel for card in cards] == met.split()


def test_on_b200_mxfp4_stays_at_16_bits_and_on_mi300x_fp8_is_native():
    assert kernels.decide("vllm", "mxfp4", gpu("b200")).kernel == "marlin"
    assert kernels.decide("vllm", "fp8", gpu("mi300x")).kernel == "fp8", "a card without a compute capability"


def test_every_format_of_the_catalog_meets_a_kernel_whose_rate_each_card_has():
    formats = {m.format for name in shapes() for m in find_config(name).modules}
    formats |= {row["format"] for row in csv.DictReader(
        (resources.files("tpmodel.planner.engine") / "data" / "builds.csv").read_text().splitlines())}
    assert quants() and {"nvfp4", "fp8", "int4", "mxfp4", "bf16"} <= formats
    for card in gpus().values():
        for one in {part for format in formats for part in format.split(" or ")}:
            rule = kernels.decide("vllm", one, card)
            assert kernels.has(card, rule.kernel) and rule.source


@pytest.mark.parametrize("name, format, bits", [
    ("NVFP4 W4A4", "nvfp4", 4.5), ("NVFP4 W4A16", "nvfp4 (w4a16)", 4.5), ("AWQ", "int4", 4.25), ("Q8_0", "gguf", 8.5),
    ("NVFP4", "nvfp4 or nvfp4 (w4a16)", 4.5), ("autoround-int4", "int4", 4.25), ("exl2 4.5bpw", "exl", 4.5),
    ("UD-Q4_K_XL", "gguf", 4.8), ("int8 W8A8", "w8a8", 8), ("F16", "bf16", 16), ("bf16", "bf16", 16)])
def test_a_build_is_known_by_its_printed_name(name, format, bits):
    assert kernels.build(name) == (format, bits)


def test_a_name_that_leaves_it_open_has_a_range_where_the_card_has_both():
    assert kernels.spread("vllm", kernels.build("NVFP4")[0], gpu(BLACKWELL)) == (
        ("marlin",), ("marlin", "fp4"), ("fp4",))
    for name, card, met in (("NVFP4", AMPERE, {"marlin"}), ("FP8", ADA, {"fp8"}), ("Q4_0", AMPERE, {"int8"})):
        assert {kernel for end in kernels.spread("llama.cpp" if met == {"int8"} else "vllm", kernels.build(name)[0],
                                                 gpu(card)) for kernel in end} == met
    with pytest.raises(ValueError, match="quant = 'TQ9' is not accepted: it must name one of"):
        kernels.build("TQ9")


def seconds(found, term="linear layers"):
    return found["prefill"]["terms"][term]["mid_ms"] / 1e3


def test_the_plan_multiplies_as_decided_and_says_so():
    """8,192 tokens; 24.35 billion parameters, nearly all in NVFP4; the rest, gates of the states, in 16 bits."""
    config = find_config("qwen3.8-27b-nvfp4")
    rates = {"nvfp4": 0.48 * 379.3e12, "bf16": 0.90 * 47.4e12}
    parts = [m for m in config.modules if m.read and m.name not in ("embedding", "head", "mtp", "vision")]
    by_hand = sum(2 * m.parameters * 8192 / 2 / rates[m.format] for m in parts)
    found = plan("qwen3.8-27b-nvfp4", PAIR, "tp")
    assert seconds(found) == pytest.approx(by_hand, rel=1e-9)
    said = [line for line in found["assumptions"] if "nvfp4 weights" in line]
    assert len(said) == 1 and "meet the kernel fp4" in said[0] and "modelopt.md" in said[0]


def test_another_kernel_counts_for_quantised_weights_only():
    found = plan("qwen3.8-27b-nvfp4", PAIR, "tp", kernel="marlin")
    native = plan("qwen3.8-27b-nvfp4", PAIR, "tp")
    config = find_config("qwen3.8-27b-nvfp4")
    moved = sum(m.parameters for m in config.modules if m.format == "nvfp4" and m.read)
    gain = 2 * moved * 8192 / 2 * (1 / (0.88 * 47.4e12) - 1 / (0.48 * 379.3e12))
    assert seconds(found) - seconds(native) == pytest.approx(gain, rel=1e-6)
    assert any("marlin (as asked)" in line for line in found["assumptions"])


@pytest.mark.parametrize("cards, kernel, says", [
    (["rtx-3090"] * 2, "fp4", "rtx-3090 does not multiply in fp4; it has bf16, marlin, int8, hgemm, w8a8"),
    (["h200"], "fp3", "kernel = 'fp3' is not accepted: it must be one of bf16, fp8, fp4, marlin")])
def test_a_kernel_that_is_none_or_that_a_card_lacks_is_refused_in_one_line(cards, kernel, says):
    with pytest.raises(ValueError) as error:
        plan("qwen3.8-27b-nvfp4", cards, kernel=kernel)
    assert says in str(error.value) and "\n" not in str(error.value)


ROW = Cells({"id": "x", "model": "qwen3-8b", "quant": "BF16", "gpu": "RTX 5080 + RTX 5060 Ti", "gpus": "2", "tp": "1",
             "pp": "2", "link": "shm", "engine": "vllm", "prompt_tokens": "4096"})


def test_unequal_cards_and_pipelines_are_predicted():
    rate = lambda **more: checks_prefill.predict(Cells(ROW | more))[0][1]
    assert rate(partition="26,10") > rate(partition="10,26"), "the first card is more than twice as fast"
    four = rate(gpu="RTX 5060 Ti", gpus="4", tp="2", pp="2")
    assert four > rate(gpu="RTX 5060 Ti", gpus="2", tp="2", pp="1")


def test_a_power_limit_only_reports():
    rows = checks_prefill.rows(list(ROW) + ["tokens_per_s"], [Cells(ROW | {"use": "gate", "power_limit_w": "245"})])
    assert rows[0].use == "report" and "a power limit is not counted" in rows[0].note


@pytest.mark.parametrize("change, reason", [
    ({"quant": ""}, "quant is empty"), ({"engine": ""}, "engine is empty"), ({"gpu": "L4 + L4 + L4"}, "gpu"),
    ({"offload_gib": "4"}, "offload_gib"), ({"model": "Mystery"}, "model = 'Mystery'"), ({"tp": "4"}, "tp x pp = 8")])
def test_a_row_is_skipped_with_the_name_of_the_column(change, reason):
    with pytest.raises(ValueError, match=reason):
        checks_prefill.predict(Cells(ROW | change))
