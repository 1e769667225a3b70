"""Figures: the page's functions equal Python's to the bit; no reachable setting breaks; bad values are named."""

import random
import re
from pathlib import Path

import pytest

from tpmodel import figures
from tpmodel.live import drawing, page
from tpmodel.live.controls import Choice, Slider
from tpmodel.live.marks import place

FIGURES = [make() for make in figures.ALL]
NEEDS = {  # a control that shows only when another is moved: an empty cache has no data type
    ("decode-time", "kv_dtype"): {"context_tokens": "131072"},
    ("alarm", "kv_dtype"): {"context_tokens": "131072"},
}
by_name = pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)


def random_texts(figure, seed):
    rng = random.Random(seed)
    return {c.name: rng.choice(list(c.texts if c.kind == "slider" else c.options)) for c in figure.controls}


def numbers_of(figure, texts):
    """Every mark's and derived value's numbers for one setting, as the page is asked for them."""
    view = figure.view(texts)
    found = [[float(getattr(view, name))] for name in figure.derived]
    for mark in figure.marks:
        if mark.kind == "curve":
            for sample in mark.samples:
                here = view.extended(**{mark.over: float(sample)})
                found.append([float(place(part, here)) for part in mark.parts()])
        else:
            found.append([float(place(part, view)) for part in mark.parts()])
    return found


HARNESS = """(settings) => {
  const figure = Object.values(window.tpFigures)[0](x => x);
  return settings.map(v => {
    const found = [];
    for (const [name, f] of figure.derived) { v[name] = f(v); found.push([v[name]]); }
    for (const [name, kind, axes, f, over, samples] of figure.marks) {
      if (kind === "curve") for (const s of samples) found.push(f({ ...v, [over]: s }));
      else found.push(f(v));
    }
    return found;
  });
}"""


@by_name
def test_every_mark_equals_python_to_the_bit(figure, blank):
    settings = [random_texts(figure, seed) for seed in range(150)]
    views = []
    for texts in settings:
        values = dict(figure.constants)
        for control in figure.controls:
            values |= control.value(texts[control.name])
        views.append({name: float(value) for name, value in values.items()})
    blank.evaluate(f"() => {{ window.tpFigures = {{}}; {page.script(figure)} }}")
    theirs = blank.evaluate(HARNESS, views)
    for texts, row in zip(settings, theirs):
        assert [list(map(float, numbers)) for numbers in row] == numbers_of(figure, texts), texts


@by_name
def test_every_corner_of_the_controls_draws(figure):
    """The page does not validate: no reachable setting may raise."""
    rng = random.Random(1)
    ends = [((c.texts[0], c.texts[-1]) if c.kind == "slider" else tuple(c.options)) for c in figure.controls]
    for _ in range(300):
        texts = {c.name: rng.choice(options) for c, options in zip(figure.controls, ends)}
        figure.shown_texts(texts)
        numbers_of(figure, texts)


@by_name
def test_draw_puts_every_mark_where_its_function_says(figure):
    canvas = figure.draw()
    gids = {artist.get_gid() for pair in canvas.axes for artist in (*pair.lines, *pair.patches, *pair.texts)}
    assert {f"{figure.name}-{mark.name}" for mark in figure.marks} <= gids
    view = figure.view()
    for mark in figure.marks:
        artists = {a.get_gid(): a for a in canvas.axes[mark.axes].get_children()}
        artist = artists[f"{figure.name}-{mark.name}"]
        if mark.kind == "box":
            x0, y0, x1, y1 = (float(place(part, view)) for part in mark.parts())
            xlim, ylim = figure.axes[mark.axes].xlim, figure.axes[mark.axes].ylim
            if all(min(xlim) <= x <= max(xlim) for x in (x0, x1)) and all(min(ylim) <= y <= max(ylim) for y in (y0, y1)):
                assert artist.get_xy()[0] == pytest.approx((x0, y0)) and artist.get_xy()[2] == pytest.approx((x1, y1))


@by_name
def test_text_form_is_stable_and_holds_the_numbers(figure):
    assert repr(figure) == repr(figure) and "0x" not in repr(figure)
    for control in figure.controls:
        assert control.label in repr(figure)


@by_name
def test_every_control_changes_something(figure):
    """No dead slider: from the default (or what the control needs) each control alone changes a mark or a text."""
    for control in figure.controls:
        options = control.texts if control.kind == "slider" else tuple(control.options)
        base = NEEDS.get((figure.name, control.name), {})
        before = numbers_of(figure, base), figure.shown_texts(base)
        moved = [(numbers_of(figure, {**base, control.name: o}), figure.shown_texts({**base, control.name: o})) for o in (options[0], options[-1])]
        assert any(after != before for after in moved), f"{control.label} moves nothing"


@by_name
@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), "", "x", "1e3", "-5", None, True, [1], "9" * 16])
def test_bad_values_are_named(figure, bad):
    for control in figure.controls:
        with pytest.raises(ValueError) as error:
            figure.draw({control.name: bad})
        assert control.label in str(error.value) and "it must be" in str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="has no control 'nonsense'"):
        figure.draw({"nonsense": 1})


def test_numbers_in_base_units_are_taken_too():
    figure = FIGURES[0]
    assert figure.view({"allreduce_latency_s": 1e-4}).allreduce_latency_s == 1e-4
    assert figure.shown_texts({"allreduce_latency_s": 1e-4}) == figure.shown_texts({"allreduce_latency_s": "100"})


def test_controls_refuse_a_wrong_declaration():
    with pytest.raises(ValueError, match="start"):
        Slider("ranks", "GPUs", ("1", "2"), "3")
    with pytest.raises(ValueError, match="same names"):
        Choice("a", "A", {"x": {"ranks": 1}, "y": {"layers": 1}}, "x")


@by_name
def test_fragment(figure):
    html = figure.page()
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids)), "ids are unique"
    assert all(i == figure.name or i.startswith(figure.name + "-") for i in ids)
    assert "#010203" not in html and "<metadata" not in html and "DejaVu" not in html
    assert len(html) < 60_000
    assert html == figure.page(), "two renderings are byte-equal"


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1])
def test_the_main_colours_differ_in_grey_too(theme):
    """Print in grey, or eyes that see no red and green, still tell the series apart by lightness."""
    css = (Path(drawing.__file__).parent / "live.css").read_text()
    block = re.findall(r"\{([^}]*--tp-blue[^}]*)\}", css)[theme]
    colors = dict(re.findall(r"--tp-(\w+): (#\w{6})", block))
    light = sorted(luminance(colors[name]) + 0.05 for name in ("blue", "red", "green", "gold"))
    assert min(b / a for a, b in zip(light, light[1:])) > 1.15
    if theme == 0:
        assert {name: colors[name] for name in colors if name in drawing.COLORS} == {k: v for k, v in drawing.COLORS.items() if k != "text"}
