"""GWP-187."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import (
    META,
    BadRequest,
    FrontDoorCheck,
    answer_to,
)
from pactgate.conformance.gateway.recording import ScriptedExchange

_LEVELS = 3000
DEEP = f'{{"name":"gwp187","arguments":{{"a":{"[" * _LEVELS}{"]" * _LEVELS}}}}}'


class DeepNestingCrashes(FrontDoorCheck):
    """Arguments nested three thousand levels deep are no failure of the gateway.

    What it checks
        A client calls a tool with arguments of 3,000 nested arrays. The answer is a message of JSON-RPC or HTTP 4xx, and the next
        request is answered.

    Why
        Most parsers recurse. The exception of one that runs out of stack takes its request along, and at times its process.

    How to fix
        Bound the depth before parsing, and refuse what is deeper.

    Reference
        No revision names a depth.
    """

    code = "GWP-187"
    spec = "server/tools#calling-tools"
    legacy = (
        BadRequest(f'{{"jsonrpc":"2.0","id":"gwp187","method":"tools/call","params":{DEEP}}}', method="tools/call"),
    )
    modern = (
        BadRequest(
            f'{{"jsonrpc":"2.0","id":"gwp187","method":"tools/call","params":{DEEP[:-1]},{META}}}}}',
            {"Mcp-Name": "gwp187"},
            "tools/call",
        ),
    )

    def why_wrong(self, exchange: ScriptedExchange) -> str:
        response = exchange.response
        is_answered = response is not None and 0 < response.status < 500 and (response.data or response.status >= 400)
        return "" if is_answered else answer_to(exchange)
