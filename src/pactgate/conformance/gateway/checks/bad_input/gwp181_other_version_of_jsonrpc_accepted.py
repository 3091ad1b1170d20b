"""GWP-181."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import META, BadRequest, FrontDoorCheck


class OtherVersionOfJsonrpcAccepted(FrontDoorCheck):
    """A message that is not JSON-RPC 2.0 is refused.

    What it checks
        A client sends a request with `"jsonrpc":"1.0"` and one without the member. Both are refused with an error of JSON-RPC or
        HTTP 4xx, and the next request is answered.

    Why
        What a front door lets in, something behind it has to understand. Two readers that understand it differently are how attacks
        pass.

    How to fix
        Answer -32600.

    Reference
        Base Protocol, Messages: all messages must follow JSON-RPC 2.0; all revisions.
    """

    code = "GWP-181"
    spec = "basic/index#messages"
    legacy = (
        BadRequest('{"jsonrpc":"1.0","id":"gwp181","method":"tools/list"}'),
        BadRequest('{"id":"gwp181","method":"tools/list"}'),
    )
    modern = (BadRequest(f'{{"jsonrpc":"1.0","id":"gwp181","method":"tools/list","params":{{{META}}}}}'),)
