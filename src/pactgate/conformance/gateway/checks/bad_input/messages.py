"""Messages that are none, or not of the protocol, are refused."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.bad_input.front_door import META, BadRequest, FrontDoorCheck, answer_to
from pactgate.conformance.gateway.recording import ScriptedExchange
from pactgate.conformance.rule import RequirementLevel


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


class NotificationAnswered(FrontDoorCheck):
    """A notification has no answer.

    What it checks
        A client sends a notification of a method that nobody knows. What comes back is HTTP 202 without a body, or HTTP 4xx, and
        the next request is answered.

    Why
        A client that gets a response it did not ask for can't match it, and some end the session.

    How to fix
        Answer HTTP 202 to what has no id.

    Reference
        Streamable HTTP, Sending Messages to the Server: 202 Accepted with no body; all revisions.
    """

    code = "GWP-188"
    spec = "basic/transports/streamable-http"
    level = RequirementLevel.MUST
    legacy = (BadRequest('{"jsonrpc":"2.0","method":"notifications/gwp188"}', method="notifications/gwp188"),)
    modern = (
        BadRequest(
            f'{{"jsonrpc":"2.0","method":"notifications/gwp188","params":{{{META}}}}}',
            method="notifications/gwp188",
        ),
    )

    def why_wrong(self, exchange: ScriptedExchange) -> str:
        response = exchange.response
        if response is None or 400 <= response.status < 500:
            return ""
        is_silent = 200 <= response.status < 300 and not response.data.strip()
        return "" if is_silent else answer_to(exchange)


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
