"""Where the cards sit: host, sockets and slot decide what an all-reduce through host memory reaches."""

import json
import subprocess
import sys
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpmodel.catalog.gpus import gpu
from tpmodel.catalog.hosts import host, hosts, slot
from tpmodel.catalog.links import LANES, TRANSFERS, line_bytes_per_s, link
from tpmodel.planner.evidence import checks, transports
from tpmodel.planner.evidence.allreduces import by_place
from tpmodel.planner.plan import wire
from tpmodel.planner.plan.places import Place, link_at, place
from tpmodel.planner.plan.plan import plan

PAIR = ["rtx-5060-ti-16gb"] * 2
HOSTS = st.sampled_from([None, *hosts().values()])
KINDS = st.sampled_from(["shm", "p2p", "oneshot", "mailbox", "staged"])
SLOTS = st.tuples(st.sampled_from(list(TRANSFERS)), st.sampled_from(LANES))
FLAGS = st.fixed_dictionaries({"sockets": st.sampled_from([1, 2]), "shared": st.booleans(), "root": st.booleans()})


def rates(kind, here):
    return [end / 1e9 for end in link_at(kind, here).numbers["link_bytes_per_s"].base_range]


def told(name, text, sockets=1):
    return place(f"{sockets}x {name}", text, [gpu("h200")] * 2)


# --- by hand -------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, text, sockets, ends", [
    ("epyc-zen2", "pcie4-x8", 1, (2.1, 3.5, 4.7)), ("epyc-zen2", "pcie4-x16", 1, (2.1, 3.5, 4.7)),
    ("epyc-zen2", "pcie4-x16", 2, (0.7, 1.4, 1.7)), ("epyc-zen3", "pcie4-x8", 2, (0.65, 0.8, 1.6)),
    # PCIe 2.0 x16 moves 8 GB/s, 3.0 x4 3.94
    ("epyc-zen3", "pcie2-x16", 1, (2.1, 0.45 * 8, 0.55 * 8)), ("desktop", "pcie3-x4", 1, (0.945, 1.457, 2.166)),
    ("epyc-zen4", "pcie4-x8", 1, (6.617, 9.452, 10.713)), ("epyc-zen4", "pcie5-x16", 1, (26, 27.5, 29)),
    # two cards share the way up of one slot: half each, and what is left of one root complex
    ("epyc-zen3", "pcie2-x16 shared", 1, (0.5 * 2.1, 0.45 * 4, 0.55 * 4))])
def test_the_smallest_limit_counts(name, text, sockets, ends):
    assert rates("shm", told(name, text, sockets)) == pytest.approx(ends, rel=1e-3)


def test_a_host_that_is_not_said_has_the_range_of_all():
    assert link_at("shm", Place()) is link("shm") and rates("shm", Place()) == [1.4, 3.9, 21.1]
    bare = place(None, None, [gpu("rtx-5060-ti-16gb")] * 2)
    assert rates("shm", bare) == [1.4, 3.9, 21.1]
    newer = place(None, "pcie5-x8", [gpu("rtx-5060-ti-16gb")] * 2)  # on no host of Zen 2 or 3
    assert rates("shm", newer) == pytest.approx([0.2 * 31.51, 0.37 * 31.51, 0.68 * 31.51], rel=1e-3)
    # not said, the slot may have half the lanes at the slow end
    wide = place("desktop", None, [gpu("rtx-5060-ti-16gb")] * 2)
    assert rates("shm", wide)[0] == pytest.approx(0.24 * 15.75, rel=1e-3)


def test_peers_on_two_sockets_of_old_hosts_lose_a_fifth():
    inside, across = (rates("p2p", told("epyc-zen2", "pcie4-x16", sockets)) for sockets in (1, 2))
    assert inside[1] == 24.8 and across[1] == 19.0
    assert rates("p2p", told("epyc-zen2", "pcie4-x8", 2))[1] == pytest.approx(12.4)  # the slot is the limit


