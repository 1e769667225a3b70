"""Figures: the page's functions equal Python's to the bit; no reachable setting breaks; bad values are named."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from tpmodel.book import figures
from tpmodel.book.live import drawing, kernel, page
from tpmodel.book.live.controls import Choice, Slider
from tpmodel.book.live.marks import pieces, place, rows, template

FIGURES = [make() for make in figures.ALL]
by_name = pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)


def random_texts(figure, seed):
    rng = random.Random(seed)
    return {c.name: rng.choice(list(c.texts if c.kind == "slider" else c.options)) for c in figure.controls}


def numbers_of(figure, texts):
    """Every number of marks and texts for one setting, as the page's script orders them, and the points of curves."""
    view, numbers, curves = figure.view(texts), [], []
    for mark in figure.marks:
        if mark.kind == "curve":
            there = [view.extended(**{mark.over: float(sample)}) for sample in mark.samples]
            curves.append([[float(place(part, here)) for part in mark.parts()] for here in there])
        else:
            numbers += [float(place(part, view)) for part in mark.parts()]
    for parts in figure.all_texts.values():
        numbers += [float(part[0](view)) for part in parts if not isinstance(part, str)]
    return numbers, curves


HARNESS = """(settings) => {
  const figure = Object.values(window.tpFigures)[0](() => "#");
  return settings.map(v => {
    const numbers = figure.numbers(v);
    const curves = figure.marks.filter(mark => mark[1] === "curve").map(([, , , f, samples]) => samples.map(f(v)));
    return [numbers, curves, Object.fromEntries(figure.texts.map(([name, f]) => [name, [f(numbers)].flat().join("")]))];
  });
}"""


def worded(parts, view):
    """A text with # for each number."""
    return "".join(p if isinstance(p, str) else p[1][int(p[0](view))] if isinstance(p[1], tuple) else "#"
                   for p in parts)


@by_name
def test_every_mark_and_text_equals_python_to_the_bit(figure, blank):
    settings = [random_texts(figure, seed) for seed in range(30)]
    held = []
    for texts in settings:
        values = dict(figure.constants)
        for control in figure.controls:
            values |= control.value(texts[control.name])
        held.append({name: float(value) for name, value in values.items()})
    blank.evaluate(f"() => {{ window.tpFigures = {{}}; {page.script(figure)} }}")
    floats = lambda found: list(map(floats, found)) if isinstance(found, list) else float(found)
    for texts, (numbers, curves, said) in zip(settings, blank.evaluate(HARNESS, held)):
        assert (floats(numbers), floats(curves)) == numbers_of(figure, texts), texts
        view = figure.view(texts)
        assert said == {name: worded(figure.all_texts[name], view) for name in said}, texts


@by_name
def test_the_derivations_of_the_page_are_those_of_the_view_to_the_bit(figure, blank):
    """Every quantity under every number of a readout: its place in the tree, and its value for random settings."""
    places, rows, _ = figure.derivations
    assert places
    blank.evaluate(f"() => {{ window.tpFigures = {{}}; {page.script(figure)} }}")
    settings = [random_texts(figure, seed) for seed in range(5)]
    held = [{name: float(figure.view(texts)._held[name]) for name in figure.view().names()} for texts in settings]
    found = blank.evaluate("held => held.map(Object.values(window.tpFigures)[0](() => '').values)", held)

    def compare(why, row, values):
        name, *_, under = rows[row]
        assert (why.name, float(why.value)) == (name, float(values[row])), name
        assert len(why.parts) == len(under), name
        for part, below in zip(why.parts, under):
            compare(part, below, values)

    for texts, values in zip(settings, found):
        for (readout, piece), row in places.items():
            name = figure.all_texts[f"readout-{readout}"][piece][0].name
            compare(figure.view(texts).why(name), row, values)


