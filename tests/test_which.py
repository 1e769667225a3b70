"""Two ways against each other: `tpmodel check which`, what it rests on, and the figure that answers it."""

import csv
import json
from importlib import resources

import pytest

from tpmodel.book import figures
from tpmodel.book.figures.which import MACHINES
from tpmodel.book.pages import ways
from tpmodel.catalog.gpus import gpu
from tpmodel.catalog.links import link
from tpmodel.planner.engine.versions import Setting
from tpmodel.planner.evidence import checks, checks_which
from tpmodel.planner.plan import one_pass, places, versus
from tpmodel.planner.plan.placement import place
from tpmodel.planner.plan.plan import plan
from tpmodel.planner.shapes.models import find_config, shapes
from tpmodel.tools import cli

DATA = resources.files("tpmodel.planner.evidence") / "data" / "which_cases.csv"
REPORTED = DATA.with_name("which_report_cases.csv")
LINES = list(csv.DictReader(DATA.read_text().splitlines()))
MEASURED = ("value_a", "value_b", "ratio_a_over_b", "unit", "use", "evidence", "note", "source")
ROW = {"id": "x", "model": "Qwen3-8B", "config": "qwen3-8b", "gpus": "2 x rtx-3090", "link": "shm", "slots": "",
       "engine": "vllm", "workload": "decode", "context": "1024", "prompt_tokens": "", "batch": "1", "drafts": "0",
       "way_a": "tp2", "way_b": "one", "ratio_a_over_b": "1.5"}


def ratio(**change):
    return checks_which.predict(checks.Cells(ROW | change))[0]


def arm(way, count=2, wire="shm", card="rtx-3090", model="qwen3-8b"):
    config = find_config(model)
    placed = place(config, (gpu(card),) * count, way)
    job = one_pass.decode(Setting(ranks=placed.ranks), 1024)
    return versus.Arm(config, placed, link(wire), ((1, job),))


def test_at_least_nine_of_ten_counted_pairs_have_the_right_way_ahead():
    rows, summary = checks.check("which", DATA)
    assert summary["gate"] == len(LINES) == 18 and summary["skipped"] == 0
    assert summary["right_frac"] == summary["ok"] / 18 >= 0.9
    assert all((row.status == "ok") == ((row.predicted > 1) == (row.measured > 1)) for row in rows)


def test_pairs_that_do_not_count_are_compared_and_their_misses_known():
    """A report that leaves out what decides: shown beside the others, never in their count."""
    rows, summary = checks.check("which", REPORTED)
    misses = {row.id for row in rows if row.status == "miss"}
    assert (len(rows), summary["gate"], summary["skipped"]) == (26, 0, 0)
    assert misses == {"OW26", "OW28", "OW31", "OW36", "OW38", "OW39", "OW42", "OW44"}
    layers = ways.against_layers_table().rows
    assert len(layers) == 16 and sum(row[-2].startswith("wrong") for row in layers) == 2


def test_a_prediction_reads_nothing_measured():
    honest = [checks_which.predict(checks.Cells(line)) for line in LINES]
    bare = [{name: cell for name, cell in line.items() if name not in MEASURED} for line in LINES]
    assert [checks_which.predict(checks.Cells(line)) for line in bare] == honest


def test_the_middle_is_the_quotient_of_two_plans():
    """tp2 over one, each by itself: the ratio of their rates."""
    a, b = arm("tp2"), arm("one")
    time_s = lambda arm: sum(
        ends[1] for ends in one_pass.terms(arm.config, arm.placement, arm.link, arm.jobs[0][1]).values())
    assert versus.compare(a, b).mid == pytest.approx(time_s(b) / time_s(a), rel=1e-9)


def test_a_way_against_itself_is_one_at_every_end():
    found = versus.compare(arm("tp2"), arm("tp2"))
    assert (found.low, found.mid, found.high) == (1, 1, 1) and not found.decided


def test_turned_round_the_ratio_is_its_reciprocal():
    here, there = versus.compare(arm("tp2"), arm("pp2")), versus.compare(arm("pp2"), arm("tp2"))
    assert (here.low, here.mid, here.high) == pytest.approx((1 / there.high, 1 / there.mid, 1 / there.low))
    assert here.decided and here.low > 1, "no range of this link turns a decode of 16 GB"


def test_shared_ranges_cancel():
    """Independent ranges would overlap: the slow end of tp2 is slower than the fast end of one card."""
    a, b = arm("tp2"), arm("one")
    rates = [one_pass.rates(one_pass.terms(x.config, x.placement, x.link, x.jobs[0][1]), (1,) * 3) for x in (a, b)]
    assert rates[0][0] < rates[1][2] and versus.compare(a, b).low > 1


