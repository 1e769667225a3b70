"""One question, one answer: a quantity prints alike in plan, split, check, figures, notebooks and chapters."""

import csv
import json
import re
from functools import lru_cache
from importlib import resources
from pathlib import Path

import pytest

from tpmodel.book import figures
from tpmodel.planner.evidence import checks_decode, measured
from tpmodel.planner.evidence.checks import Cells
from tpmodel.planner.plan.plan import make, plan
from tpmodel.planner.plan.values import Ask
from tpmodel.planner.plan.why import why
from tpmodel.planner.shapes.models import find_config
from tpmodel.planner.plan.split import split
from tpmodel.formula.units import GB, GIB, fixed

ROOT = Path(__file__).resolve().parents[1]
MODEL, CARD = "qwen3.8-27b-nvfp4", "rtx-5060-ti-16gb"
PAIR = dict(model=MODEL, gpus=(CARD, CARD), parallel="tp", kv_dtype="fp8")
ARTICLE_2 = dict(model="nemotron-3-embed-8b", gpus=["rtx-5080", CARD], reserve_gib="1.3,0")
COUNTED = "as counted and measured"


@lru_cache(maxsize=None)
def planned(**more):
    return plan(**{**PAIR, **more})


@lru_cache(maxsize=None)
def asked(name, **more):
    """The value at the top of `plan --why NAME`."""
    return why(make(Ask(**{**PAIR, **more})), name)["value"]


@lru_cache(maxsize=None)
def told(stem):
    """{name: text} of what a notebook told its chapter, from its stored outputs."""
    cells = json.loads((ROOT / "notebooks" / f"{stem}.ipynb").read_text(encoding="utf-8"))["cells"]
    printed = ["".join(out["text"]) for cell in cells for out in cell.get("outputs", ()) if out.get("name") == "stdout"]
    return dict(re.findall(r"^(\w+) = (.*)$", "\n".join(printed), re.M))


def note(stem, name):
    """A notebook's text; the chapter or another must show it."""
    shown = f"{{n}}`{stem}.{name}`"
    chapters = (chapter.read_text(encoding="utf-8") for chapter in (ROOT / "book").glob("*.md"))
    assert any(shown in chapter for chapter in chapters), f"no chapter shows {shown}"
    return told(stem)[name]


@lru_cache(maxsize=None)
def figure(name):
    return next(found for found in map(lambda make: make(), figures.ALL) if found.name == name)


def cell(name, row, column="yours", preset=COUNTED, **values):
    """A cell of a figure's table for a preset, by the words of its row and the head of its column."""
    found = figure(name)
    texts = found.shown_texts({**found.preset(preset), **values} if preset else values)
    rows = [i for i in range(len(found.table.rows)) if texts[f"cell-{i}-0"].startswith(row)]
    assert len(rows) == 1, (name, row)
    return texts[f"cell-{rows[0]}-{found.table.head.index(column)}"].strip("×")


def readout(name, pattern, preset=COUNTED, **values):
    """The number that `pattern` finds in what the figure says."""
    found = figure(name)
    return re.search(pattern, found.describe({**found.preset(preset), **values} if preset else values))[1]


def checked(**columns):
    """The middle of `check decode` for a row of the pair."""
    row = {"id": "x", "model": MODEL, "weight_read_gb": fixed(planned_config().read_bytes / GB, 9),
           "gpu": "RTX 5060 Ti 16GB", "tp": "2", "pp": "1", "link": "shm", "engine": "vllm", "engine_version": "0.33",
           "spec_tokens": "0", "kv_dtype": "fp8", "kv_depth_tokens": "8192"} | columns
    return checks_decode.predict(Cells(row))[0]


def mtp_bytes():
    """Of the MTP layer, which vLLM leaves out where nothing is drafted."""
    return sum(module.bytes for module in find_config(MODEL).modules if module.name == "mtp")


def planned_config():
    return make(Ask(**PAIR)).config


def claim(name):
    text = (resources.files("tpmodel.planner.evidence") / "data" / "claims.csv").read_text(encoding="utf-8")
    return next((float(row["value"]), float(row["tolerance"]))
                for row in csv.DictReader(text.splitlines()) if row["id"] == name)


def ms(part, term, **more):
    return planned(**more)[part]["terms"][term]["mid_ms"]


