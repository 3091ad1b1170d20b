"""The sentences that several formats share: how the run ended, and where a finding is."""

from __future__ import annotations

from pactgate.conformance.report import ComplianceReport, SessionReport
from pactgate.conformance.rule import CheckStatus, CompositionSeverity, Evidence, RuleResult


def verdict(report: ComplianceReport) -> str:
    return "PASSED" if report.passed else "FAILED"


def summary(report: ComplianceReport) -> str:
    """How the run ended, in one line."""
    if report.error is not None:
        return report.error.message
    if not report.sessions:
        return "The capture holds no session; nothing was checked."
    broken = [(session, result) for session in report.sessions for result in session.results if _is_broken(result)]
    failed = sum(report.counts(session, result) for session, result in broken)
    expected = sum(report.is_expected(session, result) for session, result in broken)
    parts = [
        f"{report.count(CheckStatus.PASS)} passed",
        f"{failed} failed",
        f"{report.count(CheckStatus.NOT_APPLICABLE)} not applicable",
    ]
    if errors := report.count(CheckStatus.ERROR):
        parts.append(_count(errors, "error"))
    if warnings := len(broken) - failed - expected:
        parts.append(_count(warnings, "warning"))
    if conflicts := sum(1 for _ in report.conflicts()):
        parts.append(_count(conflicts, "conflict"))
    if unjudged := report.count(CheckStatus.NOT_JUDGED):
        parts.append(f"{unjudged} not judged")
    if expected:
        parts.append(f"{expected} expected by the baseline")
    if report.stale:
        parts.append(f"{len(report.stale)} stale in the baseline")
    return "; ".join([", ".join(parts), *_more(report)]) + "."


def _more(report: ComplianceReport) -> list[str]:
    """What is said after the counts."""
    more = [_count(beside, "informational finding")] if (beside := _beside(report)) else []
    if out_of_scope := sum(len(session.out_of_scope) for session in report.sessions):
        more.append(f"{out_of_scope} rules of other transports or versions out of scope")
    if report.scores:
        more.append(f"score {report.scores[-1].percent} %")
    return more


def place(evidence: Evidence, session: SessionReport) -> str:
    """Where in the capture something is. A probe has several sessions; those after the first are named."""
    which = f"session {evidence.session} " if evidence.session != session.index else ""
    return f"{which}exchange {evidence.exchange} {evidence.pointer}".rstrip()


def _is_broken(result: RuleResult) -> bool:
    return result.status is CheckStatus.FAIL


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
    return f"{number} {what}{'s' * (number != 1)}"