def test_what_would_decide_is_the_term_that_turns_the_order_alone():
    """Many small messages over an unknown link: its ends disagree, and at any one link the order stands."""
    found = versus.compare(*(arm(way, 4, "pcie-unknown", "h200", "qwen3-4b") for way in ("tp4", "one")))
    assert not found.decided and found.turned_by == ("link",) and "tpmodel measure" in found.words


def test_two_copies_serve_twice_the_streams_and_one_stream_no_faster():
    assert ratio(way_a="replicas2") == pytest.approx((1, 1, 1))
    many = ratio(way_a="replicas2", workload="batch", batch="64", context="512")
    assert 1 < many[1] < 2
    prompts = ratio(way_a="replicas2", workload="batch", batch="2", context="8192", prompt_tokens="8191")
    assert prompts[1] == pytest.approx(2, rel=0.02), "prompts are all computing"


def test_streams_that_are_not_told_are_as_many_as_fit():
    """Two copies of 16 GB leave less cache than one model on both, but no all-reduces: both queue, none is refused."""
    told = ratio(workload="batch", batch="8", way_b="replicas2")
    queued = ratio(workload="batch", batch="", way_b="replicas2")
    assert all(one > 0 for one in told + queued) and told != queued


def test_a_slot_decides_where_bytes_do():
    """A prompt over one lane against sixteen; words beside the slots tell where the cards sit."""
    prompt = ROW | {"workload": "prefill", "prompt_tokens": "4096", "context": "4096", "way_a": "tp2#4.0 x16 / 4.0 x16"}
    for link_name in ("shm", "p2p", "staged", "pcie-unknown"):
        narrow = ratio(**prompt | {"link": link_name, "way_b": "tp2#3.0 x1"})
        assert 2 < narrow[0] < narrow[2], link_name
    assert ratio(slots="4.0 x16 (as a reader has it)") == ratio(slots="4.0 x16 / 4.0 x16")


def test_one_micro_batch_cannot_overlap_and_two_do():
    prompt = lambda tokens, engine="llama.cpp": ratio(
        engine=engine, workload="prefill", prompt_tokens=tokens, context=tokens, way_a="pp2")[1]
    assert prompt("512") < 1 < 1.2 < prompt("1024") < prompt("8192") < 2
    assert prompt("8192", "ik_llama.cpp") < 1, "that engine's stages take turns"


@pytest.mark.parametrize("change, reason", [
    ({"way_a": "sideways"}, "parallel = 'sideways' is not accepted"), ({"way_a": "tp3"}, "for 2 GPUs"),
    ({"way_a": "tp2@string"}, "'string' is not in links.toml"), ({"workload": "sleep"}, "workload = 'sleep'"),
    ({"gpus": "2 x rtx-9090"}, "'rtx-9090' is not in gpus.toml"), ({"config": "nope"}, "model 'nope' is neither"),
    ({"context": ""}, "context is empty"), ({"way_b": "offload"}, "no column tells"), ({"drafts": "99"}, "to 16")])
def test_a_bad_cell_skips_its_row_with_the_reason(change, reason):
    (row,) = checks_which.rows(list(ROW), [checks.Cells(ROW | change)])
    assert row.status == "skipped" and reason in row.note


