"""GWP-184."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import (
    META,
    BadRequest,
    FrontDoorCheck,
    answer_to,
)
from pactgate.conformance.gateway.recording import ScriptedExchange
from pactgate.conformance.rule import RequirementLevel


class ForeignOriginAccepted(FrontDoorCheck):
    """A request of a foreign web page is refused.

    What it checks
        A client sends an ordinary request with the header `Origin: https://gwp.example`. It is refused with HTTP 403 or another
        4xx, and the next request is answered.

    Why
        Without this check every web page that somebody opens can call the tools on this machine, by DNS rebinding.

    How to fix
        Compare `Origin` with a list of those that may call; without the header nothing is to compare.

    Reference
        Streamable HTTP, Security Warning: servers must validate the Origin header; 403 since 2025-11-25.
    """

    code = "GWP-184"
    spec = "basic/transports/streamable-http"
    level = RequirementLevel.MUST
    legacy = (BadRequest('{"jsonrpc":"2.0","id":"gwp184","method":"tools/list"}', {"Origin": "https://gwp.example"}),)
    modern = (
        BadRequest(
            f'{{"jsonrpc":"2.0","id":"gwp184","method":"tools/list","params":{{{META}}}}}',
            {"Origin": "https://gwp.example"},
        ),
    )

    def why_wrong(self, exchange: ScriptedExchange) -> str:
        response = exchange.response
        is_refused = response is not None and 400 <= response.status < 500
        return "" if is_refused else f"it is not refused: {answer_to(exchange)}"
