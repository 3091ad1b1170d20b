"""How a run ended, in one line."""

from __future__ import annotations

from pactgate.conformance.check import check_capture
from pactgate.conformance.formats.summary import place, summary, unjudged, verdict
from pactgate.conformance.rule import Evidence
from tests.conformance.formats.samples import bad, good, unreadable


def test_the_line_counts_what_matters() -> None:
    assert summary(good()) == "0 of 4 checks failed, no conflicts."
    assert verdict(good()) == "PASSED"
    line = summary(bad())
    assert line.startswith("3 of 10 checks failed, 3 conflicts, 1 expected by the baseline, 1 stale in the baseline; ")
    assert line.endswith("4 informational findings.")
    assert verdict(bad()) == "FAILED"


def test_without_a_verdict_it_says_why() -> None:
    assert summary(unreadable()).startswith("The capture is not JSON")
    assert "no session" in summary(check_capture([]))


def test_what_could_not_be_judged_is_counted_and_grouped_by_reason() -> None:
    report = check_capture({"exchanges": [{"request": {"id": 1, "method": "x"}}]}, rules="GW-012,GW-013,GW-015")
    assert "3 not judged" in summary(report)
    assert sorted(map(len, unjudged(report.sessions[0].results).values())) == [1, 2]


def test_a_place_is_an_exchange_and_a_pointer() -> None:
    assert place(Evidence(3, "/request", "")) == "exchange 3 /request"
    assert place(Evidence(3, "", "")) == "exchange 3"
