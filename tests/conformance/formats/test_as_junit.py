"""The report as JUnit."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pactgate.conformance.formats.as_junit import as_junit
from pactgate.conformance.report import ComplianceReport
from pactgate.conformance.selection import BY_CODE
from tests.conformance.formats.samples import bad, good, unreadable


@pytest.mark.parametrize("report", [good(), bad(), bad(rules="all"), unreadable()])
def test_it_is_well_formed_and_its_counts_are_right(report: ComplianceReport) -> None:
    root = ElementTree.fromstring(as_junit(report))
    assert root.tag == "testsuites"
    for suite in root:
        assert suite.tag == "testsuite"
        for tag, attribute in (
            ("testcase", "tests"),
            ("failure", "failures"),
            ("error", "errors"),
            ("skipped", "skipped"),
        ):
            assert len(list(suite.iter(tag))) == int(suite.attrib[attribute])
        for case in suite:
            assert {"classname", "name"} <= case.attrib.keys()
    faults = [*root.iter("failure"), *root.iter("error")]
    assert bool(faults) is not report.passed


def test_a_failure_says_where_and_what_does_not_count_is_skipped() -> None:
    root = ElementTree.fromstring(as_junit(bad()))
    cases = {(suite.attrib["name"], case.attrib["name"]): case for suite in root for case in suite}
    failure = cases[("b", named("INV-006"))].find("failure")
    assert failure is not None
    assert "exchange 2 /response/error/code" in (failure.text or "")
    expected = cases[("b", named("INV-002"))].find("skipped")
    assert expected is not None
    assert "expected" in expected.attrib["message"]
    beside = cases[("b", named("GW-040"))].find("skipped")
    assert beside is not None
    assert "not counted" in beside.attrib["message"]


def named(code: str) -> str:
    return f"{code} {BY_CODE[code].title()}"


def test_the_name_of_a_passed_case_is_what_holds() -> None:
    cases = [case.attrib["name"] for case in ElementTree.fromstring(as_junit(good())).iter("testcase")]
    assert cases[0] == "INV-001 initialize is the first request the client sends."


def test_sessions_hazards_and_stale_entries_have_suites() -> None:
    names = [suite.attrib["name"] for suite in ElementTree.fromstring(as_junit(bad()))]
    assert names[1:] == ["b", "composition", "baseline"]
