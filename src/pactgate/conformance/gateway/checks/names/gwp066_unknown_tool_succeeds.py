"""GWP-066."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, RefusalCheck, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


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
    family = Family.NAMES

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = await lab.client(route)
            await client.call(lab.record_on(route), "gwp066_nobody_has_this", label="unknown")
