"""The gates before a call leaves: read the params, find the tool, compare mirrored headers.

Must not: send anything, or change a byte of the arguments. Enforces the tools/call part of S4/F1 and S4/R2.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final

import msgspec
from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.model import Tool
from pactgate.pipeline.tool_call import Call
from pactgate.protocol import headers, messages, modern

_KNOWN_MEMBERS: Final = frozenset({"name", "arguments", "_meta", "task", "inputResponses", "requestState"})
_NAME: Final = msgspec.json.Decoder(str)
_MAX_NAME_CHARS: Final = 512


class Read:
    """The params of a call: a name, an object of arguments or none, `_meta` apart. Nothing else is interpreted."""

    name = "read"

    def __call__(self, call: Call) -> None:
        members = messages.members(call.params or b"{}")
        odd = messages.check_member_names(members, _KNOWN_MEMBERS)
        if odd is not None:
            raise _bad_params(odd)
        call.requested = _tool_name(members)
        arguments = members.get("arguments")
        if arguments is not None and not bytes(arguments).startswith(b"{"):
            raise _bad_params("arguments must be an object; leave the member out when there are none", call.requested)
        meta = members.pop("_meta", None)
        if meta is not None:
            _read_meta(call, bytes(meta))
        call.members = members


class Resolve:
    """The tool meant by the requested name, on one snapshot of the catalog."""

    name = "resolve"

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def __call__(self, call: Call) -> Awaitable[None] | None:
        try:
            tool = self._connections.catalog.tools.resolve(call.requested, call.ctx.caller.scope)
        except GatewayFailure as failure:
            if failure.kind is Kind.UNKNOWN_TOOL:
                return self._wait_and_resolve(call)
            raise
        _bind(call, tool)
        return None

    async def _wait_and_resolve(self, call: Call) -> None:
        _bind(call, await self._connections.resolve(call.requested, call.ctx.caller.scope))


class Mirror:
    """Arguments a modern HTTP caller mirrored into headers must say what the body says."""

    name = "mirror"

    def __call__(self, call: Call) -> None:
        sent: Mapping[str, list[str]] | None = call.ctx.caller.headers
        tool = call.bound_tool
        if sent is None or not tool.header_params:
            return
        arguments = messages.value(call.members.get("arguments", Raw(b"{}")))
        problem = headers.check_mirror(tool.header_params, arguments, sent)
        if problem is not None:
            raise GatewayFailure(
                Kind.INVALID_PARAMS, problem, number=messages.HEADER_MISMATCH, tool=tool.full_name, server=tool.server
            )


def _bind(call: Call, tool: Tool) -> None:
    call.tool = tool
    call.ctx.bind(tool)


def _tool_name(members: Mapping[str, Raw]) -> str:
    try:
        name = _NAME.decode(members["name"])
    except (KeyError, msgspec.DecodeError):
        raise _bad_params("name must be a string: the tool to call") from None
    if not 0 < len(name) <= _MAX_NAME_CHARS:
        raise _bad_params(f"name must have 1 to {_MAX_NAME_CHARS} characters")
    return name


def _read_meta(call: Call, text: bytes) -> None:
    try:
        meta = messages.members(text)
    except msgspec.DecodeError:
        raise _bad_params("_meta must be an object", call.requested) from None
    token = meta.get("progressToken")
    if token is not None:
        if messages.id_key(bytes(token)) is None:
            raise _bad_params("progressToken must be a string or an integer", call.requested)
        call.progress_token = token
    call.meta = modern.without_envelope(meta)


def _bad_params(why: str, tool: str | None = None) -> GatewayFailure:
    return GatewayFailure(Kind.INVALID_PARAMS, f"The params of tools/call can't be used: {why}.", tool=tool)
