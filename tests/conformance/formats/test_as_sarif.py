"""The report as SARIF 2.1.0."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.conformance.formats.as_sarif import as_sarif
from pactgate.conformance.report import ComplianceReport
from tests.conformance.formats.samples import bad, good, unreadable

# The parts of the SARIF 2.1.0 schema that this form uses, with its closed objects.
SHAPE: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription", "fullDescription", "help"],
                                            "properties": {
                                                "defaultConfiguration": {
                                                    "properties": {
                                                        "level": {"enum": ["none", "note", "warning", "error"]}
                                                    }
                                                }
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {
                            "required": ["executionSuccessful"],
                            "properties": {"executionSuccessful": {"type": "boolean"}},
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "ruleIndex", "message", "level", "locations", "partialFingerprints"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"required": ["text"]},
                                "locations": {
                                    "minItems": 1,
                                    "items": {
                                        "required": ["physicalLocation", "logicalLocations"],
                                        "properties": {
                                            "physicalLocation": {
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "region": {"properties": {"startLine": {"minimum": 1}}},
                                                    "artifactLocation": {
                                                        "properties": {"uri": {"pattern": "^[!-~]+$"}}
                                                    },
                                                },
                                            }
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


@pytest.mark.parametrize("report", [good(), bad(), bad(rules="all"), unreadable()])
def test_it_has_the_shape_of_sarif(report: ComplianceReport) -> None:
    import jsonschema

    document = json.loads(as_sarif(report))
    jsonschema.Draft202012Validator(SHAPE).validate(document)
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    json.dumps(document, ensure_ascii=False).encode()


def levels(report: ComplianceReport) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for result in json.loads(as_sarif(report))["runs"][0]["results"]:
        found.setdefault(result["ruleId"], set()).add(result["level"])
    return found


def test_a_must_is_an_error_and_what_does_not_count_a_note() -> None:
    beside, together = levels(bad()), levels(bad(rules="all"))
    assert beside["INV-006"] == {"error"}
    assert beside["GW-040"] == {"note"}
    assert together["GW-040"] == {"warning"}
    assert beside["COMP-001"] == {"error"}


def test_a_place_is_the_capture_or_the_file_that_is_named() -> None:
    for report, uri in ((bad(), "%28value%29"), (replace(bad(), location="src/my server.py"), "src/my%20server.py")):
        results = json.loads(as_sarif(report))["runs"][0]["results"]
        places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
        assert set(places) == {uri}


def test_a_rule_has_the_address_of_its_section() -> None:
    rules = {rule["id"]: rule for rule in json.loads(as_sarif(good()))["runs"][0]["tool"]["driver"]["rules"]}
    assert rules["INV-006"]["helpUri"].endswith("/basic#responses")
    assert "helpUri" not in rules["GW-107"]


def test_what_the_baseline_expects_is_suppressed() -> None:
    results = json.loads(as_sarif(bad()))["runs"][0]["results"]
    suppressed = [result for result in results if "suppressions" in result]
    assert {result["ruleId"] for result in suppressed} == {"INV-002"}


def test_fingerprints_are_different_and_stay_the_same() -> None:
    prints = [
        [result["partialFingerprints"]["pactgate/v1"] for result in json.loads(as_sarif(bad()))["runs"][0]["results"]]
        for _ in range(2)
    ]
    assert prints[0] == prints[1]
    assert len(set(prints[0])) == len(prints[0])


def test_stale_entries_and_unreadable_captures_are_notified() -> None:
    for report, words in ((bad(), "Stale"), (unreadable(), "not JSON")):
        (notice, *_) = json.loads(as_sarif(report))["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        assert words in notice["message"]["text"]
