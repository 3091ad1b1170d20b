"""The report as workflow commands of GitHub Actions: each finding becomes an annotation of the pull request, without an upload.

What counts is an error; a breach that does not count is a warning if it is one of a MUST or SHOULD, else a notice. GitHub shows ten of
each kind per step. The last line is the verdict, for people who read the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pactgate.conformance.formats.summary import place, summary, verdict
from pactgate.conformance.report import ComplianceReport, SessionReport
from pactgate.conformance.rule import CheckStatus, CompositionSeverity, RequirementLevel, RuleResult
from pactgate.conformance.selection import rule_of
from pactgate.core.display import flat, visible

_SHOWN_PLACES: Final = 5
_LINE_CHARS: Final = 1000


def as_github(report: ComplianceReport) -> str:
    return "\n".join([*_lines(report), ""])


def _lines(report: ComplianceReport) -> Iterator[str]:
    if report.error is not None:
        yield _command("error", report, "The capture can't be checked", report.error.message)
    for session in report.sessions:
        for result in (*session.results, *session.advisory):
            if result.status is CheckStatus.FAIL or report.counts(session, result):
                yield _annotation(report, session, result)
    counted = set(map(id, report.conflicts()))
    for conflict in (*report.findings, *report.advisory):
        if conflict.severity is not CompositionSeverity.INFO:
            kind = "error" if id(conflict) in counted else "warning"
            servers = ", ".join(conflict.servers)
            yield _command(kind, report, f"{conflict.code} {conflict.kind}", f"{conflict.message} ({servers})")
    for entry in report.stale:
        yield _command("error", report, f"{entry.code} stale", f"{entry.code} is in the baseline, but did not fail.")
    yield f"{verdict(report)}: {flat(summary(report), _LINE_CHARS)}"


def _annotation(report: ComplianceReport, session: SessionReport, result: RuleResult) -> str:
    kind = "notice" if result.level is RequirementLevel.ADVICE else "warning"
    if result.code in report.deciding and report.counts(session, result):
        kind = "error"
    rule = rule_of(result.code)
    places = [f"{place(evidence, session)}: {evidence.message}" for evidence in result.evidence[:_SHOWN_PLACES]]
    lines = [f"{session.label}: {result.message}", *places, f"The rule: {rule.title()} {rule.url() or ''}"]
    return _command(kind, report, f"{result.code} {result.slug}", "\n".join(line.rstrip() for line in lines))


def _command(kind: str, report: ComplianceReport, title: str, text: str) -> str:
    """One workflow command. Nothing in it can end it or begin another one."""
    file = _property(report.location or report.source)
    return f"::{kind} file={file},line=1,title={_property(title)}::{_data(text)}"


def _data(text: str) -> str:
    lines = (visible(line) for line in text.split("\n"))
    return "\n".join(lines).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(flat(text, _LINE_CHARS)).replace(":", "%3A").replace(",", "%2C")
