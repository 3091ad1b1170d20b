"""GWP-202."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import suppress

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.ownership.ending import GONE_S
from pactgate.conformance.gateway.client import ClientError
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence

_UNDER_WAY_S = 0.5


class StopLeavesCallsWaiting(Check):
    """A call under way ends when the gateway is stopped.

    What it checks
        A client waits for a tool that takes a minute, and the gateway gets SIGTERM. Within ten seconds the call has an answer, or
        its connection ends.

    Why
        A client that waits for a gateway that has gone waits until its own limit.

    How to fix
        Stop listening, let calls end for a while, then end them with an error.

    Reference
        Nothing in the specification.
    """

    code = "GWP-202"
    spec = "basic/lifecycle#shutdown"
    family = Family.OWNERSHIP
    needs_gateway = True
    runs_alone = True
    servers = ("ls", "lh")
    tools = (ScriptedTool(name="gwp202_@", steps=(ScriptStep("wait", seconds=60.0),)),)

    async def play(self, lab: Lab) -> None:
        lab.require_gateway()
        process, route = lab.process, lab.routes(self)[0]
        client, tool = await lab.new_client(route), lab.exposed(route, self.tools[0].name)
        call = asyncio.create_task(
            client.request(
                lab.record_on(route), "tools/call", f'"name":"{tool}"', name=tool, label="slow", timeout_s=GONE_S
            )
        )
        await asyncio.sleep(_UNDER_WAY_S)
        await process.stop(signal.SIGTERM, GONE_S)
        with suppress(ClientError):  # the stream ended without an answer: nobody waits
            await call
        await lab.start_again()

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("slow"):
            response = exchange.response
            if response is not None and "no answer within" in response.label:
                yield self.evidence(exchange.index, "", f"the call still waits {GONE_S:g} s after the stop")
