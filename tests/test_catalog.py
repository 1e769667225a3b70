"""The catalog: every number says what it is and where it comes from; a bad file is refused in one line."""

import ast
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tpmodel
from tpmodel.catalog.assumptions import assumptions
from tpmodel.catalog.gpus import by_name, gpu, gpus, namesakes
from tpmodel.catalog.gpus import memory as memory_of
from tpmodel.catalog.links import LANES, TRANSFERS, link, links
from tpmodel.planner.shapes.models import model, models, repository, shapes
from tpmodel.catalog.sourced import KINDS, TO_BASE, Sourced, read
from tpmodel.formulas import collectives, memory
from tpmodel.tools.measure import fit
from tpmodel.planner.plan import wire
from tpmodel.planner.plan.plan import plan
from tpmodel.tools.embed.embed import known
from tpmodel.formula.vocabulary import NAMES

ENTRIES = [entry for catalog in (gpus, links, models, assumptions) for entry in catalog().values()]
NUMBERS = [pytest.param(number, id=f"{entry.key}-{name}") for entry in ENTRIES
           for name, number in entry.numbers.items()]
GOOD = '{ value = 16, unit = "GiB", kind = "official", source = "a page", date = "2026-11-30" }'


@pytest.mark.parametrize("number", NUMBERS)
def test_every_number_is_sourced(number):
    assert number.kind in KINDS and number.unit in TO_BASE
    assert number.source.strip() and len(number.date) == 10
    low, value, high = number.base_range
    assert low <= value <= high and math.isfinite(value)
    assert number.kind != "estimate" or None not in (number.low, number.high)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.key)
def test_every_entry_is_named_with_terms_in_their_units(entry):
    assert entry.name and entry.numbers
    for name, number in entry.numbers.items():
        base = {"KiB": "byte", "MiB": "byte", "GiB": "byte", "MB": "byte", "GB": "byte", "TB": "byte",
                "us": "s", "ms": "s", "MB/s": "byte/s", "GB/s": "byte/s", "TB/s": "byte/s",
                "TFLOP/s": "FLOP/s", "GHz": "Hz"}.get(number.unit, number.unit)
        assert NAMES[name].unit == base, f"{name} in {number.unit}"


def test_the_cards_that_people_own():
    assert {"rtx-3060-12gb", "rtx-3090", "rtx-4060-ti-16gb", "rtx-4090", "rtx-5060-ti-16gb", "rtx-5070-ti", "rtx-5080",
            "rtx-5090", "rtx-pro-6000", "a100-80gb", "h100-sxm", "h200"} <= set(gpus())
    for card in gpus().values():
        assert {"vram_bytes", "memory_bytes_per_s", "bf16_flop_per_s"} <= set(card.numbers)


@pytest.mark.parametrize("key, gbps, bits, gb_per_s", [  # pin rate x bus width / 8, from the memory the card carries
    ("rtx-3060-12gb", 15, 192, 360), ("rtx-3090", 19.5, 384, 936.2), ("rtx-4060-ti-16gb", 18, 128, 288),
    ("rtx-4090", 21, 384, 1008),
    ("rtx-5060-ti-16gb", 28, 128, 448), ("rtx-5070-ti", 28, 256, 896), ("rtx-5080", 30, 256, 960),
    ("rtx-5090", 28, 512, 1792)])
def test_bandwidth_is_pin_rate_times_bus(key, gbps, bits, gb_per_s):
    assert gpu(key).memory_bytes_per_s == gb_per_s * 1e9 == pytest.approx(gbps * bits / 8 * 1e9, rel=1e-3)


