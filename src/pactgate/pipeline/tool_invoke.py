"""`tool_invoke`: a call that names its tool in its arguments becomes a call of that tool, before anything is counted or sent.

So the tool that runs is the one whose bounds, quota, time limit and record count (D17), and its answer is the answer. Must not: resolve
a name, or unwrap twice; a `tool_invoke` that names itself is refused. Enforces the indirection of S2/MCP-006.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Raw

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Tool
from pactgate.pipeline.call import Call
from pactgate.protocol import messages

TOOL_INVOKE: Final = "tool_invoke"


def unwrap(call: Call, outer: Tool) -> None:
    """Read the arguments of `tool_invoke` into the call: the name that is meant, its arguments, a shorter time limit."""
    if call.is_indirect:
        raise _refused(outer, f"{TOOL_INVOKE} can't invoke itself; name the tool you mean")
    given = call.members.get("arguments", Raw(b"{}"))
    errors = outer.input_check.check(bytes(given)) if outer.input_check is not None else ()
    if errors:
        raise _refused(outer, errors[0].message, [error.facts() for error in errors])
    members = messages.members(bytes(given))
    call.requested = call.ctx.requested = messages.value(members["name"])
    call.members["arguments"] = members.get("arguments", Raw(b"{}"))
    call.arguments = UNSET
    if "timeoutMs" in members:
        limit_ms: int = messages.value(members["timeoutMs"])
        call.caller_limit_ms = min(limit_ms, call.caller_limit_ms or limit_ms)
    call.is_indirect = True
    call.ctx.via = outer.full_name


def _refused(outer: Tool, why: str, errors: list[dict[str, object]] | None = None) -> GatewayFailure:
    return GatewayFailure(
        Kind.INVALID_ARGUMENTS,
        f"The arguments of {outer.full_name} can't be used: {why}.",
        server=outer.server,
        tool=outer.full_name,
        operation="tools/call",
        details={"errors": errors or []},
    )
