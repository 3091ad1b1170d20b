"""What the verdicts of a run mean: what passed, what counts, the exit code. The formats only write this down.

Rules that decide are in `results` and `findings`; those shown beside them are in `advisory`. A failure that the baseline
expects does not count; an expectation that no longer fails does.
Must not: write anything, or read files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from pactgate.conformance.rule import Hazard, Level, Result, Severity, Status
from pactgate.conformance.runner import SessionVerdict, Verdict
from pactgate.conformance.selection import Selection

SCHEMA_VERSION: Final = 1


class Policy(Struct, frozen=True):
    """What counts: from which level on, and whether what could not be judged does."""

    fail_on: Level = Level.MUST
    unjudged_fails: bool = False


class Expected(Struct, frozen=True):
    """One entry of a baseline: a rule that is known to fail, everywhere or for one server."""

    code: str
    label: str | None = None
    reason: str | None = None
    tracking: str | None = None


class Problem(Struct, frozen=True):
    """Why there is no verdict."""

    kind: str
    message: str


class SessionReport(Struct, frozen=True):
    label: str
    era: str
    protocol_version: str | None
    exchange_count: int
    results: tuple[Result, ...]
    advisory: tuple[Result, ...]


class Report(Struct, frozen=True):
    """One run over one capture. `source` is its name as it was given."""

    source: str
    sessions: tuple[SessionReport, ...] = ()
    findings: tuple[Hazard, ...] = ()
    advisory: tuple[Hazard, ...] = ()
    rules: tuple[str, ...] = ()
    deciding: frozenset[str] = frozenset()
    policy: Policy = Policy()
    baseline: tuple[Expected, ...] = ()
    error: Problem | None = None

    @property
    def passed(self) -> bool:
        if self.error is not None or self.stale:
            return False
        return not any(True for _ in self.failures()) and not any(True for _ in self.hazards())

    @property
    def exit_code(self) -> int:
        return 0 if self.passed else 1

    def failures(self) -> Iterator[tuple[SessionReport, Result]]:
        """What counts against a session."""
        for session in self.sessions:
            yield from ((session, result) for result in session.results if self.counts(session, result))

    def hazards(self) -> Iterator[Hazard]:
        """What counts between sessions."""
        for hazard in self.findings:
            level = Level.MUST if hazard.severity is Severity.HAZARD else Level.SHOULD
            is_counted = hazard.severity is not Severity.INFO and self._reaches(level)
            if is_counted and not any(
                self._expects(entry, hazard.code, label) for entry in self.baseline for label in hazard.servers
            ):
                yield hazard

    def counts(self, session: SessionReport, result: Result) -> bool:
        if result.status is Status.NOT_JUDGED:
            return self.policy.unjudged_fails
        is_failure = result.status is Status.FAIL and self._reaches(result.level)
        return is_failure and not self.is_expected(session, result)

    def is_expected(self, session: SessionReport, result: Result) -> bool:
        return any(self._expects(entry, result.code, session.label) for entry in self.baseline)

    @property
    def stale(self) -> tuple[Expected, ...]:
        """Expectations of failures that did not happen, of rules that were run and had something to judge."""
        return tuple(entry for entry in self.baseline if entry.code in self.rules and self._is_stale(entry))

    def count(self, status: Status) -> int:
        """How many verdicts of the deciding rules have this status."""
        return sum(result.status is status for session in self.sessions for result in session.results)

    def _is_stale(self, entry: Expected) -> bool:
        statuses = [
            result.status
            for session in self.sessions
            if entry.label in (None, session.label)
            for result in (*session.results, *session.advisory)
            if result.code == entry.code
        ]
        hazards = [h for h in (*self.findings, *self.advisory) if self._about(h, entry)]
        if statuses:
            return Status.FAIL not in statuses and Status.PASS in statuses
        return not hazards and len(self.sessions) > 1

    @staticmethod
    def _about(hazard: Hazard, entry: Expected) -> bool:
        return hazard.code == entry.code and (entry.label is None or entry.label in hazard.servers)

    @staticmethod
    def _expects(entry: Expected, code: str, label: str) -> bool:
        return entry.code == code and entry.label in (None, label)

    def _reaches(self, level: Level) -> bool:
        return level is Level.MUST or self.policy.fail_on is Level.SHOULD


def build(
    source: str, verdict: Verdict, selection: Selection, policy: Policy, baseline: tuple[Expected, ...] = ()
) -> Report:
    return Report(
        source=source,
        sessions=tuple(_session(session, selection.deciding) for session in verdict.sessions),
        findings=tuple(hazard for hazard in verdict.hazards if hazard.code in selection.deciding),
        advisory=tuple(hazard for hazard in verdict.hazards if hazard.code not in selection.deciding),
        rules=tuple(rule.code for rule in selection.rules),
        deciding=selection.deciding,
        policy=policy,
        baseline=baseline,
    )


def _session(verdict: SessionVerdict, deciding: frozenset[str]) -> SessionReport:
    def of(wanted: Callable[[Result], bool]) -> tuple[Result, ...]:
        return tuple(filter(wanted, verdict.results))

    return SessionReport(
        label=verdict.label,
        era=verdict.era,
        protocol_version=verdict.protocol_version,
        exchange_count=verdict.exchange_count,
        results=of(lambda result: result.code in deciding),
        advisory=of(lambda result: result.code not in deciding),
    )
