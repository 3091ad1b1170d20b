"""GWP-190."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import BadRequest, FrontDoorCheck


class NullIdAccepted(FrontDoorCheck):
    """A request whose id is null is refused.

    What it checks
        A client sends a request with the id null. It is refused with an error of JSON-RPC or HTTP 4xx, and the next request is
        answered.

    Why
        Nothing can match its answer: an error that names no request has the same id.

    How to fix
        Answer -32600.

    Reference
        Base Protocol, Requests: the ID must not be null; all revisions.
    """

    code = "GWP-190"
    spec = "basic/index#requests"
    eras = ("legacy",)
    legacy = (BadRequest('{"jsonrpc":"2.0","id":null,"method":"tools/list"}'),)
