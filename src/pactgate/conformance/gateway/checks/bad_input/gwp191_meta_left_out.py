"""GWP-191."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import BadRequest, FrontDoorCheck
from pactgate.conformance.rule import RequirementLevel


class MetaLeftOut(FrontDoorCheck):
    """A modern request without its `_meta` is refused.

    What it checks
        A client sends all headers of 2026-07-28 and a body without `_meta`. It is refused with HTTP 400, and the next request is
        answered.

    Why
        Without the version and the capabilities in it nobody can say what the client understands.

    How to fix
        Answer -32602 with HTTP 400.

    Reference
        Base Protocol, _meta: the protocol version and the client's capabilities are required; 2026-07-28.
    """

    code = "GWP-191"
    spec = "basic/index#meta"
    level = RequirementLevel.MUST
    eras = ("modern",)
    modern = (BadRequest('{"jsonrpc":"2.0","id":"gwp191","method":"tools/list"}'),)