def test_arithmetic_rates_by_hand():
    card = gpu("rtx-5060-ti-16gb")
    assert card.bf16_flop_per_s == pytest.approx(512 * 36 * 2.572e9, rel=2e-3)  # FLOP a clock and SM, SMs, boost clock
    assert 2 * card.fp4_flop_per_s == pytest.approx(759e12, rel=2e-3)  # the product page's sparse TOPS
    assert gpu("rtx-3090").bf16_flop_per_s == 71e12 and not hasattr(gpu("rtx-3090"), "fp8_flop_per_s")
    for other in gpus().values():
        if "fp8_flop_per_s" in other.numbers:
            rounded = 0.02 if other.key == "l40s" else 3e-3  # as its data sheet rounds
            assert other.fp8_flop_per_s == pytest.approx(2 * other.bf16_flop_per_s, rel=rounded)


@pytest.mark.parametrize("text, key", [
    ("RTX 3090", "rtx-3090"), ("RTX 3090 Ti", "rtx-3090-ti"), ("NVIDIA GeForce RTX 5060 Ti", "rtx-5060-ti-16gb"),
    ("NVIDIA H100 80GB HBM3", "h100-sxm"), ("H100 PCIe", "h100-pcie"), ("RTX PRO 6000 Blackwell", "rtx-pro-6000"),
    ("A100 80GB SXM", "a100-80gb"), ("NVIDIA H200", "h200"), ("RTX 4090", "rtx-4090"),
    ("RTX 4090 48GB", "rtx-4090-48gb"), ("NVIDIA H100 NVL", "h100-nvl"), ("RTX 3080 12GB", "rtx-3080-12gb"),
    ("RTX 3080", "rtx-3080"), ("RTX 5060 Ti 8GB", "rtx-5060-ti-8gb"), ("Tesla V100-PCIE-32GB", "v100-pcie-32gb")])
def test_a_printed_name_finds_its_card(text, key):
    assert by_name(text) == key


@pytest.mark.parametrize("text", ["RTX 4050", "RTX 3080 20GB", "RTX 5090 Laptop GPU", "3090+3090Ti", "", "ti"])
def test_a_name_that_may_be_another_card_is_refused(text):
    with pytest.raises(ValueError, match=r"it must be one of the \d+ that `tpmodel plan --list` prints"):
        by_name(text)


def test_a_card_never_reports_more_than_its_nominal_memory():
    """Every card says what the driver gives an engine; ECC on GDDR memory takes a sixteenth and more."""
    assert all(0.9 < card.reported_bytes / card.vram_bytes < 1 for card in gpus().values())
    assert all(0.9 < gpu(key).reported_bytes / gpu(key).vram_bytes < 0.9375 for key in ("l4", "l40s", "t4", "a40"))
    unknown = replace(gpu("rtx-3090"), numbers={"vram_bytes": gpu("rtx-3090").numbers["vram_bytes"]})
    assert memory_of(unknown).kind == "estimate" and memory_of(unknown).base_range[0] == 0.91 * 24 * 2**30


@pytest.mark.parametrize("name, key, others", [
    ("RTX 5060 Ti", "rtx-5060-ti-16gb", ["rtx-5060-ti-8gb"]), ("RTX 3080", "rtx-3080", ["rtx-3080-12gb"]),
    ("RTX 4060 Ti", "rtx-4060-ti-16gb", ["rtx-4060-ti-8gb"]), ("rtx-4090", "rtx-4090", ["rtx-4090-48gb"]),
    ("GeForce RTX 3060 12 GB", "rtx-3060-12gb", []), ("RTX 3060", "rtx-3060-12gb", ["rtx-3060-8gb"]),
    ("3060 8GiB", "rtx-3060-8gb", []), ("RTX 4090 24GB", "rtx-4090", []), ("RTX 3090", "rtx-3090", []),
    ("rtx4090", "rtx-4090", ["rtx-4090-48gb"]), ("RTX5060Ti 16GB", "rtx-5060-ti-16gb", []),
    ("GeForce RTX4070TiSuper", "rtx-4070-ti-super", []), ("3090", "rtx-3090", []),
    ("RTX PRO 5000", "rtx-pro-5000", ["rtx-pro-5000-72gb"]), ("NVIDIA A100-SXM4-80GB", "a100-80gb", []),
    ("A100", "a100-80gb", ["a100-40gb", "a100-80gb-pcie"]), ("H100 PCIe", "h100-pcie", []), ("H200", "h200", [])])
