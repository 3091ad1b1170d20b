"""The report of a run: what passed, which failures count, and the exit code. `formats` only renders it.

Results of the deciding rules are in `results` and `findings`, informational ones in `advisory`. A failure that the baseline expects does
not count; an entry of the baseline that no longer fails does. Must not: write anything, or read files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pactgate.conformance.rule import (
    SHOWN_EVIDENCE,
    CheckStatus,
    CompositionConflict,
    CompositionSeverity,
    RequirementLevel,
    RuleResult,
)

SCHEMA_VERSION: Final = 1
_GRAVITY: Final = (
    CheckStatus.ERROR,
    CheckStatus.FAIL,
    CheckStatus.PASS,
    CheckStatus.NOT_JUDGED,
    CheckStatus.NOT_APPLICABLE,
)
_LEVELS: Final = tuple(RequirementLevel)


class BaselineEntry(Struct, frozen=True):
    """A rule that is known to fail, for every server or for one."""

    code: str
    label: str | None = None
    reason: str | None = None
    tracking: str | None = None

    def is_about(self, code: str, *labels: str) -> bool:
        return self.code == code and self.label in (None, *labels)


class ReportFailure(Struct, frozen=True):
    """Why the capture could not be checked."""

    kind: str
    message: str


class SessionReport(Struct, frozen=True):
    """One session and the result of every rule for it: `advisory` are those of rules that do not decide."""

    label: str
    era: str
    protocol_version: str | None
    exchange_count: int
    results: tuple[RuleResult, ...]
    advisory: tuple[RuleResult, ...]
    out_of_scope: tuple[str, ...] = ()
    """The rules for another transport or other revisions than those that a probe was for. They have no result."""
    index: int = 0
    """The position of the session in the capture; of several that a probe had, the first."""


class Score(Struct, frozen=True):
    """How many of the checks passed that could be asked, of one group or of all."""

    label: str
    passed: int
    asked: int

    @property
    def percent(self) -> int:
        return round(100 * self.passed / self.asked) if self.asked else 0


class ComplianceReport(Struct, frozen=True):
    """One run over one capture. `source` is its name as it was given, `location` the file that findings are shown at, if another."""

    source: str
    sessions: tuple[SessionReport, ...] = ()
    findings: tuple[CompositionConflict, ...] = ()
    advisory: tuple[CompositionConflict, ...] = ()
    rules: tuple[str, ...] = ()
    deciding: frozenset[str] = frozenset()
    fail_on: RequirementLevel = RequirementLevel.MUST
    unjudged_fails: bool = False
    baseline: tuple[BaselineEntry, ...] = ()
    error: ReportFailure | None = None
    location: str | None = None
    scores: tuple[Score, ...] = ()
    """Of a run of the gateway profile: one for each family, the last for all."""

    @property
    def passed(self) -> bool:
        if self.error is not None or self.stale:
            return False
        return not any(True for _ in self.failures()) and not any(True for _ in self.conflicts())

    @property
    def exit_code(self) -> int:
        return 0 if self.passed else 1

    def failures(self) -> Iterator[tuple[SessionReport, RuleResult]]:
        """The results that count against a session."""
        for session in self.sessions:
            yield from ((session, result) for result in session.results if self.counts(session, result))

    def conflicts(self) -> Iterator[CompositionConflict]:
        """The conflicts between servers that count."""
        for conflict in self.findings:
            level = (
                RequirementLevel.MUST if conflict.severity is CompositionSeverity.CONFLICT else RequirementLevel.SHOULD
            )
            is_counted = conflict.severity is not CompositionSeverity.INFO and self._reaches(level)
            if is_counted and not self._is_known(conflict.code, *conflict.servers):
                yield conflict

    def counts(self, session: SessionReport, result: RuleResult) -> bool:
        if result.status is CheckStatus.NOT_JUDGED:
            return self.unjudged_fails
        if result.status is CheckStatus.ERROR:
            return True
        is_failure = result.status is CheckStatus.FAIL and self._reaches(result.level)
        return is_failure and not self.is_expected(session, result)

    def is_expected(self, session: SessionReport, result: RuleResult) -> bool:
        return self._is_known(result.code, session.label)

    @property
    def stale(self) -> tuple[BaselineEntry, ...]:
        """Entries of the baseline whose rule ran, had something to check, and did not fail."""
        return tuple(entry for entry in self.baseline if entry.code in self.rules and self._is_stale(entry))

    def count(self, status: CheckStatus) -> int:
        """How many results of the deciding rules have this status."""
        return sum(result.status is status for session in self.sessions for result in session.results)

    def _is_stale(self, entry: BaselineEntry) -> bool:
        statuses = [
            result.status
            for session in self.sessions
            for result in (*session.results, *session.advisory)
            if entry.is_about(result.code, session.label)
        ]
        if statuses:
            return CheckStatus.FAIL not in statuses and CheckStatus.PASS in statuses
        has_conflict = any(entry.is_about(h.code, *h.servers) for h in (*self.findings, *self.advisory))
        return not has_conflict and len(self.sessions) > 1

    def _is_known(self, code: str, *labels: str) -> bool:
        return any(entry.is_about(code, *labels) for entry in self.baseline)

    def _reaches(self, level: RequirementLevel) -> bool:
        order = list(RequirementLevel)
        return order.index(level) <= order.index(self.fail_on)


def merged(one: SessionReport, other: SessionReport) -> SessionReport:
    """The report of two sessions of the same probe."""
    return replace(
        one,
        exchange_count=one.exchange_count + other.exchange_count,
        results=_merged_results(one.results, other.results),
        advisory=_merged_results(one.advisory, other.advisory),
        out_of_scope=tuple(code for code in one.out_of_scope if code in other.out_of_scope),
    )


def within_scope(report: SessionReport) -> SessionReport:
    """The report without the results of rules that are out of scope."""
    results, advisory = (
        tuple(result for result in results if result.code not in report.out_of_scope)
        for results in (report.results, report.advisory)
    )
    return replace(report, results=results, advisory=advisory)


def _merged_results(one: tuple[RuleResult, ...], other: tuple[RuleResult, ...]) -> tuple[RuleResult, ...]:
    return tuple(_merged_result(*pair) for pair in zip(one, other, strict=True))


def _merged_result(one: RuleResult, other: RuleResult) -> RuleResult:
    """The graver of two results of one rule, with the evidence of both."""
    graver = min(one, other, key=lambda result: (_GRAVITY.index(result.status), _LEVELS.index(result.level)))
    return replace(
        graver,
        evidence=(one.evidence + other.evidence)[:SHOWN_EVIDENCE],
        count=one.count + other.count,
        notes=tuple(dict.fromkeys(one.notes + other.notes)),
    )
