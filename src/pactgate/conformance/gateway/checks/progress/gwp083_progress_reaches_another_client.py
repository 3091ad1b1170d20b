"""GWP-083."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.notices import (
    PROGRESS,
    call,
    notices,
    require_progress,
    step,
)
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence

_PAUSE = ScriptStep("wait", seconds=0.2)


class ProgressReachesAnotherClient(Check):
    """Progress of a call goes to the client that made it, also when two clients chose the same token.

    What it checks
        Two clients call different tools of a server at the same time, both with the token "gwp083" and with equal request ids; each gets
        the progress of its own call only.

    Why
        Clients count their tokens from the same number, so two of them often have the same. Progress messages name files and users.

    How to fix
        Give each call that you send on a token of its own, and keep whose it is.

    Reference
        Progress, Progress Flow: a token is unique among the active requests of its sender, and the gateway is the sender behind.
    """

    code = "GWP-083"
    spec = "basic/utilities/progress"
    family = Family.PROGRESS
    tools = (
        ScriptedTool(name="gwp083a_@", steps=(step("1", "for a"), _PAUSE, step("2", "for a"))),
        ScriptedTool(name="gwp083b_@", steps=(step("1", "for b"), _PAUSE, step("2", "for b"))),
    )

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self) as one, lab.listeners(self) as other:
            await lab.in_turn(self._both(lab, route, one[route], other[route]) for route in one)
        require_progress(lab)

    async def _both(self, lab: Lab, route: ClientRoute, one: ScriptedClient, other: ScriptedClient) -> None:
        token = '"gwp083"'
        await asyncio.gather(call(self, lab, route, one, token, 0), call(self, lab, route, other, token, 1))

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        callers = {
            frame.who: frame.label[6]
            for frame in recording.frames
            if frame.side is ScriptedSide.CLIENT and frame.is_sent and frame.label.startswith("gwp083")
        }
        for notice in notices(recording, PROGRESS):
            message, own = notice.params.get("message"), callers.get(notice.frame.who)
            if message in {f"for {other}" for other in callers.values() if other != own}:
                yield self.evidence(
                    notice.index, "/params", f"{notice.frame.route}: the client that called {own} got {message!r:.60}"
                )
