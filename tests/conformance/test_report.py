"""What verdicts mean: what counts, what is only shown, what is expected, and the exit code."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.conformance.check import check_capture
from pactgate.conformance.report import BaselineEntry, ComplianceReport, ReportFailure
from pactgate.conformance.rule import CheckStatus
from tests.conformance.captures import call, capture, failed, handshake, request

GOOD = capture(*handshake(), call(2, "tools/list", None, {"tools": []}))
WITHOUT_INITIALIZED = capture(handshake()[0], call(2, "tools/list", None, {"tools": []}))
UNANSWERED = capture(*handshake(), {"request": request(2, "tools/list")})
RESERVED = capture(
    *handshake(), failed(2, "x", {"code": -32042, "message": "m"}), call(3, "tools/list", None, {"tools": []})
)


def passes(session: Any, **options: Any) -> bool:
    report = check_capture(session, **options)
    assert report.exit_code == (0 if report.passed else 1)
    return report.passed


@pytest.mark.requirement("S3/CLI")
def test_it_passes_only_when_every_invariant_holds_and_there_is_no_hazard() -> None:
    assert passes(GOOD)
    assert not passes(WITHOUT_INITIALIZED)
    assert not passes([GOOD, {**GOOD, "server_label": "other"}])
    assert passes([GOOD])


def test_our_own_rules_are_shown_beside_and_count_when_asked_for() -> None:
    report = check_capture(RESERVED)
    assert report.passed
    assert "GW-036" in {result.code for result in report.sessions[0].advisory if result.status is CheckStatus.FAIL}
    assert not {result.code for result in report.sessions[0].results if result.code.startswith("GW")}
    assert not passes(RESERVED, rules="gw")
    assert not passes(RESERVED, rules="all")
    assert passes(RESERVED, rules="inv")


def test_what_is_only_recommended_counts_when_asked_for() -> None:
    assert passes(UNANSWERED, rules="all")
    assert not passes(UNANSWERED, rules="all", fail_on="should")
    similar = [GOOD, {**capture(*handshake(id_=50), label="almanac")}]
    assert passes(similar, rules="all", fail_on="should"), "an info never counts"


def test_what_could_not_be_judged_counts_when_asked_for() -> None:
    assert passes(GOOD, rules="GW-015")
    assert not passes(GOOD, rules="GW-015", unjudged_fails=True)
    assert passes({**GOOD, "transport": "stdio"}, rules="GW-015", unjudged_fails=True)


def test_an_expected_failure_does_not_count() -> None:
    assert passes(WITHOUT_INITIALIZED, baseline=[BaselineEntry("INV-002")])
    assert passes(WITHOUT_INITIALIZED, baseline=[BaselineEntry("INV-002", "almanac")])
    assert not passes(WITHOUT_INITIALIZED, baseline=[BaselineEntry("INV-002", "another")])
    report = check_capture(WITHOUT_INITIALIZED, baseline=[BaselineEntry("INV-002")])
    assert report.is_expected(report.sessions[0], report.sessions[0].results[1])


def test_an_expectation_that_no_longer_fails_is_stale_and_fails_the_run() -> None:
    report = check_capture(GOOD, baseline=[BaselineEntry("INV-002")])
    assert [entry.code for entry in report.stale] == ["INV-002"]
    assert not report.passed


def test_an_expectation_that_can_not_be_checked_is_not_stale() -> None:
    assert passes(GOOD, baseline=[BaselineEntry("INV-006")]), "nothing to judge"
    assert passes(GOOD, rules="inv", baseline=[BaselineEntry("GW-001")]), "not run"
    assert passes(GOOD, rules="GW-015", baseline=[BaselineEntry("GW-015")]), "not judged"
    assert passes(GOOD, baseline=[BaselineEntry("COMP-001")]), "a single session"


def test_hazards_can_be_expected_and_their_expectation_be_stale() -> None:
    both = [GOOD, {**GOOD, "server_label": "other"}]
    assert passes(both, baseline=[BaselineEntry("COMP-002")])
    apart = [GOOD, capture(*handshake(id_=50), label="other")]
    assert not passes(apart, baseline=[BaselineEntry("COMP-002")])


def test_without_a_verdict_nothing_passed() -> None:
    report = ComplianceReport("x", error=ReportFailure("not_json", "The capture is not JSON."))
    assert (report.passed, report.exit_code) == (False, 1)


def test_verdicts_are_counted_by_their_status() -> None:
    report = check_capture(WITHOUT_INITIALIZED, rules="inv")
    assert [report.count(status) for status in CheckStatus] == [3, 1, 3, 0, 0]