GPU = lambda name, **more: planned(**more)["gpus"][0][name]
ROWS = [  # (quantity and setting, decimals or None for texts, places)
    ("size of the build, GB", 2, [
        lambda: planned_config().weights_bytes / GB, lambda: 2 * GPU("weights_bytes") / GB,
        lambda: float(note("bytes", "nvfp4_gb")) - mtp_bytes() / GB, lambda: note("card", "counted_gb")]),
    ("read by one step of the build, GB", 2, [
        lambda: asked("read_bytes") / GB, lambda: note("bytes", "nvfp4_read_gb"),
        lambda: note("decode", "counted_read_gb"),
        lambda: readout("decode-time", r"Weights read per token, all GPUs = ([\d.]+) GB")]),
    ("weights on a card, GiB", 2, [
        lambda: GPU("weights_bytes") / GIB, lambda: GPU("weights_bytes", mtp=1) / GIB - mtp_bytes() / 2 / GIB,
        lambda: note("card", "counted_half_gib"), lambda: cell("card-memory", "weights")]),
    ("overhead of a card, middle, GiB", 2, [
        lambda: GPU("overhead_bytes") / GIB, lambda: note("card", "parts_gib"), lambda: asked("overhead_bytes") / GIB,
        lambda: cell("engine-takes", "in all"), lambda: cell("card-memory", "overhead")]),
    ("what the engine may take of a card, GiB", 2, [
        lambda: GPU("budget_bytes") / GIB, lambda: asked("budget_bytes") / GIB,
        lambda: cell("card-memory", "may be taken")]),
    ("pool of a card, GiB", 2, [
        lambda: GPU("kv_pool_bytes") / GIB, lambda: asked("kv_pool_bytes") / GIB,
        lambda: note("card", "counted_pool_gib"),
        lambda: readout("context-budget", r"Budget for the KV cache ([\d.]+) GiB"),
        lambda: cell("card-memory", "pool")]),
    ("cache of a token on a card, fp8, KiB", 1, [
        lambda: GPU("kv_bytes_per_token") / 1024, lambda: cell("context-budget", "KiB per token", "FP8 KV")]),
    ("longest context, fp8", 0, [
        lambda: planned()["max_context_tokens"], lambda: asked("max_context_tokens"),
        lambda: note("bytes", "plan_default"), lambda: note("context", "counted_tokens"),
        lambda: readout("context-budget", r"([\d,]+) tokens is the largest"),
        lambda: readout("context-blocks", r"Largest context ([\d,]+) tokens"),
        lambda: cell("context-blocks", "largest context", "mid")]),
    ("longest context, fp8, least overhead", 0, [
        lambda: planned()["max_context_range"]["high"],
        lambda: cell("context-blocks", "largest context", "low")]),
    ("longest context, fp8, most overhead", 0, [
        lambda: planned()["max_context_range"]["low"],
        lambda: cell("context-blocks", "largest context", "high")]),
    ("longest context, bf16", 0, [
        lambda: planned(kv_dtype="bf16", max_num_seqs=make(Ask(**PAIR)).best.at_once)["max_context_tokens"],
        lambda: cell("context-budget", "largest context", "BF16 KV")]),
    ("blocks of the pool", 0, [
        lambda: planned()["log"]["num_blocks"],
        lambda: cell("context-blocks", "blocks of the pool", "mid")]),
    ("decode, one user, 8,192 tokens", 1, [
        lambda: planned()["decode"]["mid"], lambda: asked("decode_tokens_per_s"),
        lambda: note("decode", "counted_rate"), lambda: note("prefill", "tp_decode"),
        lambda: note("serving", "plain"), lambda: note("serving", "plain_mid"),
        lambda: cell("decode-time", "tokens/s"), lambda: cell("speculation", "tokens/s", "0"),
        lambda: cell("alarm", "the model, middle", "tokens/s"), lambda: checked()[1],
        lambda: cell("why-lower", "the model", "tokens/s left", None), lambda: note("trust", "middle"),
        lambda: measured.rate(context_tokens=8192)]),
    ("decode, slow end", 1, [
        lambda: planned()["decode"]["low"], lambda: note("serving", "plain_low"),
        lambda: cell("alarm", "the model, low end", "tokens/s"), lambda: checked()[0]]),
    ("decode, fast end", 1, [
        lambda: planned()["decode"]["high"], lambda: note("serving", "plain_high"),
        lambda: cell("alarm", "the model, high end", "tokens/s"), lambda: checked()[2]]),
    ("one step, ms", 1, [
        lambda: sum(term["mid_ms"] for term in planned()["decode"]["terms"].values()), lambda: asked("pass_s") * 1e3,
        lambda: cell("decode-time", "step, ms"), lambda: told("prefill")["counted_decode_ms"],
        lambda: cell("alarm", "the model, middle", "ms")]),
    ("weight read of a step, ms", 1, [
        lambda: ms("decode", "weight read"), lambda: asked("weight_read_s") * 1e3,
        lambda: cell("decode-time", "weight read")]),
    ("cache read of a step, ms", 2, [
        lambda: ms("decode", "cache read"), lambda: asked("kv_read_s") * 1e3, lambda: cell("decode-time", "KV read")]),
    ("all-reduces of a step, ms", 2, [
        lambda: ms("decode", "all-reduces"), lambda: asked("communication_s") * 1e3,
        lambda: cell("decode-time", "all-reduces")]),
    ("engine's wait, middle, ms", 0, [
        lambda: ms("decode", "engine's wait"), lambda: note("decode", "counted_wait_ms"),
        lambda: note("serving", "gap_ms"), lambda: note("prefill", "counted_gap_ms"), lambda: asked("gap_s") * 1e3]),
    ("one all-reduce of one token, us", 1, [
        lambda: asked("protocol_allreduce_s") * 1e6,
        lambda: readout("message-time", r"each carries 10 KiB in ([\d.]+) µs")]),
    ("decode as a pipeline", 1, [
        lambda: planned(parallel="pp")["decode"]["mid"], lambda: note("prefill", "pp_decode")]),
    ("prompt of 8,192 tokens, tokens/s", 0, [
        lambda: planned()["prefill"]["mid"], lambda: note("prefill", "counted_rate"),
        lambda: note("prefill", "tp_rate"), lambda: readout("prompt-time", r"tokens take [\d.]+ s: ([\d,]+) tokens/s"),
        lambda: cell("message-time", "tokens/s")]),
    ("prompt of 8,192 tokens, s", 2, [
        lambda: 8192 / planned()["prefill"]["mid"], lambda: asked("prefill_s"),
        lambda: note("prefill", "counted_s"), lambda: cell("message-time", "prompt, s")]),
    ("all-reduces of that prompt, s", 2, [
        lambda: ms("prefill", "all-reduces") / 1e3, lambda: cell("message-time", "link, s"),
        lambda: readout("prompt-time", r"all-reduces ([\d.]+) s")]),
    ("prompt as a pipeline, tokens/s", 0, [
        lambda: planned(parallel="pp")["prefill"]["mid"], lambda: note("prefill", "pp_rate")]),
    ("decode with three drafts, 0.7 accepted", 1, [
        lambda: planned(mtp=3, acceptance=0.7, context=8192)["decode"]["mid"], lambda: note("serving", "confirmed"),
        lambda: cell("speculation", "tokens/s", "3"),
        lambda: asked("decode_tokens_per_s", mtp=3, acceptance=0.7, context=8192)]),
    ("article 2's PP 17/17, documents of 8,192 tokens", 0, [
        lambda: split(**ARTICLE_2, layers="17,17", sequence_tokens=8190, batch_tokens=8190)["tokens_per_s"]["mid"],
        lambda: cell("unequal-speeds", "PP 17/17", "predicted", None, length="8192 tokens")]),
    ("article 2's PP 20/14, documents of 512 tokens", 0, [
        lambda: split(**ARTICLE_2, layers="20,14", sequence_tokens=510, batch_tokens=8160)["tokens_per_s"]["mid"],
        lambda: note("unequal", "pp2014"), lambda: cell("unequal-speeds", "PP 20/14", "predicted", None)]),
    ("its best split", 0, [lambda: split(**ARTICLE_2)["tokens_per_s"]["mid"], lambda: note("unequal", "best_mid")]),
]


