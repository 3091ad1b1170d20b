"""The end of the gateway: no process of a server is left, and no call waits."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar, Final

from pactgate.conformance.gateway.check import Check
from pactgate.conformance.gateway.client import ClientError
from pactgate.conformance.gateway.lab import PROCESS, Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel

GONE_S: Final = 10.0
"""So long after the stop a process may still be there."""
_POLL_S: Final = 0.1


class EndCheck(Check):
    """The gateway is ended `by` a signal, after which no process of a server is left."""

    spec = "basic/lifecycle#shutdown"
    needs_gateway = True
    runs_alone = True
    servers = ("ls",)
    by: ClassVar[signal.Signals]

    async def play(self, lab: Lab) -> None:
        """Call the first tool, end the gateway, and note which processes of the server are left."""
        lab.require_gateway()
        process, route = lab.process, lab.routes(self)[0]
        client, tool = await lab.new_client(route), lab.exposed(route, self.tools[0].name)
        await client.call(lab.record_on(route), tool)
        before = lab.living(route.server)
        ends = time.monotonic() + GONE_S
        await process.stop(self.by, GONE_S)
        while (left := lab.living(route.server)) and time.monotonic() < ends:  # noqa: ASYNC110 - other processes have no events
            await asyncio.sleep(_POLL_S)
        for pid in before:
            lab.note_process(route.server, pid, "left" if pid in left else "gone")
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await lab.start_again()

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for index, frame in enumerate(recording.frames):
            if (
                frame.side is ScriptedSide.SERVER
                and frame.label == PROCESS
                and json.loads(frame.data)["state"] == "left"
            ):
                yield self.evidence(index, "", f"{GONE_S:g} s after the stop a process of {frame.who} is still there")


class ServersAreLeft(EndCheck):
    """A server that does not want to end ends with its gateway.

    What it checks
        A stdio server ignores the end of its input and SIGTERM. The gateway gets SIGTERM; ten seconds later no process of this
        server is left.

    Why
        Processes that nobody owns hold ports, files and memory, and add up with every restart.

    How to fix
        Close its input, wait, send SIGTERM, wait, send SIGKILL, to the whole process group.

    Reference
        Lifecycle, Shutdown of stdio: close the input, then SIGTERM, then SIGKILL; all revisions.
    """

    code = "GWP-200"
    level = RequirementLevel.SHOULD
    tools = (ScriptedTool(name="gwp200_@", steps=(ScriptStep("stay"),)),)
    by = signal.SIGTERM


class ServersOutliveAKilledGateway(EndCheck):
    """No server is left when its gateway is killed.

    What it checks
        The gateway gets SIGKILL. Ten seconds later no process of its stdio servers is left.

    Why
        A gateway that is out of memory gets no chance to clean up; what it started must not need it.

    How to fix
        Hold the input of servers yourself, so that it ends with you, and give none of it to other processes.

    Reference
        Nothing in the specification; a server ends when its input ends.
    """

    code = "GWP-201"
    tools = (ScriptedTool(name="gwp201_@"),)
    by = signal.SIGKILL


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
