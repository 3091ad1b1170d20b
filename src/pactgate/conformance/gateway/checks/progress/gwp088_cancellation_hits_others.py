"""GWP-088."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.checks.progress.cancelling import cancel, end, is_cancellation
from pactgate.conformance.gateway.checks.progress.notices import call
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, named
from pactgate.conformance.rule import Evidence


class CancellationHitsOthers(Check):
    """Cancelling a call leaves the calls of others alone, also those with the same id.

    What it checks
        Two clients without any difference call two tools of each server, with equal ids; one cancels its call. The server is not told to
        cancel the call of the other, which gets no error.

    Why
        Clients count their ids from the same number. A cancellation that is passed on by the id of the client ends somebody else's work.

    How to fix
        Find the request by the session and the id, and cancel it with the id that it has at the server.

    Reference
        Cancellation, Behavior Requirements: notices reference requests of their own sender; all revisions.
    """

    code = "GWP-088"
    spec = "basic/utilities/cancellation"
    family = Family.PROGRESS
    tools = (
        ScriptedTool(name="gwp088_@", steps=(ScriptStep("until_cancelled", seconds=2),)),
        ScriptedTool(name="gwp088other_@", steps=(ScriptStep("until_cancelled", seconds=0.6),)),
    )

    async def play(self, lab: Lab) -> None:
        async def one(route: ClientRoute, client: ScriptedClient, other: ScriptedClient) -> None:
            going_on = lab.start(call(self, lab, route, other, tool=1))
            calling = await cancel(self, lab, route, client)
            await going_on
            await end(calling)

        async with lab.listeners(self) as clients, lab.listeners(self) as others:
            await lab.in_turn(one(route, client, others[route]) for route, client in clients.items())

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            server = exchange.route.server
            if exchange.request.label != named(self.tools[1].name, server):
                continue
            message = plain_value(exchange.response)
            if message and "result" not in message:
                yield self.evidence(
                    exchange.index, "/error", f"{exchange.route}: the call of the other client has an error"
                )
            for index, frame in recording.at_server(server, exchange.request.label, is_sent=False):
                if is_cancellation(frame):
                    yield self.evidence(
                        index, "", f"{exchange.route}: the server was told to cancel the call of the other client"
                    )
