"""The headers that mirror a modern request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
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
                    if frame.header(name) != value:
                        came = frame.header(name) or "nothing"
                        yield self.evidence(index, "", f"{name} is {came:.60}, not {value or 'absent'}")


class HeadersContradictBody(Check):
    """The headers of a request to a modern server say what its body says.

    What it checks
        A client of either era calls a tool of a modern server over HTTP; `Mcp-Method`, `Mcp-Name` and `MCP-Protocol-Version` of the
        request that the server gets agree with its body. Names that the gateway changes must be changed in both.

    Why
        The server must refuse a request whose headers differ (-32020).

    How to fix
        Write the headers from the body that is sent; do not pass on those of the client.

    Reference
        Streamable HTTP, Request Metadata and Server Validation; 2026-07-28.
    """

    code = "GWP-131"
    spec = "basic/transports/streamable-http"
    level = RequirementLevel.MUST
    since = "2026-07-28"
    servers = ("mh",)
    tools = (ScriptedTool(name="gwp131_@"),)

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            client, tool = await lab.client(route), lab.exposed(route, self.tools[0].name)
            label = named(self.tools[0].name, route.server)
            await client.call(lab.record_on(route), tool, label=label, timeout_s=lab.call_s)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            if not recording.at_server(exchange.route.server, exchange.request.label, is_sent=False):
                yield self.evidence(exchange.index, "", f"{exchange.route}: the server never got the call")
        for index, frame in enumerate(recording.frames):
            if frame.side is not ScriptedSide.SERVER or frame.is_sent:
                continue
            message = plain_value(frame)
            found = message.get("params")
            params = found if isinstance(found, dict) else {}
            version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
            pairs = {
                "mcp-method": message.get("method"),
                "mcp-name": params.get("name"),
                "mcp-protocol-version": version,
            }
            for name, value in pairs.items():
                if frame.header(name) != value:
                    yield self.evidence(
                        index, "", f"{name} is {frame.header(name) or 'missing'}, the body says {value}"
                    )


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
