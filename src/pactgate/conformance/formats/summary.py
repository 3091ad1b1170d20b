"""The sentences that several formats share: how the run ended, and where a finding is."""

from __future__ import annotations

from pactgate.conformance.report import ComplianceReport
from pactgate.conformance.rule import CheckStatus, CompositionSeverity, Evidence, RuleResult


def verdict(report: ComplianceReport) -> str:
    return "PASSED" if report.passed else "FAILED"


def summary(report: ComplianceReport) -> str:
    """How the run ended, in one line."""
    if report.error is not None:
        return report.error.message
    if not report.sessions:
        return "The capture holds no session; nothing was checked."
    judged = report.count(CheckStatus.PASS) + report.count(CheckStatus.FAIL)
    failed = sum(1 for _ in report.failures())
    conflicts = sum(1 for _ in report.conflicts())
    parts = [f"{failed} of {judged} checks failed", _count(conflicts, "conflict")]
    if unjudged := report.count(CheckStatus.NOT_JUDGED):
        parts.append(f"{unjudged} not judged")
    if expected := sum(
        report.is_expected(session, result)
        for session in report.sessions
        for result in session.results
        if result.status is CheckStatus.FAIL
    ):
        parts.append(f"{expected} expected by the baseline")
    if report.stale:
        parts.append(f"{len(report.stale)} stale in the baseline")
    beside = _beside(report)
    return ", ".join(parts) + (f"; {_count(beside, 'informational finding')}." if beside else ".")


def place(evidence: Evidence) -> str:
    return f"exchange {evidence.exchange} {evidence.pointer}".rstrip()


def unjudged(results: tuple[RuleResult, ...]) -> dict[str, list[str]]:
    """The codes of rules that could not check, by the reason."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.status is CheckStatus.NOT_JUDGED:
            found.setdefault(result.message, []).append(result.code)
    return found


def _beside(report: ComplianceReport) -> int:
    results = sum(result.status is CheckStatus.FAIL for session in report.sessions for result in session.advisory)
    return results + sum(conflict.severity is not CompositionSeverity.INFO for conflict in report.advisory)


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'s' * (number != 1)}"
