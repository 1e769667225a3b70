"""Figures that step: each picture is what an independent walk through the same steps gives."""

import pytest

from tpmodel.book import figures
from tpmodel.book.figures.primer import NONE
from tpmodel.book.live.marks import place

RING, BLOCK, LANES = figures.allreduce_steps(), figures.block_flow(), figures.unequal_lanes()
WAYS = {option.split(":")[0].lower().replace(" ", "_"): option for option in BLOCK.controls[1].options}


def walked(ranks, hops):
    """A ring all-reduce by sets: piece -> the GPUs whose numbers are summed in it, on each GPU, and what was sent."""
    held = [[{gpu} for _ in range(ranks)] for gpu in range(ranks)]
    sent = []
    for hop in range(hops):
        sent = [(gpu - hop) % ranks if hop < ranks - 1 else (gpu + 1 - (hop - ranks + 1)) % ranks
                for gpu in range(ranks)]
        parcels = [set(held[gpu][sent[gpu]]) for gpu in range(ranks)]
        for gpu in range(ranks):
            got = parcels[gpu - 1]
            held[gpu][sent[gpu - 1]] = held[gpu][sent[gpu - 1]] | got if hop < ranks - 1 else got
    return held, sent


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_ring_shows_what_a_ring_does(ranks):
    for hop in range(2 * ranks - 1):
        texts = {"tp": f"{ranks} GPUs", "hop": str(hop)}
        view, shown = RING.view(texts), RING.shown_texts(texts)
        held, sent = walked(ranks, hop)
        for gpu in range(4):
            for piece in range(4):
                there = max(gpu, piece) < ranks
                count = str(len(held[gpu][piece])) if there else NONE
                assert shown[f"label-count-{gpu + 1}-{piece + 1}"] == count
            arrow = next(mark for mark in RING.marks if mark.name == f"sends-{gpu + 1}")
            assert (place(arrow.y0, view) < 112) == (gpu < ranks and hop > 0)
            if gpu < ranks and hop:
                row = (place("tall", view) * ranks - place(arrow.y0, view)) / place("tall", view) - 0.5
                assert row == pytest.approx(sent[gpu]), "the arrow is at the piece that is sent"
    assert all(piece == set(range(ranks)) for gpu in walked(ranks, 2 * ranks - 2)[0] for piece in gpu)


def test_the_clock_adds_up_the_hops():
    view = RING.view({"hop": "6"})
    assert view.now_s == pytest.approx(view.ring_s) == pytest.approx(6 * (6e-6 + 2560 / 3.9e9))
    assert view.chain_s == pytest.approx(6 * (6e-6 + 10240 / 3.9e9))
    assert view.tree_s == pytest.approx(4 * (6e-6 + 10240 / 3.9e9))
    assert view.oneshot_s == pytest.approx(6e-6 + 3 * 10240 / 3.9e9)


@pytest.mark.parametrize("tp, ranks", [("2 GPUs", 2), ("4 GPUs", 4)])
@pytest.mark.parametrize("way", WAYS)
def test_the_block_adds_up_to_what_the_way_sends_and_reads(way, tp, ranks):
    before = None
    for step in range(13):
        view = BLOCK.view({"step": str(step), "cut": WAYS[way], "tp": tp})
        now = (view.read_so_far, view.sent_so_far, view.so_far_s)
        assert before is None or all(a >= b for a, b in zip(now, before)), "nothing is taken back"
        before = now
    assert view.sent_so_far == pytest.approx(view.allreduce_wire_bytes + getattr(view, f"{way}_wire_bytes"))
    attention = 5120 * (2 * 24 + 2 * 4 + 24) * 256  # Q with its gate, K, V; o_proj
    assert view.read_so_far == pytest.approx((attention + 3 * 5120 * 17408) * 4.5 / 8 / ranks)


@pytest.mark.parametrize("way, expected", [
    ("megatron", "a p p s a a p - p - s a a"), ("naive_a", "a p p s a a p - p a p a a"),
    ("naive_b", "a p p s a a s a a - s a a")])
def test_a_strip_is_as_much_as_a_gpu_holds(way, expected):
    view = BLOCK.view({"cut": WAYS[way], "tp": "4 GPUs"})
    size = {"a": (155, 6), "p": (155 / 4, 6), "s": (155, 6 / 4), "-": (0, 0)}
    strips = [mark for mark in BLOCK.marks if mark.name.endswith("-holds-2")]
    for mark, holds in zip(strips, expected.split(), strict=True):
        x0, y0, x1, y1 = (float(place(part, view)) for part in mark.parts())
        assert (x1 - x0, y1 - y0) == pytest.approx(size[holds]), mark.name
        assert x0 == pytest.approx(166 + (155 / 4 if holds == "p" else 0)), "the second GPU's piece is the second"
    early = BLOCK.view({"step": "3", "cut": WAYS[way]})
    seen = [mark.name for mark in strips if place(mark.x1, early) > place(mark.x0, early)]
    assert seen == ["input-holds-2", "qkv-holds-2", "mixer-holds-2", "out-holds-2"], "later strips are not there yet"