def test_a_slot_of_the_card_counts_where_it_is_narrower():
    assert place("desktop", "pcie5-x16", [gpu("rtx-3090")] * 2).slot == (4, 16)
    assert place("epyc-zen2", None, [gpu("rtx-5060-ti-16gb")] * 2).slot == (4, 8)  # such a host has no PCIe 5.0


def test_in_a_graph_our_two_h200_spend_what_was_measured():
    """128 all-reduces of a decode step with one and with eight tokens, less the same step without: ms."""
    for key, tokens, measured in (("nvlink-h200", 1, 1.220), ("nvlink-h200", 8, 1.250), ("shm-h200", 1, 1.877),
                                  ("shm-h200", 8, 2.593)):
        spent = 128e3 * wire.allreduce_s(wire.in_step(link(key)), tokens * 10240, 2, 1)
        alone = 128e3 * wire.allreduce_s(link(key), tokens * 10240, 2, 1)
        assert spent == pytest.approx(measured, rel=0.05) and alone > 1.2 * spent
    assert wire.in_step(link("mailbox")) is link("mailbox")  # no such number is known of it


# --- scaling -------------------------------------------------------------------------------------

@given(KINDS, HOSTS, SLOTS, SLOTS, FLAGS)
def test_a_faster_slot_is_never_slower(kind, where, one, other, flags):
    slower, faster = sorted((one, other), key=lambda each: line_bytes_per_s(*each))
    if kind == "p2p" and max(one[0], other[0]) == 5 > min(one[0], other[0]):
        return  # of PCIe 5.0 a smaller share was measured
    if kind == "shm" and where is None and max(one[0], other[0]) == 5 > min(one[0], other[0]):
        return  # another host: that of the years of PCIe 5.0
    less, more = (rates(kind, Place(where, each, True, **flags)) for each in (slower, faster))
    assert all(a <= b * (1 + 1e-9) for a, b in zip(less, more))


@given(KINDS, HOSTS, SLOTS, FLAGS)
def test_fewer_sockets_and_a_way_up_of_ones_own_are_never_slower(kind, where, here, flags):
    found = rates(kind, Place(where, here, True, **flags))
    best = rates(kind, Place(where, here, True))
    assert all(a <= b for a, b in zip(found, best)) and 0 < found[0] <= found[1] <= found[2]
    assert found[2] * 1e9 <= line_bytes_per_s(*here) or kind in ("mailbox", "staged", "oneshot")


# --- names ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, key", [
    ("AMD EPYC 7402 24-Core Processor", "epyc-zen2"), ("Rome", "epyc-zen2"), ("zen2", "epyc-zen2"),
    ("EPYC 7J13 (Zen 3), 1 socket", "epyc-zen3"), ("Threadripper PRO 5955WX", "epyc-zen3"), ("EPYC 9554", "epyc-zen4"),
    ("2x EPYC Turin (Zen 5), NPS4", "epyc-zen4"), ("Intel(R) Xeon(R) Platinum 8480C", "sapphire-rapids"),
    ("Xeon 4416+ (Sapphire Rapids)", "sapphire-rapids"), ("12th Gen Intel(R) Core(TM) i7-12700K", "desktop"),
    ("AMD Ryzen 9 7950X3D", "desktop"), ("WSL2", "wsl2"), ("epyc-zen4", "epyc-zen4"), ("unknown", "not-said")])
def test_a_host_is_known_as_it_prints_its_processor(text, key):
    assert host(text).key == key


@pytest.mark.parametrize("text", ["Xeon Gold 6248", "EPYC 7551", "a toaster", "", "Xeon 6330"])
def test_a_host_that_nobody_measured_is_refused(text):
    with pytest.raises(ValueError, match="it must be one of epyc-zen2"):
        host(text)