def test_a_name_that_several_cards_have_names_the_others(name, key, others):
    assert gpu(name).key == key and namesakes(name, gpu(name)) == others


def test_links_meet_what_was_measured():
    """Whole calls of 10 KiB and of 256 MiB, by the straight line, against the tables they come from."""
    call = lambda key, size, end=1: collectives.allreduce_s(
        size, 2, link(key).numbers["link_bytes_per_s"].base_range[2 - end],
        link(key).numbers["allreduce_latency_s"].base_range[end])
    assert call("mailbox", 10240) == pytest.approx(3.7e-6, rel=0.05)
    # 8 KiB on RTX 4090; SGLang
    pair = "shm-rtx-4090"
    assert call(pair, 10240, 0) < 16.8e-6 < call(pair, 10240, 2) == pytest.approx(39e-6, rel=0.02)
    assert call(pair, 2**28) == pytest.approx(0.1206, rel=0.02)  # two RTX 4090
    assert call("nvlink-h200", 2**28) == pytest.approx(893.9e-6, rel=0.03)
    assert call("shm-h200", 2**28) == pytest.approx(9.402e-3, rel=0.01)


def test_peer_access_never_beats_its_line_rate():
    lines = {"p2p-pcie4-x8": 15.75e9, "p2p-pcie4-x16": 31.5e9, "p2p-pcie5-x8": 31.5e9, "p2p-pcie5-x16": 63e9}
    for key, line_rate in lines.items():
        assert link(key).numbers["link_bytes_per_s"].base_range[2] < line_rate
    assert link("pcie5-x8-line-rate").link_bytes_per_s == 31.5e9


def test_a_draft_step_reads_the_mtp_layer_and_the_head():
    m = model("qwen3.8-27b-nvfp4")
    h, inner, heads = 5120, 17408, 24  # hidden, FFN, query heads; the query is twice as wide: it carries the gate
    layer = h * heads * 256 * 2 + 2 * h * 4 * 256 + heads * 256 * h + 3 * h * inner
    head = memory.embedding_bytes(m.vocabulary, h, 2)
    assert m.draft_bytes == pytest.approx(2 * (layer + 2 * h * h) + head, rel=1e-3)


@pytest.mark.parametrize("text, says", [
    ('[x]\nname = "X"\nvram_bytes = { value = 16, unit = "GiB", kind = "official", source = "a page" }', "date"),
    ('[x]\nname = "X"\nvram_bytes = { value = 16, kind = "official", source = "a page", date = "2026-11-30" }', "unit"),
    ('[x]\nname = "X"\nvram_bytes = { value = 16, unit = "GiB", source = "a page", date = "2026-11-30" }', "kind"),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("a page", ""), "source"),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("official", "estimate"), "an estimate needs low and high"),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("official", "rumour"), "must be one of official"),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("GiB", "stone"), "unit 'stone' is not accepted"),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("16", "-16"), "vram_bytes"),
    ('[x]\nvram_bytes = ' + GOOD, "has no name"), ("x = 1", "has no name"),
    ("[[x]]\nname = 'X'", "has no name"), ("[x]\nname = 5", "has no name"),
    ('[x]\nname = "X"\n[x.sub]\na = 1', "'sub' is not in"),
    ('[x]\nname = "X"\nvram_bytes = 16', "must be a table with value, unit"),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("date", "colour = 1, date"), "must be a table with value, unit"),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("GiB", "GB/s"),
     "unit 'GB/s' is not accepted: it must be one of 'byte', 'KiB'"),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("GiB", ""), "unit '' is not accepted"),
    *(('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("16", value), "value = ")
      for value in ('"16"', "true", "nan", "1e400", "[16]", "10" * 200)),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("16,", "16, low = -1, high = 20,"), "vram_bytes [byte] = -1"),
    ('[x]\nname = "X"\nvram_bytes = ' + GOOD.replace("16,", "16, low = 1, high = inf,"), "high = inf"),
])
def test_a_bad_file_is_refused_in_one_line(text, says):
    with pytest.raises(ValueError) as error:
        read(text, "cards.toml")
    assert "cards.toml: x" in str(error.value) and says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["\0", "x = " + "[" * 5000, "[x", "\ufeff"])
