"""GWP-066."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


class UnknownToolSucceeds(Check):
    """A call of a tool that does not exist is an error.

    What it checks
        A client calls a name that no server has; it gets the error -32602.

    Why
        An invented success, or an HTTP error page, tells the model that something happened.

    How to fix
        Answer -32602 for a name that is not listed.

    Reference
        Tools, Error Handling: unknown tools are protocol errors, -32602 in the example; all revisions.
    """

    code = "GWP-066"
    spec = "server/tools#error-handling"
    family = Family.NAMES
    level = RequirementLevel.SHOULD

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = await lab.client(route)
            await client.call(lab.record_on(route), "gwp066_nobody_has_this", label="unknown")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("unknown"):
            error = plain_value(exchange.response).get("error")
            code = error.get("code") if isinstance(error, dict) else None
            if code != -32602:
                instead = "no error" if code is None else f"the code {code}"
                yield self.evidence(
                    exchange.index, "/error/code", f"{exchange.route.era} client: it answers with {instead}"
                )