@pytest.mark.parametrize("text, known", [
    ("pcie4-x8", (4, 8)), ("PCIe 4.0 x8", (4, 8)), ("gen3 x1", (3, 1)), ("5.0 x16", (5, 16)), ("OCuLink", (4, 4)),
    ("Thunderbolt 5", (4, 4)), ("tb4", (3, 4)), ("USB4", (3, 4)), ("M.2", (4, 4)), ("x1", (2, 1)),
    ("4.0 x16 / 4.0 x4", (4, 4)), ("3.0 x8, 2.0 x16", (3, 8))])
def test_a_slot_is_known_by_name(text, known):
    assert slot(text) == known


def test_what_the_path_of_a_row_says():
    def of(path, cpu="EPYC 7502", ranks="2"):
        here = transports.place_of(checks.Cells(gpu="RTX 4090", pcie_gen="4", lanes="16", path=path, host_cpu=cpu,
                                                ranks=ranks))
        return here.sockets, here.shared, here.root

    assert of("one socket, one card at x8") == (1, False, False) and of("socket 1") == (1, False, False)
    assert of("across sockets (other pair)") == of("both sockets") == of("SYS") == (2, False, False)
    assert of("both cards behind one switch (one root port)") == of("PIX") == (1, True, True)
    assert of("two switches (two root ports)") == of("one card per switch", ranks="4") == (1, False, False)
    assert of("two switches, both cards of each", ranks="4") == (1, True, True)
    assert of("two root ports of one root complex") == of("two root complexes", ranks="4") == (1, False, True)
    assert of("two root complexes (NODE)") == of("") == (1, False, False)
    assert of("", "two-socket server, both cards behind ONE switch (PIX)") == (1, True, True)


# --- plan ----------------------------------------------------------------------------------------

ASK = {"kv_dtype": "fp8", "context": 8192}


@pytest.mark.parametrize("name", ["epyc-zen2", "epyc-zen4", "desktop"])
def test_what_is_said_of_the_place_narrows_the_answer(name):
    wide = plan("qwen3.8-27b-nvfp4", ["rtx-4090"] * 2, "tp", **ASK)["prefill"]
    told = plan("qwen3.8-27b-nvfp4", ["rtx-4090"] * 2, "tp", host=name, slot="pcie4-x8", **ASK)["prefill"]
    assert told["high"] / told["low"] < 0.7 * wide["high"] / wide["low"]
    assert wide["low"] < told["low"] and told["high"] < wide["high"]


def test_what_decides_comes_first_in_the_answer():
    rate = lambda **more: plan("qwen3.8-27b-nvfp4", ["rtx-4090"] * 2, "tp", **more, **ASK)["prefill"]["mid"]
    old, new = rate(host="epyc-zen2", slot="pcie4-x16"), rate(host="epyc-zen4", slot="pcie4-x8")
    assert rate(host="2x epyc-zen2", slot="pcie4-x16") < old < 0.7 * new
    assert rate(host="epyc-zen2", slot="pcie4-x8") == old


def test_where_the_link_is_not_said_peer_access_stands_beside_it():
    found = plan("qwen3.8-27b-nvfp4", PAIR, **ASK)
    peer, said = found["with_peer_access"], plan("qwen3.8-27b-nvfp4", PAIR, link="p2p", **ASK)
    assert found["link"] == "shm" and peer["link"] == said["link"] == "p2p-pcie5-x8"
    board, apart = (plan("qwen3-8b", [card] * 2, context=8192) for card in ("h200", "h100-pcie"))
    assert board["link"] == "nvlink-h200" and board["with_peer_access"] is None
    assert (apart["link"], apart["with_peer_access"]["link"]) == ("shm-h200", "p2p-pcie5-x16")
    assert "--link nvlink-h100-bridge" in apart["with_peer_access"]["how_to_know"]
    bridged = plan("qwen3-8b", ["rtx-3090"] * 2, context=8192)["with_peer_access"]
    assert bridged["link"] == "p2p-pcie4-x16" and "--link nvlink-bridge" in bridged["how_to_know"]
    assert all(peer[name] == said[name] for name in ("decode", "prefill", "split", "verdict", "compared", "command"))
    assert peer["prefill"]["mid"] > found["prefill"]["mid"] and "topo -p2p r" in peer["how_to_know"]
    assert said["with_peer_access"] is None and plan("qwen3-8b", ["h200"])["with_peer_access"] is None
    assert found["decode"] == plan("qwen3.8-27b-nvfp4", PAIR, link="shm", **ASK)["decode"]
    four = plan("qwen3.8-27b-nvfp4", PAIR * 2, **ASK)["with_peer_access"]["how_to_know"]
    assert "NCCL_P2P_LEVEL=SYS" in four and "NCCL_P2P_LEVEL" not in peer["how_to_know"]


