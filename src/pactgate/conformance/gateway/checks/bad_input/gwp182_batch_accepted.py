"""GWP-182."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import META, BadRequest, FrontDoorCheck


class BatchAccepted(FrontDoorCheck):
    """A batch is refused where the revision has none.

    What it checks
        A client of 2025-11-25, and one of 2026-07-28, sends an array of one request. It is refused with an error of JSON-RPC or
        HTTP 4xx, and the next request is answered.

    Why
        Batches were removed with 2025-06-18. A batch that is half understood loses requests without a word.

    How to fix
        Answer -32600 to an array, except to clients of 2025-03-26.

    Reference
        Changes of 2025-06-18: JSON-RPC batching is removed.
    """

    code = "GWP-182"
    spec = "basic/index#messages"
    legacy = (BadRequest('[{"jsonrpc":"2.0","id":"gwp182","method":"tools/list"}]'),)
    modern = (BadRequest(f'[{{"jsonrpc":"2.0","id":"gwp182","method":"tools/list","params":{{{META}}}}}]'),)
