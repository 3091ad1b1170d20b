"""The report as JUnit XML: one suite per session, one case per rule, so that CI systems show it beside the tests.

The name of a case is the sentence that must hold, so that a passed one does not read as a failure.

A case fails where it counts; what does not apply, was not judged, does not count or is expected is skipped, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from pactgate.conformance.formats.summary import place
from pactgate.conformance.report import ComplianceReport, SessionReport
from pactgate.conformance.rule import CheckStatus, RuleResult
from pactgate.conformance.selection import rule_of
from pactgate.core.display import visible

_NO_XML: Final = re.compile("[\ufffe\uffff]")


def as_junit(report: ComplianceReport) -> str:
    suites = [_suite(report, session) for session in report.sessions]
    if len(report.sessions) > 1:
        suites.append(_composition(report))
    if report.error is not None:
        error = f"<error type={_attribute(report.error.kind)} message={_attribute(report.error.message)}/>"
        suites.append(_xml_suite("capture", [("capture", "readable", error)]))
    suites += [
        _xml_suite("baseline", [("baseline", entry.code, '<failure message="stale: it did not fail"/>')])
        for entry in report.stale
    ]
    body = "".join(suites)
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name={_attribute(report.source)}>\n{body}</testsuites>\n'
    )


def _suite(report: ComplianceReport, session: SessionReport) -> str:
    results = (*session.results, *session.advisory)
    cases = [(session.label, f"{r.code} {rule_of(r.code).title()}", _outcome(report, session, r)) for r in results]
    return _xml_suite(session.label, cases)


def _outcome(report: ComplianceReport, session: SessionReport, result: RuleResult) -> str:
    if result.status is CheckStatus.ERROR:
        return f"<error message={_attribute(result.message)}/>"
    decides = result.code in report.deciding
    if decides and report.counts(session, result):
        places = "\n".join(f"{place(e, session)}: {e.message}" for e in result.evidence)
        places += f"\n{rule_of(result.code).url() or ''}"
        return (
            f"<failure type={_attribute(result.level)} message={_attribute(result.message)}>{_text(places)}</failure>"
        )
    if result.status is CheckStatus.PASS:
        return ""
    remark = ""
    if decides and report.is_expected(session, result):
        remark = "expected by the baseline: "
    elif not decides and result.status is CheckStatus.FAIL:
        remark = "not counted: "
    return f"<skipped message={_attribute(f'{result.status}: {remark}{result.message}')}/>"


def _composition(report: ComplianceReport) -> str:
    counted = set(map(id, report.conflicts()))
    cases = []
    for conflict in (*report.findings, *report.advisory):
        tag = "failure" if id(conflict) in counted else "skipped"
        servers = ", ".join(conflict.servers)
        outcome = f"<{tag} message={_attribute(f'{conflict.severity}: {conflict.message} ({servers})')}/>"
        cases.append(("composition", f"{conflict.code} {conflict.kind} {conflict.subject}", outcome))
    return _xml_suite("composition", cases or [("composition", "no conflict", "")])


def _xml_suite(name: str, cases: list[tuple[str, str, str]]) -> str:
    failures = sum("<failure" in outcome for _, _, outcome in cases)
    errors = sum("<error" in outcome for _, _, outcome in cases)
    skipped = sum("<skipped" in outcome for _, _, outcome in cases)
    head = (
        f'<testsuite name={_attribute(name)} tests="{len(cases)}" failures="{failures}" errors="{errors}" '
        f'skipped="{skipped}">'
    )
    return f" {head}\n{''.join(_cases(cases))} </testsuite>\n"


def _cases(cases: list[tuple[str, str, str]]) -> Iterator[str]:
    for owner, name, outcome in cases:
        yield f"  <testcase classname={_attribute(owner)} name={_attribute(name)}>{outcome}</testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _text(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    """XML has no way to write control characters and half surrogates at all."""
    return _NO_XML.sub("?", visible(text))
