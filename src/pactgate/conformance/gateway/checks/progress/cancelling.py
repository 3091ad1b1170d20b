"""Calls that are given up while the server works on them. Must not: wait without a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from pactgate.conformance.gateway.check import Check
from pactgate.conformance.gateway.checks.progress.notices import PROGRESS
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, Frame, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, named
from pactgate.conformance.rule import Evidence, RequirementLevel

WAIT_S: Final = 4.0
"""How long a cancellation may take to reach the server."""
CANCELLED: Final = "notifications/cancelled"


def is_cancellation(frame: Frame) -> bool:
    """Whether a server was told so, or saw its stream closed."""
    return (
        frame.side is ScriptedSide.SERVER and not frame.is_sent and (not frame.data or f'"{CANCELLED}"' in frame.data)
    )


async def begin(check: Check, lab: Lab, route: ClientRoute, client: ScriptedClient) -> asyncio.Task[Frame]:
    """Call the first tool, and wait until the server works on it."""
    name = check.tools[0].name
    tool, label = lab.exposed(route, name), named(name, route.server)
    meta = f'"progressToken":"{label}"'
    calling = lab.start(client.call(lab.record_on(route), tool, label=label, meta=meta))
    await lab.until_server(label, lambda frame: not frame.is_sent, lab.call_s)
    return calling


async def stream_begun(lab: Lab, label: str) -> bool:
    """Whether the call has an event stream: something came on it."""
    return await lab.until_client(label, lambda frame: not frame.is_sent and f'"{PROGRESS}"' in frame.data, WAIT_S)


async def cancel(check: Check, lab: Lab, route: ClientRoute, client: ScriptedClient) -> asyncio.Task[Frame]:
    """Give a call up as clients of the era do: by a notice, or by closing the stream."""
    calling = await begin(check, lab, route, client)
    if route.era == "legacy":
        id_ = client.ids[named(check.tools[0].name, route.server)]
        await client.notify(lab.record_on(route), CANCELLED, f'"requestId":{id_},"reason":"gwp"')
    else:
        calling.cancel()
    return calling


async def end(calling: asyncio.Task[Frame]) -> None:
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)


class CancellationCheck(Check):
    """A client of the only one of `eras` gives a call up, and the server notices."""

    spec = "basic/utilities/cancellation"

    async def play(self, lab: Lab) -> None:
        """On every route, until the server has noticed."""

        async def one(route: ClientRoute, client: ScriptedClient) -> None:
            calling = await cancel(self, lab, route, client)
            await lab.until_server(named(self.tools[0].name, route.server), is_cancellation, WAIT_S)
            await end(calling)

        async with lab.listeners(self) as clients:
            await lab.in_turn(one(route, client) for route, client in clients.items())

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            server = exchange.route.server
            if exchange.request.label != named(self.tools[0].name, server):
                continue
            at_server = recording.at_server(server, exchange.request.label, is_sent=False)
            if not at_server:
                yield self.evidence(exchange.index, "", f"{exchange.route}: the server never got the call")
            elif not any(is_cancellation(frame) for _, frame in at_server):
                yield self.evidence(
                    exchange.index, "", f"{exchange.route}: within {WAIT_S:g} s the server was not told"
                )


class CancellationByNoticeLost(CancellationCheck):
    """A call that a legacy client cancels is cancelled at the server.

    What it checks
        A legacy client sends `notifications/cancelled` while a server works; within four seconds the server gets one for its request,
        or sees its stream closed (modern, over HTTP).

    Why
        Otherwise the server goes on with work that nobody wants, and that may change things.

    How to fix
        Cancel the request that you sent to the server, in the words of its era, with its own id.

    Reference
        Cancellation, Behavior Requirements: receivers should stop processing the cancelled request; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-085"
    level = RequirementLevel.SHOULD
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp085_@", steps=(ScriptStep("until_cancelled", seconds=6),)),)


class CancellationByClosingLost(CancellationCheck):
    """A call whose stream a modern client closes is cancelled at the server.

    What it checks
        A modern client closes the stream of its call while a server works; within four seconds the server sees its own stream closed, or
        gets `notifications/cancelled` (over stdio, or legacy).

    Why
        Closing the stream is the only way for a modern client to cancel over HTTP. Otherwise the server goes on with work that nobody
        wants.

    How to fix
        Watch the connection of the client, and cancel at the server in the words of its era.

    Reference
        Streamable HTTP, Cancellation: closing the response stream must be treated as cancellation; 2026-07-28.
    """

    code = "GWP-086"
    level = RequirementLevel.MUST
    since = "2026-07-28"
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp086_@", steps=(ScriptStep("until_cancelled", seconds=6),)),)
