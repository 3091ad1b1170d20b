"""Checks a capture and returns a report. The same bytes give the same report, and no connection is opened.

Enforces S3/CLI and S3/SCOPE; `cli/compliance.py` only presents the report.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from pactgate.capture.format import Progress, read
from pactgate.capture.source import chunks_of, chunks_of_value
from pactgate.conformance.report import BaselineEntry, ComplianceReport
from pactgate.conformance.rule import RequirementLevel
from pactgate.conformance.runner import run
from pactgate.conformance.selection import select
from pactgate.conformance.session_state import ReadingOptions
from pactgate.protocol.versions import Era

_VALUE = "(value)"


def check_capture(
    capture: str | os.PathLike[str] | dict[str, Any] | list[Any],
    *,
    rules: str | Sequence[str] | None = None,
    era: str | None = None,
    allow_missing_initialized: bool = False,
    fail_on: str = "must",
    unjudged_fails: bool = False,
    baseline: Iterable[BaselineEntry] = (),
    on_progress: Progress | None = None,
) -> ComplianceReport:
    """Check a capture: a file by its name ("-" is standard input), or an already decoded one.

    Raises CaptureError when it can't be read, UnknownRuleError for a rule that does not exist, and ValueError for another
    era or level than there are.
    """
    selection = select(rules)
    options = ReadingOptions(None if era in (None, "auto") else Era(era), allow_missing_initialized)
    level = RequirementLevel(fail_on)
    if isinstance(capture, dict | list):
        source, chunks = _VALUE, chunks_of_value(capture)
    else:
        source, chunks = os.fspath(capture), chunks_of(capture, on_progress)
    sessions, conflicts = run(selection, read(chunks), options)
    return ComplianceReport(
        source=source,
        sessions=sessions,
        findings=tuple(conflict for conflict in conflicts if conflict.code in selection.deciding),
        advisory=tuple(conflict for conflict in conflicts if conflict.code not in selection.deciding),
        rules=tuple(rule.code for rule in selection.rules),
        deciding=selection.deciding,
        fail_on=level,
        unjudged_fails=unjudged_fails,
        baseline=tuple(baseline),
    )
