"""Names and cursors that nobody gave out are refused."""

from __future__ import annotations

from pactgate.conformance.gateway.check import RefusalCheck
from pactgate.conformance.gateway.lab import Lab


class UnknownToolSucceeds(RefusalCheck):
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

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = await lab.client(route)
            await client.call(lab.record_on(route), "gwp066_nobody_has_this", label="unknown")


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
    refused = "cursor"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = await lab.client(route)
            await client.request(
                lab.record_on(route), "tools/list", '"cursor":"gwp-nobody-gave-this-out"', label="cursor"
            )
