"""The page “Your model, your cards”: the planner carried over gives what Python gives, to the printed digit."""

import ast
import json
import random
import shlex
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of
from hypothesis import strategies as st

from tpmodel import inputs
from tpmodel.book.carry.carry import Carrier
from tpmodel.book.carry.names import Uncarried
from tpmodel.book.carry.refer import Refer
from tpmodel.book.carry.script import Script
from tpmodel.book.yours import answer, fields, page, stand
from tpmodel.planner.plan.command import asked as read
from tpmodel.tools import address as addresses
from tpmodel.tools.cli import main, parser

SETTINGS, SHARES = 200, 4
RUN = """([name, all]) => all.map(pairs => {
  try { return tpYours.plain(tpYours[name](tpYours.dict(pairs))); }
  catch (error) { return "refused: " + error.message; }
})"""


def settings():
    """Random settings; every model, build, card, link, host and slot at least once."""
    draw, found = random.Random(20261201), []
    for i in range(SETTINGS):
        said = {field.name: list(field.options)[i % len(field.options)] for field in fields.fields()
                if field.name in ("model", "gpu")}
        for field in fields.fields():
            often = {"count": 0.8, "quant": 0.4, "kv": 0.5, "second": 0.1, "engine": 0.15}.get(field.name, 0.2)
            if field.options is not None and field.name not in said and draw.random() < often:
                said[field.name] = draw.choice(list(field.options))
        for name, texts in (("context", ("4096", "20000", "131072")), ("prompt", ("100", "4,096")),
                            ("users", ("2", "8", "40")), ("drafts", ("1", "3")), ("reserve", ("0.5", "1.25")),
                            ("util", ("0.8", "0.95"))):
            if draw.random() < 0.25:
                said[name] = fields.plain(draw.choice(texts))
        found.append(said)
    return found


def by_python(function, said):
    """What Python gives, or how it refuses."""
    try:
        return function(said)
    except ValueError as error:
        return f"refused: {error}"


@pytest.fixture(scope="module")
def bare(browser):
    """The fields, the answer and the script, without the book around them."""
    tab = browser.new_page(viewport={"width": 1366, "height": 768})
    tab.set_content("<!doctype html><body>" + page.fragment().partition("<script")[0])
    tab.evaluate("window.tpWhy = (...said) => { window.asked = said; }")
    tab.add_script_tag(content=page.script())
    yield tab
    tab.close()


@pytest.fixture
def opened(browser, served):
    """The built page; what it logs is an error."""
    tab, logged = browser.new_page(viewport={"width": 1366, "height": 768}), []
    tab.on("console", lambda said: logged.append(said.text))
    tab.on("pageerror", lambda error: logged.append(str(error)))
    tab.goto(f"{served}/book/yours.html")
    yield tab
    assert not logged
    tab.close()


def alike(here, there, at=""):
    """Equal: texts to the letter, numbers but for the last bits."""
    if isinstance(there, dict):
        assert here.keys() == there.keys(), at
        return all(alike(here[name], there[name], f"{at}.{name}") for name in there)
    if isinstance(there, list):
        assert len(here) == len(there), at
        return all(alike(one, other, f"{at}[{i}]") for i, (one, other) in enumerate(zip(here, there)))
    same = here == pytest.approx(there, rel=1e-9) if isinstance(there, float) else here == there
    assert same, (at, here, there)
    return True


def test_the_settings_hold_every_model_and_card():
    for field in fields.fields():
        if field.name in ("model", "gpu"):
            assert {said[field.name] for said in settings()} == set(field.options)


@pytest.mark.browser
@pytest.mark.parametrize("share", range(SHARES))
def test_the_page_answers_as_python_does_to_the_printed_digit(bare, share):
    asked = settings()[share::SHARES]
    pairs = [list(said.items()) for said in asked]
    for name, function in (("first", answer.first), ("rest", answer.rest), ("plan", stand.document)):
        shown, fits = bare.evaluate(RUN, [name, pairs]), 0
        for said, here in zip(asked, shown):
            there = by_python(function, said)
            fits += not str(there).startswith("refused")
            assert alike(here, json.loads(json.dumps(there))), (name, said)
        assert fits > len(asked) / 3  # enough of them are plans


