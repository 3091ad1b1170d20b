"""How a run ended, in one line."""

from __future__ import annotations

from pactgate.conformance.check import check_capture
from pactgate.conformance.formats.summary import place, summary, unjudged, verdict
from pactgate.conformance.rule import Evidence
from tests.conformance.formats.samples import bad, good, unreadable


def test_the_line_counts_what_matters() -> None:
    assert summary(good()) == "4 passed, 0 failed, 3 not applicable."
    assert verdict(good()) == "PASSED"
    line = summary(bad())
    assert line.startswith(
        "6 passed, 3 failed, 4 not applicable, 3 conflicts, 1 expected by the baseline, 1 stale in the baseline; "
    )
    assert line.endswith("8 informational findings.")
    assert verdict(bad()) == "FAILED"


def test_without_a_verdict_it_says_why() -> None:
    assert summary(unreadable()).startswith("The capture is not JSON")
    assert "no session" in summary(check_capture([]))


def test_what_could_not_be_judged_is_counted_and_grouped_by_reason() -> None:
    report = check_capture({"exchanges": [{"request": {"id": 1, "method": "x"}}]}, rules="GW-012,GW-013,GW-015")
    assert "3 not judged" in summary(report)
    assert sorted(map(len, unjudged(report.sessions[0].results).values())) == [1, 2]


def test_a_place_is_an_exchange_and_a_pointer() -> None:
    session = good().sessions[0]
    assert place(Evidence(3, "/request", ""), session) == "exchange 3 /request"
    assert place(Evidence(3, "", ""), session) == "exchange 3"
    assert place(Evidence(3, "", "", session=1), session) == "session 1 exchange 3", "a later session of a probe"


def test_a_breach_that_does_not_count_is_a_warning() -> None:
    unanswered = {"exchanges": [{"request": {"jsonrpc": "2.0", "id": 1, "method": "x"}}]}
    assert summary(check_capture(unanswered, rules="GW-006")) == "0 passed, 0 failed, 0 not applicable, 1 warning."
    assert summary(check_capture(unanswered, rules="GW-006", fail_on="should")).startswith("0 passed, 1 failed,")
