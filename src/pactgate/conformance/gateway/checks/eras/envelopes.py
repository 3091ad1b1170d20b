"""What one era adds to messages is there for it, and for it alone."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel
from pactgate.protocol.modern import PROTOCOL_VERSION_KEY


class ResultTypeDropped(Check):
    """Every result for a modern client has a `resultType`.

    What it checks
        A modern client lists and calls tools of servers of both eras; each result says `complete`.

    Why
        A client reads by `resultType` whether it has a result or questions. Results of legacy servers have none, so a gateway adds
        it.

    How to fix
        Add `resultType: "complete"` where the server is of the legacy era.

    Reference
        Base protocol, Result Type; 2026-07-28.
    """

    code = "GWP-050"
    spec = "basic/index#result-type"
    level = RequirementLevel.MUST
    eras = ("modern",)
    since = "2026-07-28"
    tools = (ScriptedTool(name="gwp050_@"),)

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            client, tool = await lab.client(route), lab.exposed(route, self.tools[0].name)
            await client.request(lab.record_on(route), "tools/list")
            await client.call(lab.record_on(route), tool, label="called")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            result = plain_value(exchange.response).get("result")
            if isinstance(result, dict) and result.get("resultType") != "complete":
                kind = result.get("resultType")
                where = "/result/resultType"
                yield self.evidence(
                    exchange.index, where, f"{exchange.route}: {exchange.request.label}: it is {kind!r:.40}"
                )
            elif not isinstance(result, dict):
                yield self.evidence(exchange.index, "", f"{exchange.route}: {exchange.request.label} has no result")


class EnvelopeLeaksToLegacyServer(Check):
    """The envelope of a modern client does not reach a legacy server.

    What it checks
        A modern client calls a tool of a legacy server; the server gets no `io.modelcontextprotocol/protocolVersion` in `_meta`.

    Why
        A server of both eras takes a request with an envelope for a modern one, and refuses it in a legacy session.

    How to fix
        Remove the keys of the protocol from `_meta` before a request goes to a legacy server.

    Reference
        Versioning, Server Selection of an Era; 2026-07-28.
    """

    code = "GWP-051"
    spec = "basic/versioning"
    eras = ("modern",)
    servers = ("lh", "ls")
    needs_gateway = True
    tools = (ScriptedTool(name="gwp051_@"),)

    async def play(self, lab: Lab) -> None:
        lab.require_gateway()
        for route in lab.routes(self):
            client, tool = await lab.client(route), lab.exposed(route, self.tools[0].name)
            await client.call(lab.record_on(route), tool, label=f"gwp051_{route.server}")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for index, frame in enumerate(recording.frames):
            if frame.side is ScriptedSide.SERVER and not frame.is_sent:
                params = plain_value(frame).get("params")
                meta = params.get("_meta") if isinstance(params, dict) else None
                if isinstance(meta, dict) and PROTOCOL_VERSION_KEY in meta:
                    yield self.evidence(index, "/params/_meta", f"{frame.who} got {PROTOCOL_VERSION_KEY}")
        if not any(frame.side is ScriptedSide.SERVER for frame in recording.frames):
            yield self.evidence(0, "", "no server got the call")
