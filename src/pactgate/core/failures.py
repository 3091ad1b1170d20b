"""The failure taxonomy and the one table from a failure to everything that is said about it.

Every failure path of the product raises a `GatewayFailure` of one `Kind`. The table gives its category, codes, place on the wire,
HTTP status, retryability and what is known of side effects; the views only read it. Must not: know any transport.
Enforces S4/F1-F4, S4/CODES, S4/FMT-ERR, S4/FMT-RES, S1/RESP-002, S1/RESP-006 and decisions D4-D7.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct

from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era


class Category(StrEnum):
    CONTRACT_VIOLATION = "contract_violation"
    UPSTREAM_FAILURE = "upstream_failure"
    TRANSPORT_FAILURE = "transport_failure"
    CONFIGURATION_ERROR = "configuration_error"


class ErrorCode(StrEnum):
    """The codes of the runtime envelope (S1) with INVALID_OUTPUT, PERMISSION_DENIED (S2) and OBJECT_TOO_DEEP."""

    INVALID_INPUT = "INVALID_INPUT"
    MISSING_REQUIRED_FIELD = "MISSING_REQUIRED_FIELD"
    INVALID_FORMAT = "INVALID_FORMAT"
    ARRAY_TOO_LARGE = "ARRAY_TOO_LARGE"
    STRING_TOO_LONG = "STRING_TOO_LONG"
    OBJECT_TOO_DEEP = "OBJECT_TOO_DEEP"
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    CONFLICT = "CONFLICT"
    OPERATION_FAILED = "OPERATION_FAILED"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    RATE_LIMITED = "RATE_LIMITED"
    MEMORY_PRESSURE = "MEMORY_PRESSURE"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    PERMISSION_DENIED = "PERMISSION_DENIED"


RETRYABLE_ERRORS: Final = frozenset(
    {ErrorCode.TOOL_TIMEOUT, ErrorCode.RATE_LIMITED, ErrorCode.MEMORY_PRESSURE, ErrorCode.SERVICE_UNAVAILABLE}
)


class EcosystemCode(StrEnum):
    SERVER_NOT_FOUND = "MCP_ECO_SERVER_NOT_FOUND"
    TOOL_NOT_FOUND = "MCP_ECO_TOOL_NOT_FOUND"
    CONNECTION_FAILED = "MCP_ECO_CONNECTION_FAILED"
    CONNECTION_TIMEOUT = "MCP_ECO_CONNECTION_TIMEOUT"
    INVOCATION_FAILED = "MCP_ECO_INVOCATION_FAILED"
    DISCOVERY_FAILED = "MCP_ECO_DISCOVERY_FAILED"
    INVALID_CONFIG = "MCP_ECO_INVALID_CONFIG"
    SERVER_EXISTS = "MCP_ECO_SERVER_EXISTS"
    AMBIGUOUS_TOOL = "MCP_ECO_AMBIGUOUS_TOOL"


class Verdict(StrEnum):
    """Whether the action can have happened (D6)."""

    DID_NOT_RUN = "did_not_run"
    MAY_HAVE_RUN = "may_have_run"
    RAN = "ran"


class Party(StrEnum):
    """Who has to act for the failure to go away."""

    CALLER = "caller"
    UPSTREAM = "upstream"
    GATEWAY = "gateway"
    OPERATOR = "operator"


class Kind(StrEnum):
    """The failure modes, spelt as `failure_mode` on the wire. One row of the table each."""

    PARSE_ERROR = "parse_error"
    INVALID_REQUEST = "invalid_request"
    METHOD_NOT_FOUND = "method_not_found"
    INVALID_PARAMS = "invalid_params"
    HEADER_MISMATCH = "header_mismatch"
    UNSUPPORTED_VERSION = "unsupported_version"
    UNAUTHENTICATED = "unauthenticated"
    INSUFFICIENT_SCOPE = "insufficient_scope"
    UNKNOWN_PATH = "unknown_path"
    UNKNOWN_SESSION = "unknown_session"
    UNKNOWN_SERVER = "unknown_server"
    UNKNOWN_TOOL = "unknown_tool"
    AMBIGUOUS_TOOL = "ambiguous_tool"
    UNKNOWN_PROMPT = "unknown_prompt"
    AMBIGUOUS_PROMPT = "ambiguous_prompt"
    UNKNOWN_RESOURCE = "unknown_resource"
    AMBIGUOUS_RESOURCE = "ambiguous_resource"
    INVALID_ARGUMENTS = "invalid_arguments"
    LIMIT_EXCEEDED = "limit_exceeded"
    PERMISSION_DENIED = "permission_denied"
    FORBIDDEN = "forbidden"
    CONFLICT = "conflict"
    CHANGE_UNDONE = "change_undone"
    DEFINITION_CHANGED = "definition_changed"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    DESTINATION_REFUSED = "destination_refused"
    AUTHORIZATION_REQUIRED = "authorization_required"
    AUDIT_UNAVAILABLE = "audit_unavailable"
    STATE_UNAVAILABLE = "state_unavailable"
    REPLICA_LOST = "replica_lost"
    CONNECTION_FAILED = "connection_failed"
    CONNECT_TIMEOUT = "connect_timeout"
    CALL_TIMEOUT = "call_timeout"
    CONNECTION_LOST = "connection_lost"
    INVALID_FRAME = "invalid_frame"
    UPSTREAM_ERROR = "upstream_error"
    TOOL_ERROR = "tool_error"
    HTTP_STATUS = "http_status"
    EMPTY_RESPONSE = "empty_response"
    NON_JSON_RESPONSE = "non_json_response"
    UNDECODABLE_RESPONSE = "undecodable_response"
    MALFORMED_RESULT = "malformed_result"
    SCHEMA_MISMATCH = "schema_mismatch"
    RESPONSE_TOO_LARGE = "response_too_large"
    INPUT_UNANSWERED = "input_unanswered"
    MISSING_CAPABILITY = "missing_capability"
    CANCELLED = "cancelled"
    INVALID_CONFIG = "invalid_config"
    INTERNAL = "internal"


class Plane(StrEnum):
    """Where a failure of a tool call is shown: as a JSON-RPC error, or as a tool result with `isError`."""

    ERROR = "error"
    RESULT = "result"


class Row(NamedTuple):
    category: Category
    code: ErrorCode
    ecosystem: EcosystemCode | None
    plane: Plane
    number: int
    mode: str
    party: Party
    verdict: Verdict


_C, _U, _T = Category.CONTRACT_VIOLATION, Category.UPSTREAM_FAILURE, Category.TRANSPORT_FAILURE
_E, _X = ErrorCode, EcosystemCode
_ERR, _RES = Plane.ERROR, Plane.RESULT
_NO, _MAY, _RAN = Verdict.DID_NOT_RUN, Verdict.MAY_HAVE_RUN, Verdict.RAN
_INTERNAL, _PARAMS = messages.INTERNAL_ERROR, messages.INVALID_PARAMS

TABLE: Final[dict[Kind, Row]] = {
    Kind.PARSE_ERROR: Row(_C, _E.INVALID_FORMAT, None, _ERR, messages.PARSE_ERROR, "parse_error", Party.CALLER, _NO),
    Kind.INVALID_REQUEST: Row(
        _C, _E.INVALID_FORMAT, None, _ERR, messages.INVALID_REQUEST, "invalid_request", Party.CALLER, _NO
    ),
    Kind.METHOD_NOT_FOUND: Row(
        _C, _E.NOT_IMPLEMENTED, None, _ERR, messages.METHOD_NOT_FOUND, "method_not_found", Party.CALLER, _NO
    ),
    Kind.INVALID_PARAMS: Row(_C, _E.INVALID_INPUT, None, _ERR, _PARAMS, "invalid_params", Party.CALLER, _NO),
    Kind.HEADER_MISMATCH: Row(
        _C, _E.INVALID_INPUT, None, _ERR, messages.HEADER_MISMATCH, "header_mismatch", Party.CALLER, _NO
    ),
    Kind.UNSUPPORTED_VERSION: Row(
        _C, _E.NOT_IMPLEMENTED, None, _ERR, messages.UNSUPPORTED_VERSION, "unsupported_version", Party.CALLER, _NO
    ),
    Kind.UNAUTHENTICATED: Row(
        _C, _E.PERMISSION_DENIED, None, _ERR, messages.INVALID_REQUEST, "unauthenticated", Party.CALLER, _NO
    ),
    Kind.INSUFFICIENT_SCOPE: Row(
        _C, _E.PERMISSION_DENIED, None, _ERR, messages.INVALID_REQUEST, "insufficient_scope", Party.CALLER, _NO
    ),
    Kind.UNKNOWN_PATH: Row(_C, _E.NOT_FOUND, None, _ERR, messages.INVALID_REQUEST, "unknown_path", Party.CALLER, _NO),
    Kind.UNKNOWN_SESSION: Row(
        _C, _E.NOT_FOUND, None, _ERR, messages.INVALID_REQUEST, "unknown_session", Party.CALLER, _NO
    ),
    Kind.UNKNOWN_SERVER: Row(_C, _E.NOT_FOUND, _X.SERVER_NOT_FOUND, _ERR, _PARAMS, "unknown_server", Party.CALLER, _NO),
    Kind.UNKNOWN_TOOL: Row(_C, _E.NOT_FOUND, _X.TOOL_NOT_FOUND, _ERR, _PARAMS, "unknown_tool", Party.CALLER, _NO),
    Kind.AMBIGUOUS_TOOL: Row(
        _C, _E.INVALID_INPUT, _X.AMBIGUOUS_TOOL, _ERR, _PARAMS, "ambiguous_tool", Party.CALLER, _NO
    ),
    Kind.UNKNOWN_PROMPT: Row(_C, _E.NOT_FOUND, None, _ERR, _PARAMS, "unknown_prompt", Party.CALLER, _NO),
    Kind.AMBIGUOUS_PROMPT: Row(_C, _E.INVALID_INPUT, None, _ERR, _PARAMS, "ambiguous_prompt", Party.CALLER, _NO),
    Kind.UNKNOWN_RESOURCE: Row(_C, _E.NOT_FOUND, None, _ERR, _PARAMS, "unknown_resource", Party.CALLER, _NO),
    Kind.AMBIGUOUS_RESOURCE: Row(_C, _E.INVALID_INPUT, None, _ERR, _PARAMS, "ambiguous_resource", Party.CALLER, _NO),
    Kind.INVALID_ARGUMENTS: Row(_C, _E.INVALID_INPUT, None, _ERR, _PARAMS, "invalid_arguments", Party.CALLER, _NO),
    Kind.LIMIT_EXCEEDED: Row(_C, _E.REQUEST_TOO_LARGE, None, _ERR, _PARAMS, "limit_exceeded", Party.CALLER, _NO),
    Kind.PERMISSION_DENIED: Row(_C, _E.PERMISSION_DENIED, None, _RES, _PARAMS, "permission_denied", Party.CALLER, _NO),
    Kind.FORBIDDEN: Row(_C, _E.PERMISSION_DENIED, None, _RES, _PARAMS, "forbidden", Party.CALLER, _NO),
    Kind.CONFLICT: Row(_C, _E.CONFLICT, None, _RES, _PARAMS, "conflict", Party.CALLER, _NO),
    Kind.CHANGE_UNDONE: Row(_C, _E.OPERATION_FAILED, None, _RES, _INTERNAL, "change_undone", Party.OPERATOR, _NO),
    Kind.DEFINITION_CHANGED: Row(
        _U, _E.CONFLICT, _X.INVOCATION_FAILED, _RES, _INTERNAL, "definition_changed", Party.OPERATOR, _NO
    ),
    Kind.RATE_LIMITED: Row(_C, _E.RATE_LIMITED, None, _RES, _INTERNAL, "rate_limited", Party.CALLER, _NO),
    Kind.OVERLOADED: Row(_T, _E.SERVICE_UNAVAILABLE, None, _RES, _INTERNAL, "overloaded", Party.GATEWAY, _NO),
    Kind.DESTINATION_REFUSED: Row(
        _T, _E.PERMISSION_DENIED, _X.INVOCATION_FAILED, _RES, _INTERNAL, "destination_refused", Party.OPERATOR, _NO
    ),
    Kind.AUTHORIZATION_REQUIRED: Row(
        _U, _E.PERMISSION_DENIED, _X.CONNECTION_FAILED, _RES, _INTERNAL, "authorization_required", Party.OPERATOR, _NO
    ),
    Kind.AUDIT_UNAVAILABLE: Row(
        _T, _E.SERVICE_UNAVAILABLE, None, _RES, _INTERNAL, "audit_unavailable", Party.OPERATOR, _NO
    ),
    Kind.STATE_UNAVAILABLE: Row(
        _T, _E.SERVICE_UNAVAILABLE, None, _RES, _INTERNAL, "state_unavailable", Party.OPERATOR, _NO
    ),
    Kind.REPLICA_LOST: Row(_T, _E.OPERATION_FAILED, None, _RES, _INTERNAL, "replica_lost", Party.GATEWAY, _MAY),
    Kind.CONNECTION_FAILED: Row(
        _T, _E.SERVICE_UNAVAILABLE, _X.CONNECTION_FAILED, _RES, _INTERNAL, "connection_failed", Party.UPSTREAM, _NO
    ),
    Kind.CONNECT_TIMEOUT: Row(
        _T, _E.SERVICE_UNAVAILABLE, _X.CONNECTION_TIMEOUT, _ERR, _INTERNAL, "timeout", Party.UPSTREAM, _NO
    ),
    Kind.CALL_TIMEOUT: Row(_T, _E.TOOL_TIMEOUT, _X.INVOCATION_FAILED, _ERR, _INTERNAL, "timeout", Party.UPSTREAM, _MAY),
    Kind.CONNECTION_LOST: Row(
        _T, _E.OPERATION_FAILED, _X.INVOCATION_FAILED, _RES, _INTERNAL, "connection_lost", Party.UPSTREAM, _MAY
    ),
    Kind.INVALID_FRAME: Row(
        _T, _E.OPERATION_FAILED, _X.INVOCATION_FAILED, _RES, _INTERNAL, "invalid_frame", Party.UPSTREAM, _MAY
    ),
    Kind.UPSTREAM_ERROR: Row(
        _U, _E.OPERATION_FAILED, _X.INVOCATION_FAILED, _RES, _INTERNAL, "upstream_error", Party.UPSTREAM, _MAY
    ),
    Kind.TOOL_ERROR: Row(_U, _E.OPERATION_FAILED, None, _RES, _INTERNAL, "tool_error", Party.UPSTREAM, _RAN),
    Kind.HTTP_STATUS: Row(
        _U, _E.OPERATION_FAILED, _X.INVOCATION_FAILED, _RES, _INTERNAL, "http_status", Party.UPSTREAM, _MAY
    ),
    Kind.EMPTY_RESPONSE: Row(
        _U, _E.INVALID_OUTPUT, _X.INVOCATION_FAILED, _RES, _INTERNAL, "empty_response", Party.UPSTREAM, _RAN
    ),
    Kind.NON_JSON_RESPONSE: Row(
        _U, _E.INVALID_OUTPUT, _X.INVOCATION_FAILED, _RES, _INTERNAL, "non_json_response", Party.UPSTREAM, _RAN
    ),
    Kind.UNDECODABLE_RESPONSE: Row(
        _U, _E.INVALID_OUTPUT, _X.INVOCATION_FAILED, _RES, _INTERNAL, "undecodable_response", Party.UPSTREAM, _RAN
    ),
    Kind.MALFORMED_RESULT: Row(
        _U, _E.INVALID_OUTPUT, _X.INVOCATION_FAILED, _RES, _INTERNAL, "malformed_result", Party.UPSTREAM, _RAN
    ),
    Kind.SCHEMA_MISMATCH: Row(
        _U, _E.INVALID_OUTPUT, _X.INVOCATION_FAILED, _RES, _INTERNAL, "schema_mismatch", Party.UPSTREAM, _RAN
    ),
    Kind.RESPONSE_TOO_LARGE: Row(
        _U, _E.OPERATION_FAILED, _X.INVOCATION_FAILED, _RES, _INTERNAL, "response_too_large", Party.UPSTREAM, _RAN
    ),
    Kind.INPUT_UNANSWERED: Row(_C, _E.OPERATION_FAILED, None, _RES, _INTERNAL, "input_unanswered", Party.CALLER, _MAY),
    Kind.MISSING_CAPABILITY: Row(
        _C,
        _E.NOT_IMPLEMENTED,
        None,
        _ERR,
        messages.MISSING_CLIENT_CAPABILITY,
        "missing_capability",
        Party.CALLER,
        _NO,
    ),
    Kind.CANCELLED: Row(_C, _E.OPERATION_FAILED, None, _ERR, _INTERNAL, "cancelled", Party.CALLER, _MAY),
    Kind.INVALID_CONFIG: Row(
        Category.CONFIGURATION_ERROR,
        _E.INVALID_INPUT,
        _X.INVALID_CONFIG,
        _ERR,
        _INTERNAL,
        "invalid_config",
        Party.OPERATOR,
        _NO,
    ),
    Kind.INTERNAL: Row(_C, _E.INTERNAL_ERROR, None, _ERR, _INTERNAL, "internal", Party.GATEWAY, _MAY),
}


_SHARED_DETAILS: Final = frozenset({"signal", "cause", "phase"})
"""Details that are words of the gateway. Any other text in the details may be what an upstream wrote."""


class GatewayFailure(Exception):  # noqa: N818 - the name the failure model gives it
    """One failure, raised where it is noticed and rendered in one place.

    `message` is for the request that met it, for the log and for administrators: it may quote what an upstream wrote. `public` is for
    everybody else and quotes nothing, because the text may be about another caller, or be meant to be read as the gateway's own words.
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        server: str | None = None,
        tool: str | None = None,
        operation: str | None = None,
        code: str | None = None,
        is_transient: bool | None = None,
        number: int | None = None,
        verdict: Verdict | None = None,
        attempts: int | None = None,
        retry_after_ms: int | None = None,
        details: dict[str, Any] | None = None,
        public: str | None = None,
    ) -> None:
        super().__init__(message)
        row = TABLE[kind]
        self.kind = kind
        self.message = message
        self.public = message if public is None else public
        self.server = server
        self.tool = tool
        self.operation = operation
        self.category = row.category
        self.code: str = code or row.code
        """A code of ours, or one that the contract of the tool declares."""
        self.is_transient = self.code in RETRYABLE_ERRORS if is_transient is None else is_transient
        self.ecosystem = row.ecosystem
        self.plane = row.plane
        self.number = number if number is not None else row.number
        self.mode = row.mode
        self.party = row.party
        self.verdict = verdict or row.verdict
        self.attempts = attempts
        self.retry_after_ms = retry_after_ms
        self.details = details or {}

    def again(self, *, verdict: Verdict | None = None, operation: str | None = None) -> GatewayFailure:
        """The same failure for one more request that met it: an exception of its own, so that tracebacks don't mix."""
        twin = GatewayFailure(self.kind, self.message)
        vars(twin).update(vars(self))
        twin.verdict = verdict or self.verdict
        twin.operation = operation or self.operation
        return twin

    def shared(self, *, verdict: Verdict | None = None, operation: str | None = None) -> GatewayFailure:
        """The same failure for a request that did not cause it: without anything that an upstream wrote."""
        twin = self.again(verdict=verdict, operation=operation)
        if self.public != self.message:
            twin.message, twin.args = self.public, (self.public,)
            twin.details = {
                name: detail
                for name, detail in self.details.items()
                if isinstance(detail, bool | int | float) or name in _SHARED_DETAILS
            }
        return twin

    def reword(self, change: Callable[[str], str]) -> None:
        """Change both messages alike, for example to mask secrets."""
        self.message, self.public = change(self.message), change(self.public)

    def record(self) -> dict[str, Any]:
        """Everything known, under the names the requirement documents use; absent facts are left out.

        Details may repeat what an upstream said, so they never stand in for a fact of ours.
        """
        facts: dict[str, Any] = {
            "failure_mode": self.mode,
            "category": self.category.value,
            "code": str(self.code),
            "party": self.party.value,
            "verdict": self.verdict.value,
            "transient": self.is_transient,
        }
        optional = {
            "ecosystemCode": self.ecosystem.value if self.ecosystem else None,
            "server": self.server,
            "tool": self.tool,
            "operation": self.operation,
            "attempts": self.attempts,
            "retryAfterMs": self.retry_after_ms,
        }
        ours = facts.keys() | optional.keys()
        facts.update((name, fact) for name, fact in optional.items() if fact is not None)
        facts.update((name, detail) for name, detail in self.details.items() if name not in ours)
        return facts


