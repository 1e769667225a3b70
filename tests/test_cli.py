"""The command line: exit codes, one line per error, JSON as promised."""

import json
import subprocess
import sys

import pytest


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "tpmodel", *arguments], capture_output=True, text=True)


def test_claims_json():
    done = run("claims", "--json")
    assert done.returncode == 0 and done.stderr == ""
    rows = json.loads(done.stdout)["claims"]
    assert len(rows) == 174
    assert set(rows[0]) == {"id", "role", "article", "computed", "low", "high", "unit", "status", "verdict", "book_value", "note",
                            "error_frac"}


def test_claims_text_ends_in_a_count():
    done = run("claims")
    assert done.returncode == 0 and "match" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("arguments", [(), ("bogus",), ("claims", "--yaml"), ("claims", "x")])
def test_bad_input_is_one_line_and_exit_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("tpmodel") and done.stderr.count("\n") == 1
