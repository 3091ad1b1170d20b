"""GWP-084."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.notices import PROGRESS, call_on_all, notices, step
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel


class ProgressWithoutToken(Check):
    """A client that gives no progress token gets no progress.

    What it checks
        A client calls without a token a tool that reports progress to those who want it; no notification of progress arrives.

    Why
        A client that did not ask for progress takes an unknown token for an error, and some close the session.

    How to fix
        Where you ask the server for progress for reasons of your own, keep it to yourself.

    Reference
        Progress, Behavior Requirements: notifications must only reference tokens that were provided in an active request; all
        revisions.
    """

    code = "GWP-084"
    spec = "basic/utilities/progress"
    family = Family.PROGRESS
    level = RequirementLevel.MUST
    tools = (ScriptedTool(name="gwp084_@", steps=(step("1"),)),)

    async def play(self, lab: Lab) -> None:
        await call_on_all(self, lab, ("",))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for notice in notices(recording, PROGRESS):
            yield self.evidence(notice.index, "/params", f"{notice.frame.route}: progress came without a token")