@pytest.mark.browser
def test_numbers_say_why_and_peers_are_told(bare):
    for said in ({}, {"gpu": "rtx-3090", "users": "4"}, {"model": "qwen3-8b", "count": "1"}):
        pairs = [list(said.items())]
        assert bare.evaluate(RUN, ["peers", pairs]) == [answer.peer_words(said)]
        for name in ("max_context_tokens", "decode_tokens_per_s", "prefill_s", "kv_pool_bytes", "graph_bytes"):
            here = bare.evaluate("([pairs, name]) => tpYours.reasons(tpYours.dict(pairs), name)", [pairs[0], name])
            assert alike(here, json.loads(json.dumps(answer.reasons(said, name)))), (said, name)


@pytest.mark.browser
@settings_of(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(numbers=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30))
def test_numbers_print_as_python_prints_them(bare, numbers):
    whole = [round(number) for number in numbers]
    for spec, told in ((",.1f", numbers), (".2f", numbers), ("g", numbers), (".2g", numbers), (",", whole)):
        here = bare.evaluate("([spec, all]) => all.map(x => tpYours.fmt(x, spec))", [spec, told])
        assert here == [format(number, spec) for number in told], spec


@pytest.mark.parametrize("function, said", [
    (inputs.write, "getpid"), (inputs.exists, "Path"), (random.random, "random")])
def test_what_has_no_counterpart_is_refused_by_name(function, said):
    with pytest.raises(Uncarried, match=said):
        Carrier({}, set()).refer(function)


@pytest.mark.parametrize("body, said", [
    ("with a: pass", "line 2: With"), ("for x in y: pass\n else: pass", "line 2: an else behind a loop"),
    ("*a, b = c", "a star that is not last"), ("return 1j", "line 2: this value"), ("return a @ b", "MatMult")])
def test_syntax_without_a_counterpart_is_refused_with_its_line(body, said):
    tree = ast.parse(f"def f(a, c, y):\n {body}").body[0]
    with pytest.raises(Uncarried, match=f"here, .*{said}.* has no counterpart"):
        Script(Refer(Carrier({}, set()), {"b": 1}), "here").function(tree, "f")


def test_the_line_of_the_page_asks_the_same():
    for said in settings()[:40]:
        asked = by_python(fields.ask, said)
        if isinstance(asked, str):  # refused: no line
            continue
        words = shlex.split(fields.command(said))
        assert words[:2] == ["tpmodel", "plan"]
        assert read(parser().parse_args(words[1:])) == asked, said


def test_an_address_goes_both_ways(capsys, monkeypatch, tmp_path):
    start = ["link", "--model", "qwen3-8b", "--gpu", "2x rtx-3090", "--context", "20000"]
    assert main([*start, "--base", "https://example.org/book"]) == 0
    address = capsys.readouterr().out.strip()
    assert address.startswith("https://example.org/book/yours.html#yours.")
    pairs = [pair.removeprefix("yours.").split("=") for pair in address.partition("#")[2].split("&")]
    asked = fields.ask({name: unquote(text) for name, text in pairs})
    assert (asked.model, asked.gpus, asked.context) == ("qwen3-8b", ("rtx-3090",) * 2, 20000)
    monkeypatch.setattr(addresses, "BUILT", tmp_path)  # where `make book` puts the pages
    assert main(start) == 2 and "run `make book`" in capsys.readouterr().err
    (tmp_path / addresses.PAGE).touch()
    assert main([*start, "--json"]) == 0
    built = json.loads(capsys.readouterr().out)["address"]
    assert built == f"{tmp_path.as_uri()}/{address.partition('/book/')[2]}"