def test_what_is_no_toml_is_refused_with_the_name_of_the_file(text):
    with pytest.raises(ValueError, match="cards.toml is not TOML"):
        read(text, "cards.toml")


def test_a_range_that_does_not_hold_its_value_is_refused():
    with pytest.raises(ValueError, match="low <= value <= high"):
        Sourced(3, "GB", "estimate", "a page", "2026-11-30", low=4, high=5)


def test_an_unknown_term_and_an_unknown_key_are_named():
    with pytest.raises(ValueError, match="x.colour: 'colour' is not in"):
        read('[x]\nname = "X"\ncolour = ' + GOOD, "cards.toml")
    with pytest.raises(ValueError, match="'rtx-9999' is not in gpus.toml: the nearest are rtx-.*; it must be one of"):
        gpu("rtx-9999")


DECIMALS = {  # what may stand as a decimal number in code, and what it is; numbers with a source stand in the catalog
    ("tools/cli.py", 0.9): "vLLM's old default of a flag", ("planner/plan/split.py", 0.9): "the same",
    ("planner/plan/command.py", 0.92): "the default of a flag",
    ("planner/plan/values.py", 0.92): "the same", ("planner/plan/verdict.py", 0.05): "how near is as fast",
    ("planner/plan/verdict.py", 1.1): "how much more is named",
    ("planner/plan/crossover.py", 2e12): "where a search ends",
    ("planner/evidence/article2.py", 0.97): "the article's own setting",
    ("planner/evidence/checks_kv.py", 0.005): "half of a printed digit",
    ("planner/evidence/checks_kv.py", 5e-7): "half of a printed digit",
    ("planner/evidence/prompts.py", 16.5): "a public profile",
    ("planner/evidence/prompts.py", 14.2): "a public profile",
    ("tools/measure/link.py", 0.02): "how long a round of a measurement lasts",
    ("tools/measure/one_gpu.py", 2.5): "how much memory a measurement takes",
    ("planner/engine/memory.py", 1.5): "a rule of vLLM's code",
    ("planner/engine/starts.py", 8.9): "a compute capability",
    ("planner/engine/starts.py", 12.1): "a compute capability"}
DRAWING = ("book/figures", "book/live", "ranks", "formula/units.py",
           "planner/shapes/quant.py")  # places in a picture, functions, units, bits of a format


def decimals(text):
    """The float literals of a module that are neither whole nor a half nor a power of ten."""
    found = {n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and type(n.value) is float}
    plain = lambda v: v == int(v) and v < 100 or v == 0.5 or math.log10(v) % 1 in (0, 1)
    return {value for value in found if value and not plain(value)}


def test_no_number_with_a_source_stands_in_code():
    package = Path(tpmodel.__file__).parent
    files = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    found = {(name, value) for name, path in files.items() if not name.startswith(DRAWING)
             for value in decimals(path.read_text())}
    assert found == set(DECIMALS)
    assert decimals("ACHIEVED = (0.70, 0.5, 1.0, 1e9, 2.24e9, 0.6e-6)") == {0.7, 2.24e9, 0.6e-6}


def measured_link(key, **more):
    """A link of the catalog as a user's file would hold it, under another key."""
    one = link(key)
    fields = {"name": one.name, **{name: fit.kept(number) for name, number in one.numbers.items()}, **one.said, **more}
    return fit.toml({"x": {name: value for name, value in fields.items() if value is not None}}, [])


@given(st.sampled_from([key for key, one in links().items() if "protocol" in one.said]),
       st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True),
       st.integers(1, 64), st.floats(0, 1e10), st.integers(0, 2))
