"""GWP-183."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import BadRequest, FrontDoorCheck


class BytesThatAreNotUtf8Crash(FrontDoorCheck):
    """Bytes that are not UTF-8 are no failure of the gateway.

    What it checks
        A client sends a request with the byte FF in a string. It is refused with an error of JSON-RPC or HTTP 4xx, and the next
        request is answered.

    Why
        An exception of a decoder, seen as a 500, tells an operator to look for a fault that is the client's.

    How to fix
        Answer -32700 with HTTP 400.

    Reference
        Transports: JSON-RPC messages must be UTF-8 encoded; all revisions.
    """

    code = "GWP-183"
    spec = "basic/transports"
    legacy = modern = (BadRequest('{"jsonrpc":"2.0","id":"gwp183","method":"tools/list\udcff"}'),)
