"""What the checks of cancellation share: a call that is given up while the server works on it. Must not: wait without a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.progress.notices import PROGRESS
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, Frame, ScriptedSide
from pactgate.conformance.gateway.script import named
from pactgate.conformance.rule import Evidence

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

    family = Family.PROGRESS

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
