"""GWP-144."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedResource
from pactgate.conformance.rule import Evidence, RequirementLevel


class UnknownResourceSucceeds(Check):
    """A resource that does not exist is an error.

    What it checks
        A client sends `resources/read` for a resource that no server has. It gets an error of JSON-RPC.

    Why
        An empty result says that it exists and has nothing in it.

    How to fix
        Answer with an error for a resource that no server has.

    Reference
        Resources, Error Handling: -32602 in 2026-07-28, -32002 before.
    """

    code = "GWP-144"
    spec = "server/resources#error-handling"
    family = Family.ERRORS
    level = RequirementLevel.SHOULD
    resources = (ScriptedResource(uri="gwp://gwp144/@"),)

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = await lab.client(route)
            await client.request(
                lab.record_on(route),
                "resources/read",
                '"uri":"gwp://gwp144/nobody"',
                name="gwp://gwp144/nobody",
                label="unknown",
            )

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("unknown"):
            if "error" not in plain_value(exchange.response):
                yield self.evidence(exchange.index, "", f"{exchange.route.era} client: it is answered without an error")
