"""GWP-185."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import META, BadRequest, FrontDoorCheck
from pactgate.conformance.rule import RequirementLevel


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
