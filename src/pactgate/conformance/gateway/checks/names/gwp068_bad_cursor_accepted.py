"""GWP-068."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


class BadCursorAccepted(Check):
    """A cursor that nobody gave out is refused.

    What it checks
        A client lists tools with a made-up cursor; it gets the error -32602.

    Why
        A client with an old cursor has to learn that it begins again. The first page in its place is read as the next one.

    How to fix
        Check the cursor; answer -32602.

    Reference
        Pagination, Error Handling: invalid cursors should result in -32602; all revisions.
    """

    code = "GWP-068"
    spec = "server/utilities/pagination#error-handling"
    family = Family.NAMES
    level = RequirementLevel.SHOULD

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = await lab.client(route)
            await client.request(
                lab.record_on(route), "tools/list", '"cursor":"gwp-nobody-gave-this-out"', label="cursor"
            )

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("cursor"):
            error = plain_value(exchange.response).get("error")
            code = error.get("code") if isinstance(error, dict) else None
            if code != -32602:
                instead = "no error" if code is None else f"the code {code}"
                yield self.evidence(
                    exchange.index, "/error/code", f"{exchange.route.era} client: it answers with {instead}"
                )
