"""The report as Markdown, for a pull request or a job summary: one table a session, nothing that could break out of a cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pactgate.conformance.formats.summary import place, summary, unjudged, verdict
from pactgate.conformance.report import ComplianceReport, SessionReport
from pactgate.conformance.rule import CheckStatus, CompositionConflict, RuleResult
from pactgate.conformance.selection import rule_of
from pactgate.core.display import flat

_CELL_CHARS: Final = 300
_SHOWN_PLACES: Final = 5
_HEAD: Final = ("rule", "check", "what", "where")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()<>#|!~@&])")
_WORDS: Final = {
    CheckStatus.PASS: "pass",
    CheckStatus.FAIL: "**fail**",
    CheckStatus.NOT_APPLICABLE: "not applicable",
    CheckStatus.NOT_JUDGED: "not judged",
    CheckStatus.ERROR: "**error**",
}


def as_markdown(report: ComplianceReport) -> str:
    return "\n".join([*_lines(report), ""])


def _lines(report: ComplianceReport) -> Iterator[str]:
    yield f"## {verdict(report).capitalize()}: {_plain(report.source)}"
    yield f"\n{_plain(summary(report), 4 * _CELL_CHARS)}"
    if report.scores:
        yield ""
        shares = [
            (_plain(score.label), f"{score.passed} of {score.asked}", f"{score.percent} %") for score in report.scores
        ]
        yield from _table(("family", "passed", "share"), shares)
    for session in report.sessions:
        version = f"protocol version {_plain(session.protocol_version)}, " if session.protocol_version else ""
        yield f"\n### {_plain(session.label)}\n\n{version}messages: {session.exchange_count}\n"
        yield from _table(_HEAD, (_row(session, result) for result in session.results))
        findings = [result for result in session.advisory if result.status is CheckStatus.FAIL]
        if findings:
            yield "\nInformational:\n"
            yield from _table(_HEAD, (_row(session, result) for result in findings))
        for reason, codes in unjudged(session.advisory).items():
            yield f"\nNot judged: {', '.join(codes)}. {_plain(reason)}"
    if report.findings or report.advisory:
        yield "\n### Between servers\n"
        rows = [*map(_conflict, report.findings), *(_conflict(h, " (not counted)") for h in report.advisory)]
        yield from _table(("rule", "severity", "what", "servers"), rows)
    for entry in report.stale:
        yield f"\nStale in the baseline: {entry.code} did not fail."


def _row(session: SessionReport, result: RuleResult) -> tuple[str, ...]:
    places = "<br>".join(_plain(place(evidence, session)) for evidence in result.evidence[:_SHOWN_PLACES])
    notes = "".join(f"<br>Note: {_plain(note)}" for note in result.notes)
    level = f" ({result.level})" if result.status is CheckStatus.FAIL else ""
    url = rule_of(result.code).url()
    code = f"[{result.code}]({url})" if url is not None else result.code
    return code, _WORDS[result.status] + level, _plain(result.message) + notes, places


def _conflict(conflict: CompositionConflict, remark: str = "") -> tuple[str, ...]:
    servers = "<br>".join(map(_plain, conflict.servers))
    return (
        conflict.code,
        f"{conflict.severity}{remark}",
        f"{_plain(conflict.kind)}: {_plain(conflict.message)}",
        servers,
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for line in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(line)} |"


def _plain(text: str, max_chars: int = _CELL_CHARS) -> str:
    return _SPECIAL.sub(r"\\\1", flat(text, max_chars))
