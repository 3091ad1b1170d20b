"""The sentences that several forms share: how it ended, and where a finding lies.

Must not: know any form.
"""

from __future__ import annotations

from pactgate.conformance.report import Report
from pactgate.conformance.rule import Evidence, Result, Severity, Status


def verdict(report: Report) -> str:
    return "PASSED" if report.passed else "FAILED"


def summary(report: Report) -> str:
    """How the run ended, in one line."""
    if report.error is not None:
        return report.error.message
    if not report.sessions:
        return "The capture holds no session; nothing was judged."
    judged = report.count(Status.PASS) + report.count(Status.FAIL)
    failed = sum(1 for _ in report.failures())
    hazards = sum(1 for _ in report.hazards())
    parts = [f"{failed} of {judged} verdicts failed", _count(hazards, "hazard")]
    if unjudged := report.count(Status.NOT_JUDGED):
        parts.append(f"{unjudged} not judged")
    if expected := sum(
        report.is_expected(session, result)
        for session in report.sessions
        for result in session.results
        if result.status is Status.FAIL
    ):
        parts.append(f"{expected} expected by the baseline")
    if report.stale:
        parts.append(f"{len(report.stale)} stale in the baseline")
    beside = _beside(report)
    return ", ".join(parts) + (f"; {_count(beside, 'further finding')} beside, not counted." if beside else ".")


def place(evidence: Evidence) -> str:
    return f"exchange {evidence.exchange} {evidence.pointer}".rstrip()


def unjudged(results: tuple[Result, ...]) -> dict[str, list[str]]:
    """The codes of rules that could not judge, by the reason."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.status is Status.NOT_JUDGED:
            found.setdefault(result.message, []).append(result.code)
    return found


def _beside(report: Report) -> int:
    results = sum(result.status is Status.FAIL for session in report.sessions for result in session.advisory)
    return results + sum(hazard.severity is not Severity.INFO for hazard in report.advisory)


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'s' * (number != 1)}"
