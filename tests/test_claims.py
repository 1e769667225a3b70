"""The claims: every recomputed row matches; a wrong formula would show."""

import pytest

from tpmodel.planner.evidence import article1
from tpmodel.planner.evidence.claims import claims, find, findings

ROWS = {finding.id: finding for finding in findings()}


@pytest.mark.parametrize("row", [c.id for c in claims() if c.role == "recompute" and ROWS[c.id].status != "open"])
def test_recomputed_rows_match(row):
    finding = ROWS[row]
    assert finding.status == "match", f"{row}: {finding.computed} against {finding.article} {finding.unit}"
    assert finding.verdict in ("holds", "loose", "wrong")
    assert finding.verdict == "holds" or finding.note


def test_inputs_are_shown_as_they_are():
    assert ROWS["a1.measured_mtp"].status == "input" and ROWS["a1.measured_mtp"].article == 30


def test_every_computed_and_judged_id_is_a_row():
    ids = {claim.id for claim in claims()}
    assert set(article1.COMPUTED) <= ids and set(article1.VERDICTS) <= ids


def test_a_row_off_by_more_than_its_tolerance_is_a_miss():
    from dataclasses import replace

    claim = next(c for c in claims() if c.id == "a1.comm_20us")
    assert find(replace(claim, value=2.6)).status == "miss"
