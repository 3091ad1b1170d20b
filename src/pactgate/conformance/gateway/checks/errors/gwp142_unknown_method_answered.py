"""GWP-142."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, error_code
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


class UnknownMethodAnswered(Check):
    """A method that nobody knows is refused as unknown.

    What it checks
        A client sends the method `gwp142/nobody`. It gets an error of JSON-RPC, with the code -32601 unless the status is 4xx.

    Why
        Clients find out by this code what a server can do. Any other one reads as a fault that may pass.

    How to fix
        Answer -32601.

    Reference
        JSON-RPC 2.0, section 5.1; Streamable HTTP of 2026-07-28: 404 with -32601.
    """

    code = "GWP-142"
    spec = "basic/index#responses"
    family = Family.ERRORS
    level = RequirementLevel.SHOULD

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = await lab.client(route)
            await client.request(lab.record_on(route), "gwp142/nobody", label="unknown")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("unknown"):
            response = exchange.response
            code = error_code(exchange)
            if code != -32601 and not (code is not None and response is not None and 400 <= response.status < 500):
                instead = "no error" if code is None else f"the code {code}"
                yield self.evidence(exchange.index, "/error", f"{exchange.route.era} client: it answers with {instead}")
