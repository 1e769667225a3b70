"""Figures that step: each picture is what an independent walk through the same steps gives."""

import pytest

from tpmodel.book import figures
from tpmodel.book.figures.primer import NONE
from tpmodel.book.live.marks import place

RING = figures.allreduce_steps()


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
