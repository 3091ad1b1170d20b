"""GWP-093."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.notices import (
    LOG,
    WORK_S,
    call_with_level,
    logging_clients,
    notices,
    set_level,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence


class LogMessagesReachOthers(Check):
    """A log message about a call does not reach a client that did not make it.

    What it checks
        Two legacy clients ask for messages; one calls a tool that logs on the stream of the call. The other, which listens, gets nothing.

    Why
        Log messages have arguments, file names and users in them.

    How to fix
        Send a message that came on the stream of a call to the client of that call only.

    Reference
        Streamable HTTP: what a server sends on the stream of a request relates to that request; 2025-03-26 to 2025-11-25.
    """

    code = "GWP-093"
    spec = "basic/transports#sending-messages-to-the-server"
    family = Family.PROGRESS
    eras = ("legacy",)
    servers = ("lh", "mh", "dh")
    runs_alone = True
    tools = (
        ScriptedTool(
            name="gwp093_@", steps=(ScriptStep("log", data='{"level":"error","data":"of one call"}', seconds=WORK_S),)
        ),
    )

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self) as clients, lab.listeners(self) as others:
            asked = logging_clients(clients)
            await set_level(lab, asked, "debug")
            await set_level(lab, logging_clients(others), "debug")
            await call_with_level(self, lab, asked, "debug")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        callers = {
            frame.who
            for frame in recording.frames
            if frame.side is ScriptedSide.CLIENT and frame.is_sent and '"tools/call"' in frame.data
        }
        for notice in notices(recording, LOG):
            if notice.frame.who not in callers:
                yield self.evidence(
                    notice.index, "/params", f"{notice.frame.route}: a client that called nothing got it"
                )
