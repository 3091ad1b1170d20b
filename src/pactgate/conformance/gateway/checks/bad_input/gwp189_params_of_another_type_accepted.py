"""GWP-189."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import BadRequest, FrontDoorCheck


class ParamsOfAnotherTypeAccepted(FrontDoorCheck):
    """Params that are no object are refused.

    What it checks
        A client sends `tools/list` with a string, and with an array, as `params`. Both are refused with an error of JSON-RPC or
        HTTP 4xx, and the next request is answered.

    Why
        A gateway that reads them as nothing answers another question than was asked.

    How to fix
        Answer -32600 or -32602.

    Reference
        Base Protocol, Requests: params is an object; all revisions.
    """

    code = "GWP-189"
    spec = "basic/index#requests"
    eras = ("legacy",)
    legacy = (
        BadRequest('{"jsonrpc":"2.0","id":"gwp189","method":"tools/list","params":"all"}'),
        BadRequest('{"jsonrpc":"2.0","id":"gwp189","method":"tools/list","params":["all"]}'),
    )