@settings(max_examples=100, deadline=None)
def test_a_link_is_as_fast_under_any_key(key, other, ranks, message, end):
    text = measured_link(key).replace("[x]", f"[{other}]")
    mine = read(text, "mine.toml")[other]
    assert wire.allreduce_s(mine, message, ranks, end) == wire.allreduce_s(link(key), message, ranks, end)


@pytest.mark.parametrize("key", ["nvlink-h200", "oneshot-pcie5-x16"])
def test_a_plan_over_a_link_of_ones_own_is_that_over_ours(tmp_path, key):
    (tmp_path / "mine.toml").write_text(measured_link(key))
    ask = lambda **more: plan("qwen3-8b", ["h200"] * 4, "tp", **more)
    ours, mine = ask(link=key), ask(link="x", catalog=tmp_path / "mine.toml")
    assert mine.pop("link") == "x" and ours.pop("link") == key and mine == ours


def test_what_a_link_does_not_say_is_said_in_the_plan(tmp_path):
    (tmp_path / "mine.toml").write_text(measured_link("oneshot-pcie5-x16", protocol=None))
    found = plan("qwen3-8b", ["h200"] * 4, "tp", link="x", catalog=tmp_path / "mine.toml")
    taken = 'x says no protocol and no link_latency_s: taken as protocol = "ring", link_latency_s = 1 us'
    assert taken in found["assumptions"]
    assert not any("says no" in said for said in plan("qwen3-8b", ["h200"] * 4, "tp", link="shm")["assumptions"])
    oneshot = plan("qwen3-8b", ["h200"] * 4, "tp", link="oneshot-pcie5-x16")
    assert found["decode"]["mid"] < oneshot["decode"]["mid"], "a ring passes every card"


@pytest.mark.parametrize("field, says", [
    ('protocol = "nccl"', "x.protocol: 'nccl' is not accepted: it must be \"ring\""), ("protocol = 3", 'or "oneshot"'),
    ("aliases = 'a'", "a list of names"), ("aliases = []", "a list of names"),
    ("transport = 1", "a text in quotes"), ('host_link = ""', "a text in quotes")])
def test_a_bad_word_is_refused_in_one_line(field, says):
    with pytest.raises(ValueError) as error:
        read(f'[x]\nname = "X"\n{field}', "mine.toml")
    assert str(error.value).startswith("mine.toml: x.") and says in str(error.value) and "\n" not in str(error.value)


def test_every_card_says_its_slot_and_every_link_its_protocol():
    assert all(card.pcie_generation in TRANSFERS and card.pcie_lanes in LANES and card.said["aliases"]
               for card in gpus().values())
    assert all(by_name(alias) == card.key for card in gpus().values() for alias in card.said["aliases"])
    assert all(("protocol" in one.said) == ("allreduce_latency_s" in one.numbers) for one in links().values())
    assert all("link_latency_s" in one.numbers for one in links().values() if one.said.get("protocol") == "ring")
    for entry in (*gpus().values(), *assumptions().values()):
        assert {entry.said[field] for field in ("host_link", "nvlink") if field in entry.said} <= set(links())
    assert (gpu("rtx-5060-ti-16gb").pcie_generation, gpu("rtx-5060-ti-16gb").pcie_lanes) == (5, 8)
    assert link("p2p-pcie4-x8").pcie_lanes == 8 and link("p2p-pcie5-x16").pcie_lanes == 16


def test_a_shape_says_its_repository():
    assert repository("qwen3-32b") == "Qwen/Qwen3-32B" and repository("qwen3.8-27b-nvfp4") is None
    assert known("qwen3-32b") == known("Qwen/Qwen3-32B") == ("Qwen/Qwen3-32B", 64)
    assert known("qwen3.8-27b-nvfp4") == ("qwen3.8-27b-nvfp4", None)
    assert all("repository" not in shape and "source" not in shape for shape in shapes().values())