@pytest.mark.parametrize("more, said", [
    (["--gpu", "3x rtx-3090", "--gpu", "rtx-4090"], "equal GPUs, or one each of two kinds"),
    (["--gpu", "2x rtx-3090", "--goal", "prefill"], "the page has no field for it"),
    (["--gpu", "9x rtx-3090"], "one of 1, 2, 3"), (["--gpu", "2x rtx-3091"], "rtx-3090"), ([], "once for each GPU"),
    (["--gpu", "2x rtx-3090", "--util", "5"], "util = 5.0"), (["--gpu", "2x rtx-3090", "--slot", "x4"], "slot = 'x4'"),
    (["--gpu", "2x rtx-3090", "--slot", "pcie4-x8 shared"], "on the page the nearest are"),
    (["--gpu", "rtx-3090", "--host", "desktop"], "two GPUs or more"),
    (["--gpu", "2x rtx-3090", "--base", "https://x.org/start.html"], "the folder of the book's pages")])
def test_what_the_page_cannot_ask_has_no_address(capsys, more, said):
    assert main(["link", "--model", "qwen3-8b", "--base", "https://x.org", *more]) == 2
    printed = capsys.readouterr().err
    assert said in printed and printed.count("\n") == 1


def test_an_address_takes_the_names_that_plan_takes(capsys):
    for flags, wanted in (
            (["--host", "EPYC 7402", "--slot", "PCIe 4.0 x8"], {"host": "epyc-zen2", "slot": "pcie4-x8"}),
            (["--host", "2x AMD EPYC 7402", "--slot", "OCuLink"], {"host": "2x epyc-zen2", "slot": "pcie4-x4"}),
            (["--host", "not said", "--slot", "oculink"], {"slot": "oculink"})):
        start = ["link", "--model", "Qwen/Qwen3-8B", "--gpu", "2x RTX 3090"]
        assert main([*start, "--base", "https://x.org", *flags]) == 0
        pairs = [pair.split("=") for pair in capsys.readouterr().out.strip().partition("#")[2].split("&")]
        assert {name.removeprefix("yours."): unquote(text) for name, text in pairs} == {
            "model": "qwen3-8b", "gpu": "rtx-3090", "kv": "", **wanted}


@pytest.mark.parametrize("base", ["https://x.org/b", "https://x.org/b/", "https://x.org/b/yours.html",
                                  "https://x.org/b/yours.html#yours.gpu=l4", "https://x.org/b/yours.html?a#yours"])
def test_the_base_is_the_folder_or_the_page(capsys, base):
    assert main(["link", "--model", "qwen3-8b", "--gpu", "l4", "--base", base]) == 0
    assert capsys.readouterr().out.startswith("https://x.org/b/yours.html#yours.model=qwen3-8b&yours.gpu=l4&")


def test_a_second_kind_is_one_of_each():
    assert fields.ask({"second": "rtx-4090", "count": "1"}).gpus == ("rtx-5060-ti-16gb", "rtx-4090")
    with pytest.raises(ValueError, match="one of each") as told:
        fields.ask({"second": "rtx-4090", "count": "8"})
    assert fields.field_of(str(told.value)) == "count"


def test_the_longest_context_says_what_set_it():
    tile = lambda **said: answer.first(said).partition("Longest context")[2].partition("</p>")[0]
    assert "</strong> token <small>as asked" in tile(context="1")
    assert "own blocks" in tile(count="8") and "</strong> tokens <small></small>" in tile(users="4096")


@pytest.mark.browser
def test_back_to_no_setting_is_the_start_and_a_forbidden_copy_selects(bare):
    bare.evaluate("location.hash = '#yours.gpu=rtx-3090'")
    bare.wait_for_function("document.querySelector('#yours-set-gpu').value === 'rtx-3090'")
    bare.evaluate("location.hash = ''")
    bare.wait_for_function("document.querySelector('#yours-set-gpu').value === 'rtx-5060-ti-16gb'")
    wanted = answer.first({}).partition('data-name="max_context_tokens">')[2].partition("<")[0]
    bare.wait_for_function("n => document.querySelector('.tp-ask').textContent === n", arg=wanted)
    bare.wait_for_timeout(100)
    bare.evaluate("Object.defineProperty(navigator, 'clipboard', { value: { writeText: () => Promise.reject() } })")
    bare.click("[data-copy] >> nth=0")
    bare.wait_for_function("document.querySelector('[data-copy]').textContent === 'Selected'")
    assert "vllm serve" in bare.evaluate("getSelection().toString()")


