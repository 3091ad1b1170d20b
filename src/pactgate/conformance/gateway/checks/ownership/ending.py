"""What the checks of ownership share: the gateway ends, and the processes of its servers are looked for. Must not: leave one of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from pactgate.conformance.gateway.check import Check
from pactgate.conformance.gateway.lab import PROCESS, Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
from pactgate.conformance.rule import Evidence

GONE_S: Final = 10.0
"""So long after the stop a process may still be there."""
_POLL_S: Final = 0.1


async def play_end(check: Check, lab: Lab, number: signal.Signals) -> None:
    """Call the first tool, end the gateway, and note which processes of the server are left."""
    lab.require_gateway()
    process, route = lab.process, lab.routes(check)[0]
    client, tool = await lab.new_client(route), lab.exposed(route, check.tools[0].name)
    await client.call(lab.record_on(route), tool)
    before = lab.living(route.server)
    ends = time.monotonic() + GONE_S
    await process.stop(number, GONE_S)
    while (left := lab.living(route.server)) and time.monotonic() < ends:  # noqa: ASYNC110 - other processes have no events
        await asyncio.sleep(_POLL_S)
    for pid in before:
        lab.note_process(route.server, pid, "left" if pid in left else "gone")
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await lab.start_again()


def judge_end(check: Check, recording: CheckRecording) -> Iterator[Evidence]:
    for index, frame in enumerate(recording.frames):
        if frame.side is ScriptedSide.SERVER and frame.label == PROCESS and json.loads(frame.data)["state"] == "left":
            yield check.evidence(index, "", f"{GONE_S:g} s after the stop a process of {frame.who} is still there")
