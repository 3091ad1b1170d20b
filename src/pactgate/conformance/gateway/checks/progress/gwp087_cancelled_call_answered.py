"""GWP-087."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.checks.progress import cancelling
from pactgate.conformance.gateway.checks.progress.cancelling import cancel, end, is_cancellation
from pactgate.conformance.gateway.checks.progress.notices import step
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab
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
    family = Family.PROGRESS
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
