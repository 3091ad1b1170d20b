"""GWP-068."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, RefusalCheck, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


class BadCursorAccepted(RefusalCheck):
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
    refused = "cursor"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = await lab.client(route)
            await client.request(
                lab.record_on(route), "tools/list", '"cursor":"gwp-nobody-gave-this-out"', label="cursor"
            )