class WireError(Struct, frozen=True, gc=False):
    code: int
    message: str
    data: Any = None


class Reply(Struct, frozen=True, gc=False):
    """What the kernel answers: a result as JSON bytes, or an error."""

    result: bytes | None = None
    error: WireError | None = None


class WireSettings(Struct, frozen=True):
    """Which failures of a tool call are shown to the model instead of the client (D5)."""

    argument_errors: Plane = Plane.ERROR
    timeouts: Plane = Plane.ERROR


ENVELOPE_KEY: Final = "dev.pactgate/envelope"
_ARGUMENT_KINDS: Final = frozenset({Kind.INVALID_ARGUMENTS, Kind.LIMIT_EXCEEDED})
_TIMEOUT_KINDS: Final = frozenset({Kind.CONNECT_TIMEOUT, Kind.CALL_TIMEOUT})


def plane_of(failure: GatewayFailure, wire: WireSettings) -> Plane:
    if failure.kind in _ARGUMENT_KINDS:
        return wire.argument_errors
    if failure.kind in _TIMEOUT_KINDS:
        return wire.timeouts
    return failure.plane


def to_reply(failure: GatewayFailure, *, is_tool_call: bool, era: Era, wire: WireSettings, request_id: str) -> Reply:
    """The wire view: a tool result where the failure model asks for one and the method has results to carry it, else an error."""
    facts = failure.record()
    facts["requestId"] = request_id
    if is_tool_call and plane_of(failure, wire) is Plane.RESULT:
        result = error_result(failure.message, facts)
        if era is Era.MODERN:
            result["resultType"] = "complete"
        return Reply(result=encode_json(result))
    number = failure.number
    if failure.kind is Kind.UNKNOWN_RESOURCE and era is Era.LEGACY:
        number = messages.RESOURCE_NOT_FOUND  # the handshake revisions have a code of their own for it
    return Reply(error=WireError(number, failure.message, facts))


def error_result(text: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True, "_meta": {ENVELOPE_KEY: {"failure": facts}}}


_STATUS: Final = {
    messages.PARSE_ERROR: 400,
    messages.INVALID_REQUEST: 400,
    messages.INVALID_PARAMS: 400,
    messages.METHOD_NOT_FOUND: 404,
    messages.HEADER_MISMATCH: 400,
    messages.MISSING_CLIENT_CAPABILITY: 400,
    messages.UNSUPPORTED_VERSION: 400,
}


def http_status(code: int) -> int:
    """The status of a modern answer that carries this error; legacy answers are always 200 (spec: streamable HTTP)."""
    return _STATUS.get(code, 200)
