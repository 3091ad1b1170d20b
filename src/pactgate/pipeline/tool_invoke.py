"""`tool_invoke`, and `call_tool` of a search surface: a call that names its tool in its arguments becomes a call of that tool.

So the tool that runs is the one whose bounds, quota, time limit and record count (D17), and its answer is the answer. Must not: resolve
a name, or unwrap twice; a `tool_invoke` that names itself is refused. Enforces the indirection of S2/MCP-006.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Raw

from pactgate.catalog.search_surface import CALL_READ, CALL_WRITE, CALLS, is_search_tool
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Tool
from pactgate.pipeline.call import Call
from pactgate.protocol import messages

TOOL_INVOKE: Final = "tool_invoke"
INDIRECT: Final = CALLS | {TOOL_INVOKE}
"""The tools of the gateway itself that name another one."""


def unwrap(call: Call, outer: Tool) -> None:
    """Read the arguments of a tool that names another one into the call: the name that is meant, its arguments, a shorter time limit."""
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
    call.outer = outer
    call.ctx.via = outer.full_name


def require_fit(tool: Tool, outer: Tool) -> None:
    """Raise if the outer tool may not call this one: reads and writes may have tools of their own, and nothing is nested."""
    if outer.name == CALL_READ and not tool.traits.is_read_only:
        raise _refused(outer, f"{tool.full_name} may change something; use {CALL_WRITE}")
    if tool.server == outer.server and (tool.name in INDIRECT or is_search_tool(tool)):
        named = "itself" if tool.name == outer.name else tool.name
        raise _refused(outer, f"{outer.name} can't invoke {named}; name the tool you mean")


def _refused(outer: Tool, why: str, errors: list[dict[str, object]] | None = None) -> GatewayFailure:
    return GatewayFailure(
        Kind.INVALID_ARGUMENTS,
        f"The arguments of {outer.full_name} can't be used: {why}.",
        server=outer.server,
        tool=outer.full_name,
        operation="tools/call",
        details={"errors": errors or []},
    )