@pytest.mark.parametrize("card, link", [
    ("h100-sxm", "nvlink-h200"), ("a100-80gb", "nvlink-a100"), ("a100-40gb", "nvlink-a100"), ("b200", "nvlink-b200"),
    ("mi300x", "xgmi-mi300x"), ("a100-80gb-pcie", "shm"), ("rtx-3090", "shm"), ("h100-nvl", "shm-h200")])
def test_cards_of_a_board_are_joined_by_it_until_something_else_is_said(card, link):
    found = lambda **more: plan("llama-3.1-8b", [card] * 2, "tp", context=8192, **more)["link"]
    assert found() == link
    assert found(link="shm").startswith("shm") and found(host="epyc-zen4").startswith("shm")


def test_a_bridge_joins_two_of_the_cards_that_have_one():
    found = lambda cards, link: plan("qwen3-8b", cards, "tp", context=8192, link=link)["link"]
    assert found(["rtx-3090"] * 2, "nvlink-bridge") == "nvlink-bridge"
    assert found(["h200"] * 8, "nvlink-h200") == "nvlink-h200"
    for cards, name, says in ((["rtx-3090"] * 4, "nvlink-bridge", "a bridge joins two cards, and these are 4: it must"),
                              (["rtx-3090"] * 2, "nvlink-h200", "it must be one of shm, p2p, oneshot, mailbox, staged, "
                               "nvlink-bridge"), (["rtx-3090", "rtx-4090"], "nvlink-bridge", "has no connector")):
        with pytest.raises(ValueError, match=says):
            found(cards, name)
    assert plan("qwen3-8b", ["rtx-4090"] * 2, host="wsl2", context=8192)["with_peer_access"] is None


def run(*words):
    return subprocess.run([sys.executable, "-m", "tpmodel", *words], capture_output=True, text=True)


@pytest.mark.parametrize("words, says", [
    (("--host", "zen9"), "host = 'zen9' is not accepted: the nearest are"),
    (("--host", "epyc-zen2", "--slot", "pcie5-x8"), "EPYC Zen 2 (Rome), Threadripper 3000 has PCIe 4.0 at most"),
    (("--slot", "pcie9-x3"), "slot = 'pcie9-x3' is not accepted: it must be a generation from 1 to 5"),
    (("--slot", "shared"), "slot = 'shared' is not accepted: it must be a generation"),
    (("--link", "p2p-pcie5-x16", "--slot", "pcie4-x8"), "43.0 GB/s are more than a slot of PCIe 4.0 x8 can"),
    (("--link", "shm-h200", "--host", "desktop"), "with --host it must be one of shm, p2p"),
    (("--link", "nvlink-bridge"), "rtx-4090 has no connector for it: it must be one of shm, p2p, oneshot, mailbox"),
    (("--link", "nvlink-h200"), "rtx-4090 has no connector for it: it must be one of shm, p2p, oneshot, mailbox"),
    (("--link", "p2p", "--host", "wsl2"), "gives cards no peer access: it must be one of shm, mailbox, staged"),
    (("--link", "p2p-pcie4-x8", "--host", "wsl2"), "gives cards no peer access: it must be one of shm, mailbox"),
    (("--link", "oneshot", "--host", "Windows 11"), "gives cards no peer access: it must be one of shm, mailbox"),
    (("--host", ""), "host = '' is not accepted"),
    (("--host", "3x epyc-zen2"), "it must be one host, or 2x NAME"),
    (("--link", "shn"), "the nearest are shm")])
