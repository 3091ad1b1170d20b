"""GWP-085."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.cancelling import judge_cancel, play_cancel
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel


class CancellationByNoticeLost(Check):
    """A call that a legacy client cancels is cancelled at the server.

    What it checks
        A legacy client sends `notifications/cancelled` while a server works; within four seconds the server gets one for its request,
        or sees its stream closed (modern, over HTTP).

    Why
        Otherwise the server goes on with work that nobody wants, and that may change things.

    How to fix
        Cancel the request that you sent to the server, in the words of its era, with its own id.

    Reference
        Cancellation, Behavior Requirements: receivers should stop processing the cancelled request; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-085"
    spec = "basic/utilities/cancellation"
    family = Family.PROGRESS
    level = RequirementLevel.SHOULD
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp085_@", steps=(ScriptStep("until_cancelled", seconds=6),)),)

    async def play(self, lab: Lab) -> None:
        await play_cancel(self, lab)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_cancel(self, recording)