def test_a_derivation_ends_at_controls_and_at_sourced_numbers():
    figure = next(figure for figure in FIGURES if figure.name == "decode-time")
    told = {name: (symbol, unit, how) for name, symbol, unit, _, how, _ in figure.derivations[1]}
    assert told["read_bytes"] == ("W", "byte", "set by you: Weights read per token, all GPUs")
    assert told["hidden"][2].startswith("computed: the shape ") and told["layers"][1] == ""
    assert told["weight_read_s"] == (
        "t_w", "s", "read_bytes / (ranks * achieved_frac * memory_bytes_per_s)")


@pytest.mark.thorough
@by_name
def test_every_corner_of_the_controls_draws(figure):
    """The page does not validate: no reachable setting may raise."""
    rng = random.Random(1)
    ends = [((c.texts[0], c.texts[-1]) if c.kind == "slider" else tuple(c.options)) for c in figure.controls]
    for _ in range(40):
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
            inside = lambda ends, limits: all(min(limits) <= at <= max(limits) for at in ends)
            if inside((x0, x1), xlim) and inside((y0, y1), ylim):
                assert artist.get_xy()[0] == pytest.approx((x0, y0)) and artist.get_xy()[2] == pytest.approx((x1, y1))


@by_name
def test_text_form_is_stable_and_holds_the_numbers(figure):
    assert repr(figure) == repr(figure) and "0x" not in repr(figure)
    for control in figure.controls:
        assert control.label in repr(figure)


def along(value, limits, log):
    """A place as a fraction of its axis, where the figure clips it, to a thirtieth of a pixel."""
    f = np.log10 if log else np.asarray
    ends = f(np.array(limits, dtype=float))
    return np.round((f(drawing.clamp(value, limits, log)) - ends[0]) / (ends[1] - ends[0]), 4).tolist()


def seen(figure, texts):
    """(what a reader sees of the picture and its numbers, the notes beside the controls)."""
    view, places = figure.view(texts), []
    for mark in figure.marks:
        axes = figure.axes[mark.axes]
        here = view.extended(**{mark.over: np.array(mark.samples[::8])}) if mark.kind == "curve" else view
        for i, part in enumerate(mark.parts()):
            limits, log = ((axes.xlim, axes.xlog), (axes.ylim, axes.ylog))[i % 2]
            places.append(along(place(part, here), limits, log))
    shown = figure.shown_texts(texts)
    read = {k: v for k, v in shown.items() if not k.startswith("silent-")}
    return (places, read), {k: v for k, v in shown.items() if v}


def some(control, count):
    """Evenly drawn texts of a slider, its ends among them; every option of a choice."""
    if control.kind == "choice":
        return tuple(control.options)
    texts = control.texts
    return tuple(dict.fromkeys(texts[round(i * (len(texts) - 1) / (count - 1))] for i in range(count)))


def moves(figure, base, control, count):
    """(A text, whether it changes what is seen, whether the control's note shows then), of each.

    A note that stands through a move is true."""
    name, (before, noted) = f"silent-{control.name}", seen(figure, base)
    for text in some(control, count):
        if text != figure.texts(base)[control.name]:
            after, notes = seen(figure, {**base, control.name: text})
            changed = after != before
            wrong = changed and name in notes and name in noted
            assert not wrong, f"{control.label} = {text} at {base}: {notes[name]}, it says"
            yield text, changed, name in notes


@by_name
def test_each_move_from_the_defaults_is_seen(figure):
    """Or a note beside the control says what takes its effect away."""
    for control in figure.controls:
        for text, changed, noted in moves(figure, {}, control, 9):
            assert changed or noted, f"{control.label} = {text} changes nothing and says nothing"


@pytest.mark.thorough
@by_name
def test_no_setting_of_another_control_silences_one(figure):
    """With any other control at its ends, each still does something, or says why not."""
    for other in figure.controls:
        for base in ({other.name: text} for text in some(other, 2)):
            for control in figure.controls:
                if control is not other:
                    found = moves(figure, base, control, 4)
                    assert any(changed or noted for _, changed, noted in found), f"{control.label} is silent at {base}"


def test_an_axis_says_what_lies_beyond_it():
    figure = next(figure for figure in FIGURES if figure.name == "alarm")
    assert figure.shown_texts()["beyond-0"] == "" and "beyond the axis" in figure.page().split("<script>")[1]
    assert "beyond the axis" in figure.shown_texts({"measured_tokens_per_s": "5"})["beyond-0"]


