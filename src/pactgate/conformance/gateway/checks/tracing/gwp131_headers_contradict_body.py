"""GWP-131."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.checks.tracing.credentials import header
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, named
from pactgate.conformance.rule import Evidence, RequirementLevel


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
    family = Family.TRACING
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
                if header(frame, name) != value:
                    yield self.evidence(
                        index, "", f"{name} is {header(frame, name) or 'missing'}, the body says {value}"
                    )
