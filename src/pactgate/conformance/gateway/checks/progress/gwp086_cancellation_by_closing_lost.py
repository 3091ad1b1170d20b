"""GWP-086."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.cancelling import judge_cancel, play_cancel
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel


class CancellationByClosingLost(Check):
    """A call whose stream a modern client closes is cancelled at the server.

    What it checks
        A modern client closes the stream of its call while a server works; within four seconds the server sees its own stream closed, or
        gets `notifications/cancelled` (over stdio, or legacy).

    Why
        Closing the stream is the only way for a modern client to cancel over HTTP. Otherwise the server goes on with work that nobody
        wants.

    How to fix
        Watch the connection of the client, and cancel at the server in the words of its era.

    Reference
        Streamable HTTP, Cancellation: closing the response stream must be treated as cancellation; 2026-07-28.
    """

    code = "GWP-086"
    spec = "basic/utilities/cancellation"
    family = Family.PROGRESS
    level = RequirementLevel.MUST
    since = "2026-07-28"
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp086_@", steps=(ScriptStep("until_cancelled", seconds=6),)),)

    async def play(self, lab: Lab) -> None:
        await play_cancel(self, lab)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_cancel(self, recording)
