"""GWP-180."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import BadRequest, FrontDoorCheck


class BrokenJsonAccepted(FrontDoorCheck):
    """A body that is not JSON is refused.

    What it checks
        A client sends half an object, and an empty body. Both are refused with an error of JSON-RPC or HTTP 4xx, and the next
        request is answered.

    Why
        A client with a bug, or a cut connection, sends such bodies. A 500 or a hanging request hides whose fault it is.

    How to fix
        Answer -32700 with HTTP 400.

    Reference
        JSON-RPC 2.0, section 5.1; no revision names an HTTP status.
    """

    code = "GWP-180"
    spec = "basic/index#responses"
    legacy = modern = (BadRequest('{"jsonrpc":"2.0","id":"gwp180","method":"tools/list"'), BadRequest(""))
