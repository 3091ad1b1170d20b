"""GWP-186."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import META, BadRequest, FrontDoorCheck
from pactgate.conformance.rule import RequirementLevel


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
