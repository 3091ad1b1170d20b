"""What the checks of ownership share: the gateway ends, and the processes of its servers are looked for. Must not: leave one of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar, Final

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.lab import PROCESS, Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
from pactgate.conformance.rule import Evidence

GONE_S: Final = 10.0
"""So long after the stop a process may still be there."""
_POLL_S: Final = 0.1


class EndCheck(Check):
    """The gateway is ended `by` a signal, after which no process of a server is left."""

    spec = "basic/lifecycle#shutdown"
    family = Family.OWNERSHIP
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
            if frame.side is ScriptedSide.SERVER and frame.label == PROCESS and json.loads(frame.data)["state"] == "left":
                yield self.evidence(index, "", f"{GONE_S:g} s after the stop a process of {frame.who} is still there")
