"""The command line: exit codes, one line per error, JSON as promised."""

import json
import subprocess
import sys

import pytest

from tpmodel.catalog.gpus import gpu
from tpmodel.catalog.hosts import host, slot
from tpmodel.catalog.links import link
from tpmodel.planner.shapes.models import find_config


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "tpmodel", *arguments], capture_output=True, text=True)


def test_claims_json():
    done = run("claims", "--json")
    assert done.returncode == 0 and done.stderr == ""
    rows = json.loads(done.stdout)["claims"]
    assert len(rows) == 174
    assert set(rows[0]) == {"id", "role", "article", "computed", "low", "high", "unit", "status", "verdict",
                            "book_value", "note", "error_frac"}


def test_claims_text_ends_in_a_count():
    done = run("claims")
    assert done.returncode == 0 and "match" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("arguments", [(), ("bogus",), ("claims", "--yaml"), ("claims", "x")])
def test_bad_input_is_one_line_and_exit_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("tpmodel") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments, said", [
    (("plan", "--model", "m", "--context", "\uff11\uff12"),
     "argument --context: '\uff11\uff12' is not accepted: it must be a whole number"),
    (("plan", "--model", "m", "--batch", "1_0"), "it must be a whole number"),
    (("plan", "--model", "m", "--mtp", "9" * 5000), "it must be a whole number"),
    (("plan", "--model", "m", "--util", "0_1"), "it must be a number"),
    (("split", "--model", "m", "--tokens", "many"), "it must be a number"),
    (("check", "kv", "a\nb"), "No such file"), (("two\nlines",), "invalid choice"),
    (("check", "kv", "x" * 9000), "File name too long")])
def test_an_error_says_what_is_accepted_in_one_line_of_bearable_length(arguments, said):
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1 and len(done.stderr) < 700
    assert said in done.stderr


def test_every_listed_name_is_taken():
    done = run("plan", "--list")
    listed = [line.split(" ") for line in done.stdout.splitlines()]
    assert done.returncode == 0 and {kind for kind, _ in listed} == {"model", "gpu", "link", "host", "slot"}
    find = {"model": find_config, "gpu": gpu, "link": link, "slot": slot,
            "host": lambda name: host(name).key == name}
    assert all(find[kind](name) for kind, name in listed)


PLAN = ("plan", "--model", "qwen3-8b", "--gpu", "h200", "--explain")


@pytest.mark.parametrize("arguments", [("claims",), ("claims", "--json"), PLAN])
def test_a_reader_that_has_enough_is_no_error(arguments):
    command = subprocess.Popen([sys.executable, "-m", "tpmodel", *arguments],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    command.stdout.close()
    with command.stderr:
        assert (command.stderr.read(), command.wait()) == (b"", 0)


@pytest.mark.parametrize("arguments", [("claims",), PLAN])
def test_a_full_disk_is_one_line(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "tpmodel", *arguments],
                              stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "No space left" in done.stderr


def test_without_stdout_there_is_no_traceback():
    done = subprocess.run(f"'{sys.executable}' -m tpmodel claims >&-", shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
