"""The report for programs, version 1. Members are only ever added.

`{schema_version, passed, source, sessions: [{server_label, era, protocol_version, exchanges, results, advisory, out_of_scope}],
composition: {findings, advisory}, stale, summary, scores?, error?}`; a result has `id, rule, category, level, status, message, evidence:
[{exchange, pointer, message, level, session}], count, notes, expected, url`; a finding `id, kind, subject, servers, severity, message`.
What is in `results`
and `findings` decides `passed`; `advisory` is shown beside it.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import to_builtins

from pactgate.conformance.formats.summary import summary
from pactgate.conformance.report import SCHEMA_VERSION, ComplianceReport, SessionReport
from pactgate.conformance.rule import RuleResult
from pactgate.conformance.selection import rule_of


def as_json(report: ComplianceReport) -> str:
    """ASCII only, so that no terminal can be moved by it."""
    return json.dumps(as_dict(report), indent=2) + "\n"


def as_dict(report: ComplianceReport) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "passed": report.passed,
        "source": report.source,
        "sessions": [_session(report, session) for session in report.sessions],
        "composition": {"findings": to_builtins(report.findings), "advisory": to_builtins(report.advisory)},
        "stale": [{"rule_id": entry.code, "server_label": entry.label} for entry in report.stale],
        "summary": summary(report),
    }
    if report.scores:
        document["scores"] = [{**to_builtins(score), "percent": score.percent} for score in report.scores]
    if report.error is not None:
        document["error"] = to_builtins(report.error)
    return document


def _session(report: ComplianceReport, session: SessionReport) -> dict[str, Any]:
    def results(results: tuple[RuleResult, ...]) -> list[dict[str, Any]]:
        return [
            {
                **to_builtins(result),
                "expected": report.is_expected(session, result),
                "url": rule_of(result.code).url(),
            }
            for result in results
        ]

    return {
        "server_label": session.label,
        "era": session.era,
        "protocol_version": session.protocol_version,
        "exchanges": session.exchange_count,
        "results": results(session.results),
        "advisory": results(session.advisory),
        "out_of_scope": list(session.out_of_scope),
    }