@pytest.mark.browser
def test_a_link_of_two_texts_or_endless_is_told_in_a_line(bare):
    for text, told in (("rtx-4090=rtx-3090", "gpu = 'rtx-4090=rtx-3090'"), ("9" * 5000, "...")):
        bare.evaluate("text => { location.hash = '#yours.gpu=' + text; }", text)
        bare.wait_for_function("told => document.querySelector('#yours .tp-note[role]').textContent.includes(told)",
                               arg=told)
        assert len(bare.inner_text("#yours form .tp-note[role]")) < 250
    bare.evaluate("location.hash = ''")


def test_a_field_moves_the_answer_and_the_address(opened):
    before = opened.inner_text(".tp-verdict")
    opened.select_option("#yours-set-gpu", "rtx-3090")
    opened.click("text=More: ")
    opened.fill("#yours-set-context", "20,000")
    opened.dispatch_event("#yours-set-context", "change")
    said = {"gpu": "rtx-3090", "context": "20000"}
    assert opened.inner_text(".tp-verdict") != before
    for box, html in ((".tp-answer", answer.first(said)), (".tp-rest", answer.rest(said)),
                      (".tp-peer", answer.peer_words(said))):
        opened.wait_for_function("""([box, html]) => {
            const wanted = Object.assign(document.createElement("div"), { innerHTML: html });
            const shown = document.querySelector(box).innerHTML.replace(/ tabindex="-?\\d+"/g, "");  // the theme's
            return shown === wanted.innerHTML;
        }""", arg=[box, html])
    assert opened.url.endswith("#yours.gpu=rtx-3090&yours.context=20%2C000")
    opened.reload()
    assert "20,000 tokens" in opened.inner_text(".tp-verdict") and opened.input_value("#yours-set-gpu") == "rtx-3090"
    opened.click("text=Reset")
    opened.wait_for_function("before => document.querySelector('.tp-verdict').innerText === before", arg=before)
    assert "#" not in opened.url


@pytest.mark.parametrize("hash, said", [
    ("yours.gpu=rtx-9999", "gpu"), ("yours.context=<img src=x onerror=alert(1)>", "context"), ("yours.x=1", "x = '1'"),
    ("yours.context=%", "cannot be read"), ("yours.context=999999999", "at most"), ("yours.model=__proto__", "model")])
def test_a_wrong_address_is_told_and_the_start_is_shown(opened, hash, said):
    before = opened.inner_text(".tp-verdict")
    opened.goto(opened.url.partition("#")[0] + "#" + hash)
    opened.reload()
    note = opened.inner_text("#yours form .tp-note[role]")
    assert said in note and "The start is shown" in note
    assert opened.inner_text(".tp-verdict") == before and not opened.query_selector("#yours img")


def test_a_wrong_number_is_told_at_its_field(opened):
    before = opened.inner_text(".tp-verdict")
    opened.click("text=More: ")
    for name, text in (("context", "many"), ("util", "2"), ("drafts", "99")):
        opened.fill(f"#yours-set-{name}", text)
        note = opened.query_selector("#yours form .tp-note[role]")
        assert text.split(".")[0] in note.inner_text() and opened.inner_text(".tp-verdict") == before
        assert note.evaluate("one => one.closest('.tp-control').querySelector('input').name") == name
        opened.fill(f"#yours-set-{name}", "")
        assert note.inner_text() == ""


def test_a_number_says_why(opened):
    opened.focus(".tp-tiles .tp-ask >> nth=1")
    opened.keyboard.press("Enter")
    shown = opened.inner_text("dialog.tp-why")
    assert "decode_tokens_per_s" in shown and "1 / pass_s" in shown
    opened.keyboard.press("Escape")
    assert not opened.is_visible("dialog.tp-why")


def test_another_address_leaves_the_page_alone(opened):
    opened.evaluate("location.hash = '#start-it'")
    assert opened.inner_text("#yours form .tp-note[role]") == ""