def test_the_first_controls_stand_above_the_fold_and_names_are_its_own():
    figure = next(figure for figure in FIGURES if figure.name == "decode-time")
    first, more = figure.page().split("<details")
    assert [name in first for name in ("allreduce_latency_s", "-set-tp", "-set-states")] == [True, False, False]
    assert "More: 7 controls" in more and 'aria-label="Reset: Decode: where one token' in more
    measured = next(figure for figure in FIGURES if figure.name == "decode-measured")
    dots = sum(mark.kind == "marker" for mark in measured.marks)
    assert measured.page().count("tokens/s measured</title>") == dots and '<g aria-hidden="true" ' in measured.page()


@by_name
def test_no_readout_tells_a_negative_amount(figure):
    """Or one of what does not exist: a text chooses other words there."""
    for base in ({control.name: text} for control in figure.controls for text in some(control, 4)):
        for name, said in figure.shown_texts(base).items():
            if name.startswith("readout-"):
                assert not re.search(r"(?<![\w/])-\d|–", said), f"{said} at {base}"


def test_a_note_stands_beside_its_control():
    figure = FIGURES[0]
    assert "KV cache stored as = FP8\n" in figure.describe({"context_tokens": "8192"})
    assert "KV cache stored as = BF16 (no cache yet: the context is 0)" in figure.describe({"kv_dtype": "BF16"})
    html = figure.page()
    assert ('<select id="decode-time-set-kv_dtype" data-control="kv_dtype" '
            'aria-describedby="decode-time-silent-kv_dtype">') in html
    assert '<p class="tp-silent" id="decode-time-silent-kv_dtype">no cache yet: the context is 0</p>' in html
    rows = kernel.widget(figure).children
    context = next(row for row in rows if getattr(row, "description", "") == "Context already in the cache")
    dtype, said = next(row.children for row in rows
                       if hasattr(row, "children") and row.children[0].description == "KV cache stored as")
    assert dtype.value == "FP8" and said.value == "no cache yet: the context is 0"
    context.value = "8192"
    assert said.value == ""


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


@by_name
def test_presets_are_settings_of_the_controls(figure):
    controls = {control.name: control for control in figure.controls}
    for i, (words, texts) in enumerate(figure.presets.items()):
        assert (texts == {}) == (i == 0), "the first preset is the start"
        assert figure.shown_preset(texts) == words and f"shown: {words}" in figure.describe(texts)
        for name, text in texts.items():
            control = controls[name]
            assert text in (control.texts if control.kind == "slider" else control.options), f"{words}: {name} = {text}"
    assert figure.shown_preset(random_texts(figure, 5)) == ("yours" if figure.presets else "")
    with pytest.raises(ValueError, match="has no preset 'nonsense'"):
        figure.preset("nonsense")


def test_the_articles_figures_say_so():
    for name in ("two-cuts", "block-flow", "decode-time", "card-memory",
                 "context-budget", "message-time", "prompt-time"):
        assert next(iter(next(f for f in FIGURES if f.name == name).presets)).lower().startswith("article 1")


def test_templates_say_what_they_do_not_understand():
    assert pieces("plain") == ("plain",) and len(template("{layers:0} of {layers?a|b}.")) == 4
    assert len(rows((None, None), ("a", "{layers:0}"), ("b", "c"))[0]) == 3
    for bad in ("{layers}", "{layers:x}", "{", "a } b", "{layers/MS}"):
        with pytest.raises(ValueError, match="hole that is not understood"):
            template(bad)
    with pytest.raises(ValueError, match="unit 'KM' of 'layers/KM' is not accepted: it must be one of US, MS"):
        template("{layers/KM:1}")


def test_numbers_in_base_units_are_taken_too():
    figure = next(f for f in FIGURES if f.name == "decode-time")
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
    assert len(html) < 80_000
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
        drawn = {name: color for name, color in drawing.COLORS.items() if name != "text"}
        assert {name: colors[name] for name in colors if name in drawing.COLORS} == drawn
