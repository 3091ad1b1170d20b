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
from pactgate.conformance.report import SCHEMA_VERSION, Report, SessionReport
from pactgate.conformance.rule import Hazard, Result


def as_json(report: Report) -> str:
    """ASCII only, so that no terminal can be moved by it."""
    return json.dumps(as_dict(report), indent=2) + "\n"


def as_dict(report: Report) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "passed": report.passed,
        "source": report.source,
        "sessions": [_session(report, session) for session in report.sessions],
        "composition": {
            "findings": [_hazard(hazard) for hazard in report.findings],
            "advisory": [_hazard(hazard) for hazard in report.advisory],
        },
        "stale": [{"rule_id": entry.code, "server_label": entry.label} for entry in report.stale],
        "summary": summary(report),
    }
    if report.error is not None:
        document["error"] = {"kind": report.error.kind, "message": report.error.message}
    return document


def _session(report: Report, session: SessionReport) -> dict[str, Any]:
    return {
        "server_label": session.label,
        "era": session.era,
        "protocol_version": session.protocol_version,
        "exchanges": session.exchange_count,
        "results": [_result(report, session, result) for result in session.results],
        "advisory": [_result(report, session, result) for result in session.advisory],
    }


def _result(report: Report, session: SessionReport, result: Result) -> dict[str, Any]:
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


def _hazard(hazard: Hazard) -> dict[str, Any]:
    return {
        "id": hazard.code,
        "kind": hazard.kind,
        "subject": hazard.subject,
        "servers": list(hazard.servers),
        "severity": hazard.severity.value,
        "message": hazard.message,
    }
