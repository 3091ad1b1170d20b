"""Scores count what could be asked; a check that raises is an error of that check."""

from __future__ import annotations

import json

import pytest

from pactgate.conformance.formats import RENDER, ReportFormat
from pactgate.conformance.gateway.recording import CheckRecording, RunRecording
from pactgate.conformance.gateway.results import judge
from pactgate.conformance.rule import CheckStatus

RUN = RunRecording(
    "0.1",
    "some <b>gateway 1.0",
    (
        CheckRecording("GWP-001"),
        CheckRecording("GWP-002", not_applicable="no route"),
        CheckRecording("GWP-003", error="ValueError: x"),
        CheckRecording("GWP-064"),
        CheckRecording("GWP-999"),
    ),
)


def test_each_family_and_all_have_a_score_of_what_could_be_asked() -> None:
    report = judge(RUN)
    assert [(score.label, score.passed, score.asked) for score in report.scores] == [
        ("fidelity", 1, 2),
        ("names and lists", 0, 1),
        ("all", 1, 3),
    ]
    statuses = [result.status for session in report.sessions for result in session.results]
    assert statuses == [CheckStatus.PASS, CheckStatus.NOT_APPLICABLE, CheckStatus.ERROR, CheckStatus.FAIL]
    assert report.exit_code == 1


def test_a_run_in_which_all_passed_is_good() -> None:
    assert judge(RunRecording("0.1", "g", (CheckRecording("GWP-001"),))).exit_code == 0


@pytest.mark.parametrize("form", ReportFormat)
def test_every_format_shows_the_findings_of_a_run(form: ReportFormat) -> None:
    text = RENDER[form](judge(RUN))
    assert "33" in text if form is ReportFormat.TEXT else text
    if form is ReportFormat.JSON:
        assert json.loads(text)["scores"][-1] == {"label": "all", "passed": 1, "asked": 3, "percent": 33}
    if form is ReportFormat.JUNIT:
        assert text.count("<error") == 1
    if form is not ReportFormat.SVG:
        assert "GWP-064" in text
