"""Figures 1 and 2: the shards tile the matrix, and what the flow prints is what simulated ranks send."""

import pytest

from tpmodel.book import figures
from tpmodel.book.figures.linear import TALLEST, WIDEST
from tpmodel.book.live.marks import place

CUTS, BLOCK = figures.two_cuts(), figures.block_flow()


def boxes(prefix, **values):
    """(width, height, left, bottom) of the boxes `prefix`-1 to -8 that are not empty."""
    view = CUTS.view(values)
    found = []
    for mark in CUTS.marks:
        if mark.kind == "box" and mark.name.startswith(prefix + "-"):
            x0, x1, y0, y1 = (float(place(part, view)) for part in (mark.x0, mark.x1, mark.y0, mark.y1))
            if (x1 - x0) * (y1 - y0) > 1e-9:
                found.append((x1 - x0, y1 - y0, x0, y0))
    return found


@pytest.mark.parametrize("tp, ranks", [("1 GPU", 1), ("2 GPUs", 2), ("4 GPUs", 4), ("8 GPUs", 8)])
@pytest.mark.parametrize("side, other", [("5120", "17408"), ("17408", "5120"), ("512", "32768")])
def test_shards_tile_the_matrix_in_its_proportions(tp, ranks, side, other):
    values = {"tp": tp, "in_elements": side, "out_elements": other}
    for prefix, cut in (("columns-w", 0), ("rows-w", 1)):
        shards = boxes(prefix, **values)
        assert len(shards) == ranks
        size = [0.0, 0.0]
        size[cut] = sum(shard[cut] for shard in shards)
        size[1 - cut] = shards[0][1 - cut]
        assert all(shard[1 - cut] == pytest.approx(size[1 - cut]) for shard in shards)
        assert size[0] / size[1] == pytest.approx(float(other) / float(side))
        assert size[0] <= WIDEST + 1e-9 and size[1] <= TALLEST + 1e-9, "it keeps to its place"
        assert len({round(shard[2 + cut], 6) for shard in shards}) == ranks, "they do not lie on each other"


def test_a_unit_of_the_drawing_is_as_long_across_as_down():
    """So equal areas of W are equally many elements."""
    canvas = CUTS.draw()
    canvas.canvas.draw()
    axes = canvas.axes[0]
    width, height = axes.get_window_extent().size
    across, down = (abs(end - start) for start, end in (axes.get_xlim(), axes.get_ylim()))
    assert width / across == pytest.approx(height / down, rel=0.03)


def test_a_copy_is_full_size_and_a_piece_is_not():
    whole, tp = boxes("columns-w", tp="1 GPU")[0], {"tp": "4 GPUs"}
    assert all(strip[1] == pytest.approx(whole[1]) for strip in boxes("columns-x", **tp)), "x by columns: copies"
    assert all(strip[0] == pytest.approx(whole[0] / 4) for strip in boxes("columns-y", **tp)), "y by columns: pieces"
    assert all(strip[1] == pytest.approx(whole[1] / 4) for strip in boxes("rows-x", **tp)), "x by rows: pieces"
    assert all(strip[0] == pytest.approx(whole[0]) for strip in boxes("rows-y", **tp)), "y by rows: partial sums"


def test_sides_that_do_not_divide_are_named():
    assert "do not divide" not in repr(CUTS)
    assert "do not divide the columns" in CUTS.describe({"out_elements": "17409"})
    assert "do not divide the rows" in CUTS.describe({"in_elements": "5121"})


@pytest.mark.parametrize("tp, ranks", [("2 GPUs", 2), ("4 GPUs", 4), ("8 GPUs", 8)])
@pytest.mark.parametrize("tokens", [1, 3])
def test_the_three_ways_send_what_simulated_ranks_send(tp, ranks, tokens):
    from tpmodel.ranks.linear import swiglu, swiglu_naive_a, swiglu_naive_b
    from tpmodel.ranks.proof import compare
    from tpmodel.ranks.weights import normal, random_swiglu

    scale = 128  # run at 1/128 of the width, each element accounted as 128
    view = BLOCK.view({"tp": tp, "tokens": tokens, "hidden": 16 * scale, "intermediate": 40 * scale})
    for way, layer in (("megatron", swiglu), ("naive_a", swiglu_naive_a), ("naive_b", swiglu_naive_b)):
        run = compare(layer, normal(tokens, 16, seed=1), random_swiglu(16, 40, seed=2), ranks, element_bytes=2 * scale)
        assert getattr(view, f"{way}_payload_bytes") == run.payload_bytes
        assert getattr(view, f"{way}_wire_bytes") == run.sent_bytes


def test_the_articles_counting_is_the_articles():
    from tpmodel.planner.evidence.claims import claims

    article = {claim.id: claim.value for claim in claims()}
    view = BLOCK.view()
    for way in ("megatron", "naive_a", "naive_b"):
        assert getattr(view, f"{way}_article_payload_bytes") == article[f"a1.payload_{way}"]
    shown = BLOCK.shown_texts({"accounting": "the article's: its payloads"})
    assert "34,816 B (3.4×)" in shown["readout-ffn"] and "20,480 B (2.0×)" in shown["readout-ffn"]


def test_both_allreduces_carry_the_payload_and_stand_behind_the_row_cuts():
    shown = BLOCK.shown_texts({"tokens": 8192})
    assert shown["label-first-text"] == shown["label-second-text"] == "ALL-REDUCE: 83,886,080 B"
    height = {mark.name: mark.y0 for mark in BLOCK.marks if mark.kind == "box" and not callable(mark.y0)}
    assert height["out-1"] > height["first"] > height["up-1"] > height["down-1"] > height["second"]


def test_an_arrow_ends_in_a_head():
    lines = {line.get_gid(): line for line in BLOCK.draw().axes[0].lines}
    assert lines["block-flow-first-in-1"].get_marker() not in (None, "None", "")
    assert lines["block-flow-first-in-1"].get_markevery() == [1]
