"""GWP-153."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


class InventedSessionAccepted(Check):
    """A session that was never given out does not exist.

    What it checks
        A legacy client sends `tools/list` with an invented session id. It is refused with HTTP 4xx. Not applicable where no session
        id is given out.

    Why
        Where invented ids are as good as given ones, ids protect nothing.

    How to fix
        Answer HTTP 404 to a session id that you do not know.

    Reference
        Streamable HTTP, Session Management: 404 for what is no session any more; 2025-03-26 to 2025-11-25.
    """

    code = "GWP-153"
    spec = "basic/transports#session-management"
    family = Family.ISOLATION
    level = RequirementLevel.SHOULD
    eras = ("legacy",)
    needs_gateway = True

    async def play(self, lab: Lab) -> None:
        lab.require_gateway("Without a gateway between, the sessions are those of the server.")
        for route in lab.addresses(self):
            client, record = await lab.new_client(route), lab.record_on(route)
            if not client.has_session:
                raise NotApplicableError("It gives out no session ids.")
            headers = {"Mcp-Session-Id": "gwp153-nobody-gave-this-out"}
            await client.request(record, "tools/list", label="invented", headers=headers)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("invented"):
            response = exchange.response
            if response is None or not 400 <= response.status < 500:
                status = 0 if response is None else response.status
                yield self.evidence(exchange.index, "", f"an invented session is answered with HTTP {status}")
