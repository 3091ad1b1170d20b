"""GWP-130."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.tracing.credentials import header
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, named
from pactgate.conformance.rule import Evidence, RequirementLevel

_TYPES: Final = {"tenant": "string", "city": "string", "count": "integer", "flag": "boolean", "absent": "string"}
_PROPERTIES: Final = ",".join(f'"{n}":{{"type":"{t}","x-mcp-header":"Gwp-{n}"}}' for n, t in _TYPES.items())
_ARGUMENTS: Final = '{"tenant":"t 1","city":"\\u00e9","count":7,"flag":true}'
_EXPECTED: Final = {
    "mcp-param-gwp-tenant": "t 1",
    "mcp-param-gwp-city": "=?base64?w6k=?=",
    "mcp-param-gwp-count": "7",
    "mcp-param-gwp-flag": "true",
    "mcp-param-gwp-absent": "",
}


class ArgumentHeadersMissing(Check):
    """Arguments that a tool wants in headers reach a modern server in headers.

    What it checks
        A tool of a modern server over HTTP annotates five arguments with `x-mcp-header`; a client gives four of them. The server gets
        `Mcp-Param-*` for these four, with the value in plain ASCII or in base64, and none for the fifth, whatever the era of the client.

    Why
        The server refuses the call otherwise (-32020). A legacy client knows no such headers, so the gateway has to write them.

    How to fix
        Read the annotations of the input schema, and write the headers from the arguments of each call.

    Reference
        Streamable HTTP, Custom Headers from Tool Parameters: clients must send them; 2026-07-28.
    """

    code = "GWP-130"
    spec = "basic/transports/streamable-http"
    family = Family.TRACING
    level = RequirementLevel.MUST
    since = "2026-07-28"
    servers = ("mh",)
    tools = (
        ScriptedTool(name="gwp130_@", members=f'"inputSchema":{{"type":"object","properties":{{{_PROPERTIES}}}}}'),
    )

    async def play(self, lab: Lab) -> None:
        headers = {name: value for name, value in _EXPECTED.items() if value}
        for route in lab.routes(self):
            client, tool = await lab.client(route), lab.exposed(route, self.tools[0].name)
            own = headers if route.era == "modern" else {}
            label = named(self.tools[0].name, route.server)
            await client.call(lab.record_on(route), tool, _ARGUMENTS, label=label, headers=own, timeout_s=lab.call_s)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            got = recording.at_server(exchange.route.server, exchange.request.label, is_sent=False)
            if not got:
                yield self.evidence(exchange.index, "", f"{exchange.route}: the server never got the call")
        for index, frame in enumerate(recording.frames):
            if frame.who == "mh" and not frame.is_sent:
                for name, value in _EXPECTED.items():
                    if header(frame, name) != value:
                        came = header(frame, name) or "nothing"
                        yield self.evidence(index, "", f"{name} is {came:.60}, not {value or 'absent'}")
