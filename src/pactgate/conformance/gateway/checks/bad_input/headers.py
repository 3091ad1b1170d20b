"""Headers that are missing, foreign or wrong are refused."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import META, BadRequest, FrontDoorCheck, answer_to
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


class HeaderContradictsBody(FrontDoorCheck):
    """Headers that contradict the body are refused.

    What it checks
        A modern client sends `tools/list` with the header `Mcp-Method: tools/call`. It is refused with HTTP 400, and the next
        request is answered.

    Why
        Balancers and firewalls decide by the header and the gateway by the body; what they see must be the same.

    How to fix
        Compare `Mcp-Method`, `Mcp-Name` and `MCP-Protocol-Version` with the body; answer -32020 with HTTP 400.

    Reference
        Streamable HTTP, Server Validation; 2026-07-28.
    """

    code = "GWP-185"
    spec = "basic/transports/streamable-http"
    level = RequirementLevel.MUST
    eras = ("modern",)
    modern = (
        BadRequest(
            f'{{"jsonrpc":"2.0","id":"gwp185","method":"tools/list","params":{{{META}}}}}',
            {"Mcp-Method": "tools/call"},
        ),
    )


class VersionHeaderLeftOut(FrontDoorCheck):
    """A modern request without its version header is refused.

    What it checks
        A modern client leaves out the header `MCP-Protocol-Version`. The request is refused with HTTP 400, and the next request is
        answered.

    Why
        The header is what intermediaries go by; a request without it is not what the revision defines.

    How to fix
        Answer -32020 with HTTP 400.

    Reference
        Streamable HTTP, Protocol Version Header and Server Validation; 2026-07-28.
    """

    code = "GWP-186"
    spec = "basic/transports/streamable-http"
    level = RequirementLevel.MUST
    eras = ("modern",)
    modern = (
        BadRequest(
            f'{{"jsonrpc":"2.0","id":"gwp186","method":"tools/list","params":{{{META}}}}}',
            {"MCP-Protocol-Version": None},
        ),
    )
