"""Reports that have everything in them, also what an upstream might write to break out of a form."""

from __future__ import annotations

from typing import Any

from pactgate.conformance.check import check_capture
from pactgate.conformance.report import BaselineEntry, ComplianceReport, ReportFailure
from tests.conformance.captures import call, capture, failed, handshake

EVIL = "\x1b[31m\u202e<b>&\"'|`*]](x)\n\ud800\ufffe"
TOOL: dict[str, Any] = {"name": "search", "inputSchema": {"type": "object"}}


def good() -> ComplianceReport:
    return check_capture(capture(*handshake(), call(2, "tools/list", None, {"tools": []})))


def bad(**options: Any) -> ComplianceReport:
    """Two evil sessions: failures, advisories, hazards, something expected, something stale."""
    sessions = [
        capture(
            handshake()[0],
            call(2, "tools/list", None, {"tools": [TOOL, {**TOOL, "name": EVIL}]}),
            failed(3, EVIL, {"code": "x", "message": EVIL}),
            label=label,
        )
        for label in ("a" + EVIL, "b")
    ]
    expected = (BaselineEntry("INV-002", "b", "known"), BaselineEntry("INV-001"))
    return check_capture(sessions, baseline=expected, **options)


def unreadable() -> ComplianceReport:
    return ComplianceReport("x.json", error=ReportFailure("not_json", f"The capture is not JSON: {EVIL}"))
