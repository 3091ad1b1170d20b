"""The gates after a call came back: judge the result, shape it for the caller's era.

Must not: change anything an era change does not require.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.pipeline.tool_call import Call
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era


class _ToolResult(Struct):
    content: Raw | UnsetType = UNSET
    structuredContent: Raw | UnsetType = UNSET  # noqa: N815 - the wire's spelling
    isError: bool = False  # noqa: N815
    resultType: str = "complete"  # noqa: N815


_result: Final = msgspec.json.Decoder(_ToolResult)


class AcceptResult:
    """A result must be one: an array of content or structured content, a boolean isError, complete."""

    name = "accept_result"

    def __call__(self, call: Call) -> None:
        try:
            read = _result.decode(call.result)
        except msgspec.DecodeError as problem:
            raise _malformed(call, str(problem)) from problem
        if read.content is UNSET and read.structuredContent is UNSET:
            raise _malformed(call, "it has neither content nor structuredContent")
        if not isinstance(read.content, UnsetType) and not bytes(read.content).startswith(b"["):
            raise _malformed(call, "its content is not an array")
        if read.resultType != "complete":
            raise _malformed(call, f"it is {read.resultType!r}, which this caller did not offer to handle")
        if read.isError:
            call.ctx.note_tool_error()


class Shape:
    """What the caller's era asks of a result, and nothing more."""

    name = "shape"

    def __init__(self, server_info: bytes) -> None:
        self._server_info = server_info

    def __call__(self, call: Call) -> None:
        if call.ctx.caller.era is Era.MODERN:
            members = messages.members(call.result)
            call.result = encode_json(modern.complete(members, self._server_info, cacheable=False))
        elif call.upstream_era is Era.MODERN:
            call.result = encode_json(modern.strip_result(messages.members(call.result)))


def _malformed(call: Call, why: str) -> GatewayFailure:
    tool = call.bound_tool
    return GatewayFailure(
        Kind.MALFORMED_RESULT,
        f"{tool.full_name} answered with a result that breaks the protocol: {why}",
        server=tool.server,
        tool=tool.full_name,
        operation="tools/call",
    )
