"""GWP-188."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import (
    META,
    BadRequest,
    FrontDoorCheck,
    answer_to,
)
from pactgate.conformance.gateway.recording import ScriptedExchange
from pactgate.conformance.rule import RequirementLevel


class NotificationAnswered(FrontDoorCheck):
    """A notification has no answer.

    What it checks
        A client sends a notification of a method that nobody knows. What comes back is HTTP 202 without a body, or HTTP 4xx, and
        the next request is answered.

    Why
        A client that gets a response it did not ask for can't match it, and some end the session.

    How to fix
        Answer HTTP 202 to what has no id.

    Reference
        Streamable HTTP, Sending Messages to the Server: 202 Accepted with no body; all revisions.
    """

    code = "GWP-188"
    spec = "basic/transports/streamable-http"
    level = RequirementLevel.MUST
    legacy = (BadRequest('{"jsonrpc":"2.0","method":"notifications/gwp188"}', method="notifications/gwp188"),)
    modern = (
        BadRequest(
            f'{{"jsonrpc":"2.0","method":"notifications/gwp188","params":{{{META}}}}}',
            method="notifications/gwp188",
        ),
    )

    def why_wrong(self, exchange: ScriptedExchange) -> str:
        response = exchange.response
        if response is None or 400 <= response.status < 500:
            return ""
        is_silent = 200 <= response.status < 300 and not response.data.strip()
        return "" if is_silent else answer_to(exchange)
