"""The report for programs, version 1. Members are only ever added.

`{schema_version, passed, source, sessions: [{server_label, era, protocol_version, exchanges, results, advisory}], composition:
{findings, advisory}, stale, summary, error?}`; a result has `id, rule, category, level, status, message, evidence: [{exchange,
pointer, message, level}], count, notes, expected`; a finding `id, kind, subject, servers, severity, message`. What is in `results`
and `findings` decides `passed`; `advisory` is shown beside it.
"""

from __future__ import annotations

import json
from typing import Any

from pactgate.conformance.formats.summary import summary
from pactgate.conformance.report import SCHEMA_VERSION, ComplianceReport, SessionReport
from pactgate.conformance.rule import CompositionConflict, RuleResult


def as_json(report: ComplianceReport) -> str:
    """ASCII only, so that no terminal can be moved by it."""
    return json.dumps(as_dict(report), indent=2) + "\n"


def as_dict(report: ComplianceReport) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "passed": report.passed,
        "source": report.source,
        "sessions": [_session(report, session) for session in report.sessions],
        "composition": {
            "findings": [_conflict(conflict) for conflict in report.findings],
            "advisory": [_conflict(conflict) for conflict in report.advisory],
        },
        "stale": [{"rule_id": entry.code, "server_label": entry.label} for entry in report.stale],
        "summary": summary(report),
    }
    if report.error is not None:
        document["error"] = {"kind": report.error.kind, "message": report.error.message}
    return document


def _session(report: ComplianceReport, session: SessionReport) -> dict[str, Any]:
    return {
        "server_label": session.label,
        "era": session.era,
        "protocol_version": session.protocol_version,
        "exchanges": session.exchange_count,
        "results": [_result(report, session, result) for result in session.results],
        "advisory": [_result(report, session, result) for result in session.advisory],
    }


def _result(report: ComplianceReport, session: SessionReport, result: RuleResult) -> dict[str, Any]:
    return {
        "id": result.code,
        "rule": result.slug,
        "category": result.category,
        "level": result.level.value,
        "status": result.status.value,
        "message": result.message,
        "evidence": [
            {"exchange": e.exchange, "pointer": e.pointer, "message": e.message, "level": e.level.value}
            for e in result.evidence
        ],
        "count": result.count,
        "notes": list(result.notes),
        "expected": report.is_expected(session, result),
    }


def _conflict(conflict: CompositionConflict) -> dict[str, Any]:
    return {
        "id": conflict.code,
        "kind": conflict.kind,
        "subject": conflict.subject,
        "servers": list(conflict.servers),
        "severity": conflict.severity.value,
        "message": conflict.message,
    }
