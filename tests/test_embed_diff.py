"""`tpmodel embed-diff`: numbers against another way to compute them, and files that are refused."""

import io
import json

import numpy
import pytest

from tpmodel.tools import cli
from tpmodel.inputs import shown
from tpmodel.tools.embed import embed_diff


@pytest.fixture
def diff(tmp_path, monkeypatch, capsys):
    """Save arrays as a.npy, b.npy (bytes are written as they are) and compare them."""
    monkeypatch.chdir(tmp_path)

    def run(a, b, *flags):
        for name, value in (("a.npy", a), ("b.npy", b)):
            if isinstance(value, bytes):
                (tmp_path / name).write_bytes(value)
            elif value is not None:
                numpy.save(name, value)
        code = cli.main(["embed-diff", "a.npy", "b.npy", *flags])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_by_hand(diff):
    a = numpy.array([[1, 0], [0, 2], [3, 3]], "f4")
    b = numpy.array([[1, 0], [2, 0], [3, 3]], "f4")  # the second turned by 90 degrees
    code, out, _ = diff(a, b, "--json", "--top-k", "1")
    assert code == 0
    found = json.loads(out)
    # Nearest in a: 0 -> 2, 1 -> 2, 2 -> 0 or 1 (equal). In b: 0 -> 1, 1 -> 0, 2 -> 0 or 1. Shared: the last row alone.
    assert found.pop("cosine_mean") == pytest.approx(2 / 3, abs=1e-15)
    assert found.pop("cosine_min") == pytest.approx(0, abs=1e-15)
    assert found == {"documents": 3, "dimensions": 2, "cosine_min_row": 1, "max_abs_diff": 2.0, "max_abs_diff_row": 1,
                     "top_k": 1, "top_k_overlap": pytest.approx(1 / 3)}


@pytest.mark.parametrize("documents", [7, 300, 1500])
def test_against_plain_loops(diff, monkeypatch, documents):
    monkeypatch.setattr(embed_diff, "ROWS", 128)
    make = numpy.random.default_rng(documents)
    a = make.normal(size=(documents, 24)).astype("f4")
    b = (a + 0.3 * make.normal(size=a.shape)).astype("f4")
    found = json.loads(diff(a, b, "--json", "--top-k", "5")[1])
    a, b = a.astype(float), b.astype(float)
    u, v = (rows / numpy.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, b))
    cosines = (u * v).sum(axis=1)
    assert found["cosine_min"] == pytest.approx(cosines.min(), abs=1e-12)
    assert found["cosine_mean"] == pytest.approx(cosines.mean(), abs=1e-12)
    assert found["max_abs_diff"] == numpy.abs(a - b).max()
    near = [[set([j for j in numpy.argsort(-(rows @ rows[i])) if j != i][:5]) for i in range(documents)]
            for rows in (u, v)]
    shared = numpy.mean([len(mine & yours) / 5 for mine, yours in zip(*near)])
    assert 0.2 < shared < 0.95 and found["top_k_overlap"] == pytest.approx(shared, abs=1e-12)


def test_the_same_and_the_scaled(diff):
    a = numpy.random.default_rng(0).normal(size=(40, 16)).astype("f4")
    a = numpy.tile(a[:10], (4, 1))  # every document four times: which of its copies are nearest is rounding only
    found = json.loads(diff(a, a, "--json")[1])
    assert (found["cosine_min"], found["cosine_mean"], found["max_abs_diff"], found["top_k_overlap"]) == (1, 1, 0, 1)
    noise = 1e-7 * numpy.random.default_rng(1).normal(size=(2, *a.shape))
    found = json.loads(diff(*(a * (1 + noise)).astype("f4"), "--json", "--top-k", "2")[1])
    assert found["top_k_overlap"] == 1 and 1 - found["cosine_min"] < 1e-12
    found = json.loads(diff(a, -a, "--json")[1])
    assert found["cosine_min"] == pytest.approx(-1, abs=1e-14) and found["top_k_overlap"] == 1


def test_text_and_few_documents(diff):
    code, out, err = diff(numpy.eye(2, dtype="f2"), numpy.eye(2, dtype="f8"))
    assert (code, err) == (0, "") and "shared among the 1 nearest neighbours: 100" in out
    code, out, _ = diff(numpy.ones((1, 4)), numpy.ones((1, 4)))
    assert code == 0 and "neighbours" not in out


FINE = numpy.ones((3, 4), "f4")
NAN = FINE.copy()
NAN[2, 1] = numpy.nan
INF = FINE.astype("f2")
INF[0, 0] = numpy.inf
ZERO = FINE.copy()
ZERO[1] = 0


def saved(array):
    """The bytes of a .npy file."""
    file = io.BytesIO()
    numpy.save(file, array, allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize("b, said", [
    (numpy.ones((3, 5), "f4"), "a.npy has shape (3, 4) and b.npy (3, 5)"),
    (numpy.ones((2, 4), "f4"), "same documents and the same model"),
    (numpy.ones(4, "f4"), "b.npy holds float32 of shape (4,)"),
    (numpy.ones((0, 4), "f4"), "b.npy holds"),
    (numpy.full((3, 4), "x"), "b.npy holds <U1"),
    (saved(numpy.full((3, 4), None)), "b.npy holds pickled objects, which are not loaded"),
    (saved(FINE)[:-5], "b.npy holds no whole array"),
    (saved(FINE)[:8], "b.npy holds no whole array"),
    (b"1,2,3\n", "file = 'b.npy' is not accepted: it is no .npy file"),
    (b"PK\x03\x04", "file = 'b.npy' is not accepted: it is no .npy file"),
    (b"", "file = 'b.npy' is not accepted: it is no .npy file"),
    (None, "file = 'b.npy' is not accepted: No such file or directory"),
    (NAN, "b.npy: row 2 (from 0) has NaN or infinity"),
    (INF, "b.npy: row 0 (from 0) has NaN or infinity"),
    (numpy.full((3, 4), -1e308), "b.npy: row 0 (from 0) has numbers beyond 1e+150"),
    *((b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(400), "b.npy holds no whole array")
      for head in (
        b"(" * 4000, b"-" * 9000 + b"1", b"{" * 100,
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (True, 8), }\n",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }\n")),
    (ZERO, "b.npy: row 1 (from 0) has only zeros"),
])
def test_what_is_refused(diff, b, said):
    code, out, err = diff(FINE, b)
    assert code == 2 and out == "" and err.count("\n") == 1
    assert err.startswith("tpmodel embed-diff: ") and said in err and len(err) < 400


@pytest.mark.parametrize("k", ["0", "-1", "many", "1.5", "1_0", "\u0661\u0662", "9" * 400])
def test_top_k(diff, k):
    code, _, err = diff(FINE, FINE, "--top-k", k)
    assert code == 2 and f"top-k = {shown(k)} is not accepted: it must be a whole number >= 1" in err