def test_the_lanes_of_a_pipeline_are_a_flow_shop():
    """Card 1 takes batch after batch at the pace of the slower; card 2 begins when it has the batch and is free."""
    for layers in ("17", "24", "30"):
        view = LANES.view({"first_layers": layers})
        hand, free, ends = view.handover_s, 0.0, []
        for batch in range(6):
            arrives = batch * (max(view.first_s, view.last_s) + hand) + view.first_s + hand
            assert arrives >= free - 1e-12, "a batch never waits for the second card"
            free = arrives + view.last_s
            ends.append(free / view.longest_s)
        marks = {mark.name: mark for mark in LANES.marks}
        assert [place(marks[f"pp2-{i + 1}"].x1, view) for i in range(6)] == pytest.approx(ends)
        assert view.piped_s == pytest.approx(free), "the last batch ends the run"
        assert view.pp2_idle == pytest.approx(100 * (1 - 6 * (view.last_s + hand) / free))
    balanced = {layers: LANES.view({"first_layers": layers}) for layers in ("17", "20", "24")}
    grey = [v.pp1_idle + v.pp2_idle for v in balanced.values()]
    assert grey[0] > grey[1] > grey[2], "the nearer to the balance, the less grey"


def test_the_clock_hides_what_has_not_happened():
    marks = {mark.name: mark for mark in LANES.marks}
    start, end = LANES.view({"clock": "0"}), LANES.view()
    for name in ("pp1-1", "pp2-6", "tp1-link-3"):
        width = lambda v, name=name: place(marks[name].x1, v) - place(marks[name].x0, v)
        assert width(start) == 0 and width(end) > 0


def test_buttons_and_arrow_keys_step(browser, book):
    page = browser.new_page()
    page.goto(f"{book.as_uri()}/book/primer.html")
    hop = lambda: page.input_value('#allreduce-steps [data-typed="hop"]')
    following, back = (page.locator(f'#allreduce-steps [data-step="hop"][data-by="{by}"]') for by in (1, -1))
    for _ in range(9):
        following.click()
    assert hop() == "6", "it ends at the last step"
    assert page.url.endswith("#allreduce-steps.hop=6")
    back.click()
    page.keyboard.press("ArrowLeft")
    assert hop() == "4" and "hop 4 of 6" in page.text_content("#allreduce-steps-readout-hop")
    page.locator("#allreduce-steps-set-hop").focus()
    page.keyboard.press("ArrowRight")
    assert hop() == "5"
    page.close()


def test_rounds_of_drafts_take_their_time_and_earn_their_tokens():
    drafts = figures.draft_steps()
    view, shown = drafts.view(), drafts.shown_texts()
    assert view.round_s == pytest.approx(view.drafts * view.draft_s + view.busy_s + view.communication_s + view.gap_s)
    assert view.plain_s < view.round_s < (view.drafts + 1) * view.plain_s, "longer than a step, shorter than its tokens"
    marks = {mark.name: mark for mark in drafts.marks}
    ends = [place(marks[f"verify-{i}-wait"].x1, view) for i in (1, 2, 3)]
    assert ends == pytest.approx([1 / 3, 2 / 3, 1]), "three rounds fill the axis"
    assert place(marks["plain-2-read"].x0, view) == pytest.approx(view.plain_s / (3 * view.round_s))
    assert [shown[f"label-got-{i}"] for i in (1, 2, 3)] == ["+3"] * 3 and view.got == 9
    assert sum(shown[f"label-one-{i + 1}"] == "+1" for i in range(16)) == view.got_plain == int(
        (3 * view.round_s + view.gap_s) / view.plain_s)
    none = drafts.view({"accepted": "0"})
    assert none.slower == 1 and none.got == 3, "each round still confirms one token"


@pytest.mark.parametrize("texts", [{}, {"mtp": "3"}, {"card": "24 GiB"}, {"context_tokens": "8192"}])
def test_the_cells_count_the_blocks(texts):
    figure = figures.context_blocks()
    view, found = figure.view(texts), {}
    for mark in figure.marks:
        name, _, row = mark.name.rpartition("-")
        if mark.kind == "box" and name in ("state", "cache", "null", "spare", "missing"):
            x0, y0, x1, y1 = (float(place(part, view)) for part in mark.parts())
            assert 0 <= x0 <= x1 <= 25 and (y0, y1) == (-int(row), 1 - int(row)), "each row keeps to its place"
            found[name] = found.get(name, 0) + (x1 - x0) * view.per_cell
    kept = min(view.request_blocks, view.mid_blocks)
    assert found["state"] + found["cache"] == pytest.approx(kept) and found["state"] == pytest.approx(view.fixed_blocks)
    assert found["spare"] - found["missing"] == pytest.approx(view.mid_blocks - view.wanted_blocks)
    assert found["missing"] == pytest.approx(max(0, view.wanted_blocks - view.mid_blocks))
