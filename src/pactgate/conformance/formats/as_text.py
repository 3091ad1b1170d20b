"""The report for a terminal: documented rules line by line, other rules where they found something, the verdict last.

Text of the capture is escaped and on one line. The caller adds colour: `style` gets only our own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pactgate.conformance.formats.summary import place, summary, unjudged, verdict
from pactgate.conformance.report import ComplianceReport, SessionReport
from pactgate.conformance.rule import (
    CheckStatus,
    CompositionConflict,
    CompositionSeverity,
    RequirementLevel,
    RuleResult,
)
from pactgate.conformance.selection import DOCUMENTED, rule_of
from pactgate.core.display import flat

Style = Callable[[str, str], str]

_LINE_CHARS: Final = 240
_SHOWN_PLACES: Final = 5
_INDENT: Final = " " * 17
_WORDS: Final = {
    CheckStatus.PASS: ("pass", "green"),
    CheckStatus.FAIL: ("FAIL", "red"),
    CheckStatus.NOT_APPLICABLE: ("n/a", "dim"),
    CheckStatus.NOT_JUDGED: ("????", "yellow"),
    CheckStatus.ERROR: ("ERR", "yellow"),
}
_FAILURE_WORDS: Final = {
    RequirementLevel.MUST: ("FAIL", "red"),
    RequirementLevel.SHOULD: ("WARN", "yellow"),
    RequirementLevel.ADVICE: ("HINT", "cyan"),
}
_SEVERITY_STYLES: Final = {
    CompositionSeverity.CONFLICT: "red",
    CompositionSeverity.WARNING: "yellow",
    CompositionSeverity.INFO: "dim",
}


def as_text(report: ComplianceReport, style: Style = lambda text, name: text) -> str:
    return "\n".join([*_lines(report, style), ""])


def _lines(report: ComplianceReport, style: Style) -> Iterator[str]:
    for session in report.sessions:
        version = f"protocol version {flat(session.protocol_version, 40)}, " if session.protocol_version else ""
        count = f"{session.exchange_count} message{'s' * (session.exchange_count != 1)}"
        yield f"{style(flat(session.label, _LINE_CHARS), 'bold')}  {version}{count}"
        yield from _results(report, session, session.results, style)
        if session.advisory:
            yield f"  {style('informational:', 'dim')}"
            yield from _results(report, session, session.advisory, style)
        if session.out_of_scope:
            yield f"  {style('skip', 'dim')}  {len(session.out_of_scope)} rules for another transport or other versions"
        yield ""
    if report.findings or report.advisory:
        yield style("between servers", "bold")
        yield from _conflicts(report.findings, style, "")
        yield from _conflicts(report.advisory, style, " (informational)")
        yield ""
    for entry in report.stale:
        where = f" for {flat(entry.label, _LINE_CHARS)}" if entry.label else ""
        yield f"{style('stale', 'red')}  {entry.code}{where} is in the baseline, but did not fail."
    yield from _scores(report, style)
    yield f"{style(verdict(report), 'green' if report.passed else 'red')}: {flat(summary(report), 4 * _LINE_CHARS)}"


def _results(
    report: ComplianceReport, session: SessionReport, results: tuple[RuleResult, ...], style: Style
) -> Iterator[str]:
    quiet: dict[CheckStatus, int] = {}
    for result in results:
        is_told = result.status is CheckStatus.PASS and result.code.startswith("LINT-") and result.notes != ()
        if result.status in (CheckStatus.FAIL, CheckStatus.ERROR) or is_told or rule_of(result.code) in DOCUMENTED:
            yield from _result(session, result, style, is_expected=report.is_expected(session, result))
        else:
            quiet[result.status] = quiet.get(result.status, 0) + 1
    parts = [
        f"{quiet[status]} {word}"
        for status, word in ((CheckStatus.PASS, "pass"), (CheckStatus.NOT_APPLICABLE, "not applicable"))
        if status in quiet
    ]
    if parts:
        yield f"  {style('more', 'dim')}  {', '.join(parts)}"
    ours = tuple(result for result in results if rule_of(result.code) not in DOCUMENTED)
    for reason, codes in unjudged(ours).items():
        yield f"  {style('????', 'yellow')}  not judged: {', '.join(codes)}. {flat(reason, _LINE_CHARS)}"


def _result(session: SessionReport, result: RuleResult, style: Style, *, is_expected: bool) -> Iterator[str]:
    word, colour = _WORDS[result.status]
    if result.status is CheckStatus.FAIL:
        word, colour = _FAILURE_WORDS[result.level]
    remark = " (expected)" if is_expected and result.status is CheckStatus.FAIL else ""
    yield f"  {style(f'{word:<4}', colour)}  {result.code:<8} {flat(result.message, _LINE_CHARS)}{remark}"
    for evidence in result.evidence[:_SHOWN_PLACES]:
        text = flat(evidence.message, _LINE_CHARS) if result.count > 1 else ""
        yield f"{_INDENT}{style(flat(place(evidence, session), _LINE_CHARS), 'cyan')}  {text}".rstrip()
    if result.count > _SHOWN_PLACES:
        yield f"{_INDENT}and {result.count - _SHOWN_PLACES} more"
    if result.status is CheckStatus.FAIL and (url := rule_of(result.code).url()) is not None:
        yield f"{_INDENT}{style(url, 'dim')}"
    for note in result.notes:
        yield f"{_INDENT}note: {flat(note, _LINE_CHARS)}"


def _scores(report: ComplianceReport, style: Style) -> Iterator[str]:
    for score in report.scores:
        bar = "#" * (score.percent // 5)
        passed = f"{score.passed} of {score.asked}"
        yield f"  {score.label:<32} {style(f'{bar:<20}', 'cyan')} {score.percent:>3} %  {passed}"
    if report.scores:
        yield ""


def _conflicts(conflicts: Iterable[CompositionConflict], style: Style, remark: str) -> Iterator[str]:
    for conflict in conflicts:
        word = style(f"{conflict.severity:<7}", _SEVERITY_STYLES[conflict.severity])
        yield f"  {word}  {conflict.code:<8} {conflict.kind}: {flat(conflict.message, _LINE_CHARS)}{remark}"
        yield f"{_INDENT}   {flat(', '.join(conflict.servers), 2 * _LINE_CHARS)}"