def test_a_place_that_cannot_be_is_refused_in_one_line(words, says):
    done = run("plan", "--model", "qwen3-8b", "--gpu", "2x rtx-4090", *words)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


def test_the_lines_of_a_plan_say_how_to_find_out():
    printed = run("plan", "--model", "qwen3-8b", "--gpu", "2x rtx-4090").stdout
    assert "link: shm, NCCL through host memory" in printed and "with peer access (p2p-pcie4-x16)" in printed
    assert "nvidia-smi topo -p2p r" in printed
    assert "with peer access" not in run("plan", "--model", "qwen3-8b", "--gpu", "2x rtx-4090", "--link", "shm").stdout


# --- against what was measured -------------------------------------------------------------------

def test_public_all_reduces_of_hosts_that_are_told_are_met():
    rows, summary = checks.own_table("comm", "host")[1]
    by_host = summary["by"]["host"]
    assert summary["gate"] == 174 and summary["ok"] == 174 and summary["median_abs_error_frac"] < 0.06
    for name in ("shm, epyc-zen2", "shm, epyc-zen3", "shm, epyc-zen4", "p2p, epyc-zen2", "p2p, epyc-zen3"):
        assert by_host[name]["median_abs_error_frac"] < 0.1 and abs(by_host[name]["median_error_frac"]) < 0.05
    assert by_host["shm, not-said"]["median_abs_error_frac"] > 0.3  # nobody can know
    assert all(abs(off) < 0.15 for name in by_host if "not-said" not in name
               for off in by_host[name]["without"].values())
    said = json.loads(run("check", "comm", str(checks.resources.files(checks.__package__) / "data" / "host_cases.csv"),
                          "--json").stdout)["summary"]
    assert said["by"]["host"] == by_host


def test_a_host_s_number_from_the_other_machines_predicts_the_one_left_out():
    """Limits of Zen 2, inside a socket and across: the median of other machines is within 25 % of each."""
    machines = {}
    for line in checks.own_table("comm", "host")[0]:
        here = transports.place_of(line)
        if line["link"] == "shm" and here.host and here.host.key == "epyc-zen2" and not here.root:
            sent = 2 * (int(line["ranks"]) - 1) / int(line["ranks"]) * int(line["message_bytes"])
            machines.setdefault(here.sockets, {}).setdefault(line["id"][:4], []).append(sent / float(line["time_s"]))
    assert {sockets: len(found) for sockets, found in machines.items()} == {1: 4, 2: 3}
    for found in machines.values():
        for left, rates_of in found.items():
            others = median(rate for name, rates in found.items() if name != left for rate in rates)
            assert others == pytest.approx(median(rates_of), rel=0.25), left


def test_a_prediction_reads_host_and_path_but_no_time():
    line = next(one for one in checks.own_table("comm", "host")[0] if one["id"].startswith("OH02fs"))
    predict = lambda **more: transports.link_at("shm", transports.place_of(checks.Cells(line | more)))
    assert predict(time_s="1", use="x", note="x", source="x") == predict()
    assert predict(path="one socket").link_bytes_per_s > 2 * predict().link_bytes_per_s
    assert predict(host_cpu="EPYC 9554").link_bytes_per_s > 10 * predict().link_bytes_per_s


def test_dots_of_the_figure_are_rates_on_the_wire():
    """Eight cards at 1 GiB in 1.4454 s: 2 x 7/8 GiB each way; of two sockets of Zen 2 on x16 the median."""
    assert dict(by_place())["epyc-zen2", line_bytes_per_s(4, 16), 2, False] == pytest.approx(1.35e9)
    assert 2 * 7 / 8 * 2**30 / 1.4454 == pytest.approx(1.3e9, rel=1e-3)
