"""The report for programs, version 1."""

from __future__ import annotations

import json

import pytest

from pactgate.conformance.formats.as_json import as_json
from tests.conformance.formats.samples import bad, good, unreadable


@pytest.mark.requirement("S3/CLI")
def test_the_report_has_the_members_of_version_1() -> None:
    report = json.loads(as_json(good()))
    assert report["schema_version"] == 1
    assert report["passed"] is True
    (session,) = report["sessions"]
    assert (session["server_label"], session["era"], session["exchanges"]) == ("almanac", "legacy", 3)
    assert [result["id"] for result in session["results"]] == [f"INV-00{number}" for number in range(1, 8)]
    first = session["results"][0]
    assert {"id", "category", "status", "message", "evidence"} <= first.keys()
    assert (first["category"], first["status"], first["evidence"]) == ("lifecycle", "pass", [])
    assert report["composition"]["findings"] == []
    assert "error" not in report


def test_findings_have_their_evidence_and_hazards_their_servers() -> None:
    report = json.loads(as_json(bad()))
    assert report["passed"] is False
    by_id = {result["id"]: result for result in report["sessions"][1]["results"]}
    assert by_id["INV-006"]["evidence"] == [
        {
            "exchange": 2,
            "pointer": "/response/error/code",
            "message": 'The code of the error is "x", not an integer.',
            "level": "must",
            "session": 1,
        }
    ]
    assert by_id["INV-002"]["expected"] is True
    assert report["stale"] == [{"rule_id": "INV-001", "server_label": None}]
    kinds = {finding["kind"]: finding for finding in report["composition"]["findings"]}
    assert kinds.keys() == {"tool_namespace_overlap", "request_id_collision"}
    assert kinds["request_id_collision"]["severity"] == "hazard"
    assert len(kinds["tool_namespace_overlap"]["servers"]) == 2


def test_what_does_not_decide_stands_apart() -> None:
    beside = json.loads(as_json(bad()))
    assert {result["id"].partition("-")[0] for result in beside["sessions"][0]["advisory"]} == {"GW", "LINT"}
    together = json.loads(as_json(bad(rules="all")))
    assert together["sessions"][0]["advisory"] == []
    assert together["composition"]["advisory"] == []


def test_an_unreadable_capture_has_an_error() -> None:
    report = json.loads(as_json(unreadable()))
    assert (report["passed"], report["sessions"], report["error"]["kind"]) == (False, [], "not_json")


def test_it_is_ascii() -> None:
    assert as_json(bad()).isascii()
