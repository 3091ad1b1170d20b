"""GWP-050."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel


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
    family = Family.ERAS
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
