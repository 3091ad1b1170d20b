"""What a record says in the words of OpenTelemetry's conventions for MCP, for metrics and spans alike.

The names are those of `docs/gen-ai/mcp.md` in open-telemetry/semantic-conventions-genai (2026, status: development). Must not: let a
client or a server choose a value that is not bounded in number; unknown methods are `other`, unknown error codes `_OTHER`.
"""

from __future__ import annotations

from typing import Final

from pactgate.core.context import ExecutionRecord
from pactgate.protocol import messages
from pactgate.protocol.versions import METHODS

OTHER: Final = "other"
"""Stands for methods and tools beyond those that are counted by themselves."""
_OTHER_ERROR: Final = "_OTHER"
"""What OpenTelemetry calls an error type that is none of the known ones."""
TOOL_ERROR: Final = "tool_error"
CALL: Final = "tools/call"
_SOCKET: Final = "unix"
"""What stands for the address of a client on the Unix socket."""
_KNOWN_CODES: Final = frozenset(
    {
        *(messages.PARSE_ERROR, messages.INVALID_REQUEST, messages.METHOD_NOT_FOUND, messages.INVALID_PARAMS),
        *(messages.INTERNAL_ERROR, messages.RESOURCE_NOT_FOUND, messages.URL_REQUIRED, messages.HEADER_MISMATCH),
        *(messages.MISSING_CLIENT_CAPABILITY, messages.UNSUPPORTED_VERSION),
    }
)


_OF_CALLER: Final = frozenset(
    {
        *(messages.PARSE_ERROR, messages.INVALID_REQUEST, messages.METHOD_NOT_FOUND, messages.INVALID_PARAMS),
        messages.RESOURCE_NOT_FOUND,
    }
)
"""Answered to a request that can't be served: by the conventions no error of the server that answers so."""


def method_of(record: ExecutionRecord) -> str:
    return record.method if record.method in METHODS else OTHER


def server_error_type(record: ExecutionRecord) -> str:
    """`error.type` of what the client was answered: a JSON-RPC code, `tool_error`, or `cancelled`; empty where nothing failed here."""
    if record.error_code is not None:
        return "" if record.error_code in _OF_CALLER else code_text(record.error_code)
    if record.outcome == "cancelled":
        return "cancelled"
    return "" if record.outcome == "ok" else TOOL_ERROR


def client_error_type(record: ExecutionRecord) -> str:
    """`error.type` of what the server answered: its own JSON-RPC code, `tool_error`, or how it failed; empty for a success."""
    failure = record.failure
    if failure is None:
        return TOOL_ERROR if record.outcome == TOOL_ERROR else ""
    code = upstream_code(record)
    if code is not None:
        return code_text(code)
    is_ours = failure.get("party") == "gateway"
    return "" if is_ours else str(failure["failure_mode"])


def upstream_code(record: ExecutionRecord) -> int | None:
    """The code of the JSON-RPC error that the server answered."""
    said = (record.failure or {}).get("upstream")
    code = said.get("code") if isinstance(said, dict) else None
    return code if isinstance(code, int) else None


def code_text(code: int) -> str:
    return str(code) if code in _KNOWN_CODES else _OTHER_ERROR


def transport_of(record: ExecutionRecord) -> str:
    """`network.transport` towards the client."""
    if record.peer == _SOCKET:
        return "unix"
    return "tcp" if record.peer else "pipe"
