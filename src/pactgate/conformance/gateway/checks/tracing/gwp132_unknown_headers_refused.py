"""GWP-132."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, named
from pactgate.conformance.rule import Evidence

_HEADERS: Final = {
    "X-Gwp": "unknown",
    "Mcp-Gwp": "unknown",
    "Mcp-Param-Gwp-Unknown": "no argument asks for it",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "X-Gwp-Long": "0123456789abcdef" * 128,
}


class UnknownHeadersRefused(Check):
    """Headers that nobody knows do not break a call.

    What it checks
        A client calls with headers of its own, one of them of 2 KiB, one that begins with `Mcp-`, and one `Mcp-Param-*` that no argument
        asks for; the call has its result.

    Why
        Balancers, tracing and clients to come add headers.

    How to fix
        Ignore headers that you do not know.

    Reference
        RFC 9110, 5.1: unrecognised headers are ignored by recipients.
    """

    code = "GWP-132"
    spec = "basic/transports/streamable-http"
    family = Family.TRACING
    tools = (ScriptedTool(name="gwp132_@"),)

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            client, tool = await lab.client(route), lab.exposed(route, self.tools[0].name)
            label = named(self.tools[0].name, route.server)
            await client.call(lab.record_on(route), tool, label=label, headers=_HEADERS, timeout_s=lab.call_s)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            if "result" not in plain_value(exchange.response):
                status = 0 if exchange.response is None else exchange.response.status
                yield self.evidence(exchange.index, "", f"{exchange.route}: HTTP {status}, and no result")
