"""What a cancelled call leaves behind: no answer, no harm to others, no end by a lost connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.checks.progress import cancelling
from pactgate.conformance.gateway.checks.progress.cancelling import begin, cancel, end, is_cancellation, stream_begun
from pactgate.conformance.gateway.checks.progress.notices import call, step
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, named
from pactgate.conformance.rule import Evidence, RequirementLevel

_ANSWER_S = 1.0


class CancelledCallAnswered(Check):
    """A call that was cancelled gets no response.

    What it checks
        A legacy client cancels a call of a server that stops when it is told to; no result arrives in the second after that, and on an
        event stream that has begun no error either. Before that, HTTP needs some response, and an error is no failure.

    Why
        Clients have forgotten the id. Some take a response to it for a fault of the protocol.

    How to fix
        Forget the request when it is cancelled; end its stream without a response.

    Reference
        Cancellation, Behavior Requirements: receivers should not send a response for the cancelled request; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-087"
    spec = "basic/utilities/cancellation"
    level = RequirementLevel.SHOULD
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp087_@", steps=(step("1"), ScriptStep("until_cancelled", seconds=6))),)

    async def play(self, lab: Lab) -> None:
        async def one(route: ClientRoute, client: ScriptedClient) -> None:
            calling = await cancel(self, lab, route, client)
            await lab.until_server(named(self.tools[0].name, route.server), is_cancellation, cancelling.WAIT_S)
            await asyncio.wait([calling], timeout=_ANSWER_S)
            await end(calling)

        async with lab.listeners(self) as clients:
            await lab.in_turn(one(route, client) for route, client in clients.items())

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            if exchange.request.label == named(self.tools[0].name, exchange.route.server):
                message = plain_value(exchange.response)
                for kind in ("result", "error"):
                    if kind in message and (kind == "result" or len(exchange.received) > 1):
                        yield self.evidence(
                            exchange.index, f"/{kind}", f"{exchange.route}: the cancelled call has a {kind}"
                        )


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