def test_shapes_cards_and_links_of_ones_own_stand_beside_the_table(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/config.json").write_text(json.dumps(shapes()["qwen3-8b"]))
    (tmp_path / "pairs.toml").write_text('[wire]\nname = "Wire"\n' + "\n".join(
        f'{name} = {{ value = {value}, unit = "{unit}", kind = "measured", source = "s", date = "d" }}'
        for name, value, unit in (("link_bytes_per_s", 100, "GB/s"), ("allreduce_latency_s", 2, "us"))))
    with open(tmp_path / "pairs.csv", "w", newline="") as file:
        out = csv.DictWriter(file, list(ROW))
        out.writeheader()
        out.writerow(ROW | {"config": "mine", "way_a": "tp2@wire", "way_b": "tp2@shm"})
    assert cli.main(["check", "which", str(tmp_path / "pairs.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"][0]["low"] > 1 and found["summary"]["right_frac"] == 1


def place_link(card, said):
    cards = (gpu(card),) * 2
    if said and "link" in said:
        return link(said["link"])
    here = places.place(said and said["host"], said and said["slot"], cards)
    return places.link_at("shm", here)


# --- the figure ----------------------------------------------------------------------------------

FIGURE = figures.which_way()
WIRES = dict(zip(FIGURE.controls[1].options, (None, {"host": "EPYC 7402", "slot": "pcie4-x16"},
                                              {"link": "p2p-pcie5-x8"}, {"link": "nvlink-bridge"})))
PAIRS = [(machine, wire, MACHINES[machine], said) for machine in MACHINES for wire, said in WIRES.items()
         if (said or machine == next(iter(MACHINES)))  # a host that is not said: each card has a slot of its own
         and ("3090" in machine or said != {"link": "nvlink-bridge"})]


def prompt_ends(found):
    """Tokens/s of a plan's prompt with all its terms at their slow ends, in the middle, at their fast ends."""
    terms = found["prefill"]["terms"].values()
    return [1e3 * found["prefill"]["prompt_tokens"] / sum(term[f"{end}_ms"] for term in terms)
            for end in ("high", "mid", "low")]


@pytest.mark.parametrize("machine, wire, asked, said", PAIRS)
@pytest.mark.parametrize("users", [2, 5])
def test_the_figure_says_what_plan_says_at_every_end(machine, wire, asked, said, users):
    v = FIGURE.view({"machine": machine, "wire": wire, "users": str(users)})
    model, card, kv_dtype = asked
    for way in ("tp", "pp"):
        for load, batch in (("one", 1), ("many", users)):
            more = dict(kv_dtype=kv_dtype, parallel=way, context=8192, batch=batch) | (said or {})
            found = plan(model, [card] * 2, **more)
            shown = [getattr(v, f"{way}_{load}_{end}") for end in range(3)]
            assert shown == pytest.approx([found["decode"][end] for end in ("low", "mid", "high")], rel=1e-9), load
        shown = [getattr(v, f"{way}_prompt_{end}") for end in range(3)]
        assert shown == pytest.approx(prompt_ends(found), rel=1e-9)
        assert shown[0] < 1.000001 * found["prefill"]["low"] and found["prefill"]["high"] < 1.000001 * shown[2]


def test_a_bridge_is_said_to_be_missing():
    shown = lambda machine: FIGURE.shown_texts({"machine": machine, "wire": list(WIRES)[-1]})["silent-wire"]
    assert ["connector" in shown(machine) for machine in MACHINES] == [True, True, False]


@pytest.mark.parametrize("tokens", [1024, 2048, 3000, 32768])
def test_a_prompt_of_one_pass_overlaps_nothing(tokens):
    v = FIGURE.view({"prompt_tokens": str(tokens)})
    found = plan("qwen3.8-27b-nvfp4", ["rtx-5060-ti-16gb"] * 2, "pp", kv_dtype="fp8", context=65536, prompt=tokens)
    shown = [getattr(v, f"pp_prompt_{end}") for end in range(3)]
    assert shown == pytest.approx(prompt_ends(found), rel=1e-9)


@pytest.mark.parametrize("machine", MACHINES)
def test_one_card_beside_them_is_what_plan_says(machine):
    model, card, kv_dtype = MACHINES[machine]
    found = plan(model, [card], kv_dtype=kv_dtype)
    way = next(way for way in found["compared"] if way["fits"])
    assert way["label"] == found["split"]["label"]
    v = FIGURE.view({"machine": machine})
    for load, ends in (("one", [way["decode"][end] for end in ("low", "mid", "high")]), ("prompt", prompt_ends(found))):
        shown = [getattr(v, f"off_{load}_{end}") for end in range(3)]
        assert shown == pytest.approx(ends, rel=1e-9), load


@pytest.mark.parametrize("machine, wire, asked, said", PAIRS)
def test_what_it_calls_undecided_is_undecided(machine, wire, asked, said):
    """Against a comparison that moves link, cards and wait each by itself."""
    config, view = find_config(asked[0]), FIGURE.view({"machine": machine, "wire": wire, "users": "5"})
    over = place_link(asked[1], said)
    arms = [place(config, (gpu(asked[1]),) * 2, way) for way in ("tp2", "pp2")]
    for load, job in (("one", lambda s: one_pass.decode(s, 8192)), ("many", lambda s: one_pass.decode(s, 8192, 5)),
                      ("prompt", lambda s: one_pass.prompt(s, 8192))):
        setting = lambda ranks: Setting(ranks=ranks, kv_dtype=asked[2] or config.kv_dtype)
        found = versus.compare(*(versus.Arm(config, one, over, ((1, job(setting(one.ranks))),)) for one in arms))
        side = 0 if not found.decided else 1 if found.low > 1 else 2
        assert getattr(view, f"{load}_side") == side, (load, found)
