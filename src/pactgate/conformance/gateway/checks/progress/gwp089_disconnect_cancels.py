"""GWP-089."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.cancelling import begin, end, is_cancellation, stream_begun
from pactgate.conformance.gateway.checks.progress.notices import step
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, named
from pactgate.conformance.rule import Evidence, RequirementLevel

_WORK_S = 0.8


class DisconnectCancels(Check):
    """A legacy client that loses its connection has not cancelled its call.

    What it checks
        A call of a legacy client has an event stream, on which progress came. The connection breaks while the server works; the server
        finishes, and is not told to cancel. A gateway that does not stream is not asked: nobody could come back for its result.

    Why
        Connections break for reasons of the network. The client may come back for the result; half-done work helps nobody.

    How to fix
        Go on with the call of a legacy session; only `notifications/cancelled` cancels it.

    Reference
        Transports, Streamable HTTP, Sending Messages: disconnection should not be interpreted as cancelling; 2025-03-26 to 2025-11-25.
    """

    code = "GWP-089"
    spec = "basic/transports#sending-messages-to-the-server"
    family = Family.PROGRESS
    level = RequirementLevel.SHOULD
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp089_@", steps=(step("1"), ScriptStep("until_cancelled", seconds=_WORK_S))),)

    async def play(self, lab: Lab) -> None:
        async def one(route: ClientRoute, client: ScriptedClient) -> bool:
            label = named(self.tools[0].name, route.server)
            calling = await begin(self, lab, route, client)
            is_begun = await stream_begun(lab, label)
            await end(calling)
            if is_begun:
                await lab.until_server(
                    label, lambda frame: '"result"' in frame.data or is_cancellation(frame), _WORK_S + 2
                )
            return is_begun

        async with lab.listeners(self) as clients:
            begun = await lab.in_turn(one(route, client) for route, client in clients.items())
        if not any(begun):
            raise NotApplicableError("It does not stream: no progress arrives before the result.")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for index, frame in enumerate(recording.frames):
            if is_cancellation(frame):
                yield self.evidence(index, "", f"legacy client to {frame.who}: the server was told to cancel")