def bytes_of_a_prompt_ms():
    """A prompt's time on the link without any latency."""
    view = figure("message-time").view({"allreduce_latency_s": "1"})
    return fixed(1e3 * view.extended(allreduce_latency_s=0.0).communication_s, 0)


def payload_of_the_article():
    if any(row[0] == "payload" for row in figure("block-flow").table.rows):
        return cell("block-flow", "payload", "column, row", "article 1's block, as it counts: payloads")
    return told("block")["article_megatron"]


ARTICLE = [  # (claim, places where the figure starts with the article's setting)
    ("a1.toks_20us", lambda: cell("decode-time", "tokens/s", preset=None)),
    ("a1.toks_10us", lambda: cell("decode-time", "tokens/s", "10 µs", None)),
    ("a1.toks_50us", lambda: cell("decode-time", "tokens/s", "50 µs", None)),
    ("a1.total_20us", lambda: cell("decode-time", "step, ms", preset=None)),
    ("a1.max_ctx_fp8", lambda: cell("context-budget", "tokens that fit", "FP8 KV", None)),
    ("a1.kv_budget", lambda: readout("context-budget", r"KV cache ([\d.]+) GiB", None)),
    ("a1.prefill_comm", bytes_of_a_prompt_ms),
    ("a1.payload_megatron", payload_of_the_article),
    ("a1.weights_per_gpu_gib", lambda: cell("card-memory", "weights", preset=None)),
]


def printed(answer, decimals):
    return fixed(float(answer.replace(",", "")), decimals) if isinstance(answer, str) else fixed(answer, decimals)


@pytest.mark.parametrize("quantity, decimals, places", ROWS, ids=[row[0] for row in ROWS])
def test_every_place_gives_the_same_answer(quantity, decimals, places):
    answers = [printed(place(), decimals) for place in places]
    print(f"{quantity}: {answers[0]} in {len(answers)} places")
    assert len(set(answers)) == 1 and len(answers) >= 2, answers


@pytest.mark.parametrize("name, place", ARTICLE, ids=[name for name, _ in ARTICLE])
def test_the_first_setting_of_a_figure_is_the_articles(name, place):
    """Within the rounding of what the article prints."""
    value, tolerance = claim(name)
    assert abs(float(place().replace(",", "")) - value) <= tolerance * (1 + 1e-9)
