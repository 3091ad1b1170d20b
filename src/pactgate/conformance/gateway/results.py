"""Judges a recording: the report that all formats render, one section a family, with scores. Pure.

A score is the share of the checks that passed out of those that could be asked. Must not: play anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks import BY_CODE
from pactgate.conformance.gateway.recording import CheckRecording, RunRecording
from pactgate.conformance.report import ComplianceReport, Score, SessionReport
from pactgate.conformance.rule import SHOWN_EVIDENCE, CheckStatus, Evidence, RequirementLevel, RuleResult


def judge(run: RunRecording, *, fail_on: RequirementLevel = RequirementLevel.ADVICE) -> ComplianceReport:
    """The report of a run. Checks that this version does not know are left out."""
    results = {rec.code: judge_one(BY_CODE[rec.code], rec) for rec in run.checks if rec.code in BY_CODE}
    frames = {rec.code: len(rec.frames) for rec in run.checks}
    sessions, scores = [], []
    for number, family in enumerate(Family):
        codes = [code for code in results if BY_CODE[code].family is family]
        if codes:
            found = tuple(results[code] for code in codes)
            sessions.append(
                SessionReport(
                    label=family.value,
                    era="mixed",
                    protocol_version=None,
                    exchange_count=sum(frames[code] for code in codes),
                    results=found,
                    advisory=(),
                    index=number,
                )
            )
            scores.append(_score(family.value, found))
    scores = [score for score in scores if score.asked]
    scores.append(_score("all", results.values()))
    return ComplianceReport(
        source=f"{run.gateway}, gateway profile {run.profile}",
        sessions=tuple(sessions),
        rules=tuple(results),
        deciding=frozenset(results),
        fail_on=fail_on,
        scores=tuple(scores),
    )


def judge_one(check: type[Check], recording: CheckRecording) -> RuleResult:
    """The result of one check. One that raised while it was played, or that raises now, is an error of the check."""
    status, message, level = CheckStatus.PASS, check.title(), check.level
    error = recording.error
    evidence: tuple[Evidence, ...] = ()
    if not error and not recording.not_applicable:
        try:
            evidence = tuple(check().judge(recording))
        except Exception as problem:  # noqa: BLE001 - the fault of one check must not hide the results of the others
            error = f"{type(problem).__name__}: {problem}"
    if error:
        status, message = CheckStatus.ERROR, error
    elif recording.not_applicable:
        status, message = CheckStatus.NOT_APPLICABLE, recording.not_applicable
    elif evidence:
        status = CheckStatus.FAIL
        level = min((found.level for found in evidence), key=list(RequirementLevel).index)
        message = evidence[0].message + (f" ({len(evidence)} places)" if len(evidence) > 1 else "")
    return RuleResult(
        code=check.code,
        slug=check.slug(),
        category=check.family.value,
        level=level,
        status=status,
        message=message,
        evidence=evidence[:SHOWN_EVIDENCE],
        count=len(evidence),
    )


def _score(label: str, results: Iterable[RuleResult]) -> Score:
    counted = [result.status for result in results if result.status is not CheckStatus.NOT_APPLICABLE]
    return Score(label, sum(status is CheckStatus.PASS for status in counted), len(counted))
