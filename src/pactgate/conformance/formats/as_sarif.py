"""The report as SARIF 2.1.0, for code scanning. A MUST is an error, a SHOULD a warning; what does not count is a note.

There is no line to point at. A place is a file, which is the capture, or for a live server a file of its repository, and a logical
location inside the capture.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from pactgate import __version__
from pactgate.conformance.report import ComplianceReport, SessionReport
from pactgate.conformance.rule import (
    CheckStatus,
    CompositionConflict,
    CompositionSeverity,
    Evidence,
    RequirementLevel,
    Rule,
    RuleResult,
)
from pactgate.conformance.selection import rule_of

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {RequirementLevel.MUST: "error", RequirementLevel.SHOULD: "warning", RequirementLevel.ADVICE: "note"}
_SEVERITIES: Final = {
    CompositionSeverity.CONFLICT: "error",
    CompositionSeverity.WARNING: "warning",
    CompositionSeverity.INFO: "note",
}


def as_sarif(report: ComplianceReport) -> str:
    results = [
        _result(report, session, result, evidence)
        for session in report.sessions
        for result in (*session.results, *session.advisory)
        if result.status is CheckStatus.FAIL
        for evidence in result.evidence
    ]
    results += [_conflict(report, conflict) for conflict in (*report.findings, *report.advisory)]
    run: dict[str, Any] = {
        "tool": {
            "driver": {"name": "pactgate", "version": __version__, "rules": [_rule(rule_of(c)) for c in report.rules]}
        },
        "invocations": [_invocation(report)],
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: type[Rule]) -> dict[str, Any]:
    sections, url = rule.sections(), rule.url()
    return {
        "id": rule.code,
        "name": rule.__name__,
        "shortDescription": {"text": rule.title()},
        "fullDescription": {"text": sections["What it checks"]},
        **({"helpUri": url} if url is not None else {}),
        "help": {"text": f"{sections['Why']}\n\n{sections['How to fix']}\n\n{sections['Reference']}"},
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
        "properties": {"category": rule.category},
    }


def _invocation(report: ComplianceReport) -> dict[str, Any]:
    invocation: dict[str, Any] = {"executionSuccessful": report.error is None}
    texts = [_encodable(report.error.message)] if report.error is not None else []
    texts += [f"Stale in the baseline: {entry.code} did not fail." for entry in report.stale]
    if texts:
        invocation["toolExecutionNotifications"] = [{"level": "error", "message": {"text": text}} for text in texts]
    return invocation


def _result(report: ComplianceReport, session: SessionReport, result: RuleResult, evidence: Evidence) -> dict[str, Any]:
    is_expected = report.is_expected(session, result)
    is_counted = result.code in report.deciding and not is_expected
    where = f"/{evidence.session}/exchanges/{evidence.exchange}{evidence.pointer}"
    entry = _entry(report, result.code, evidence.message, where, session.label)
    entry["level"] = _LEVELS[evidence.level] if is_counted else "note"
    if is_expected:
        entry["suppressions"] = [{"kind": "external", "justification": "The baseline expects it."}]
    return entry


def _conflict(report: ComplianceReport, conflict: CompositionConflict) -> dict[str, Any]:
    servers = ", ".join(conflict.servers)
    where = f"/composition/{conflict.kind}/{conflict.subject}"
    entry = _entry(report, conflict.code, f"{conflict.message} ({servers})", where, servers)
    entry["level"] = _SEVERITIES[conflict.severity] if conflict.code in report.deciding else "note"
    return entry


def _entry(report: ComplianceReport, code: str, message: str, where: str, owner: str) -> dict[str, Any]:
    # No half surrogates: they have no bytes, and a reader would refuse the whole file.
    text, where, owner = (_encodable(part) for part in (message, where, owner))
    fingerprint = sha256("\n".join((code, owner, where)).encode()).hexdigest()
    return {
        "ruleId": code,
        "ruleIndex": report.rules.index(code),
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(_encodable(report.location or report.source))},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": where, "name": owner}],
            }
        ],
        "partialFingerprints": {"pactgate/v1": fingerprint},
    }


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
