"""The facts about a finished call beside its result: the views of the library and of the admin API, and the envelope on the wire.

All three come from the same facts and the same failure (D4). An error that a tool reports is a failure too, with the message of the tool.
Must not: change content, or trust what a server wrote under our key.
Enforces S1/RESP-001, S1/RESP-002, S1/RESP-005, S1/RESP-006, S1/TIMEOUT-004, S1/TIMEOUT-005 and decisions D7, D21.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.core.contract import CODE_PATTERN, ToolFault
from pactgate.core.display import cut
from pactgate.core.failures import (
    ENVELOPE_KEY,
    EcosystemCode,
    ErrorCode,
    GatewayFailure,
    Kind,
    Reply,
    Verdict,
    WireError,
)
from pactgate.policy import response_size
from pactgate.protocol import messages, modern
from pactgate.protocol.json_limits import has_duplicate_member
from pactgate.protocol.messages import encode_json

MESSAGE_CHARS: Final = 1000
FAILURE_BYTES: Final = 16_384
_MEMOISED_BYTES: Final = 1024
"""What a failure may say beside its message; an upstream's error data can be as large as a frame."""
_STAMP_BYTES: Final = 320
"""More than a stamp takes beside the names of server, tool and revision."""
_ERROR_BYTES: Final = 48
"""What an error takes beside its message and data: its code and the names of the three."""
_FLAGS: Final = {
    (cached, truncated, validated): encode_json({"cached": cached, "truncated": truncated, "validated": validated})[1:]
    for cached in (False, True)
    for truncated in (False, True)
    for validated in (False, True)
}
_KEY: Final = encode_json(ENVELOPE_KEY)
_TOOL_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_PROTOCOL_MEMBERS: Final = ("isError", "resultType")

encode_view: Final = msgspec.json.Encoder(decimal_format="number").encode
"""Writes a view with every number as the upstream wrote it, also those no machine holds."""


class CallFacts(Struct, frozen=True, gc=False):
    """One finished call. `tool` is its full name, or the name that was asked for when no tool was found.

    `is_idempotent` is what the tool declares, None when it declares nothing. `duration_ms` comes from a monotonic clock.
    """

    request_id: str
    duration_ms: float
    server: str | None = None
    tool: str | None = None
    is_cached: bool = False
    is_truncated: bool = False
    original_size_bytes: int | None = None
    is_validated: bool = False
    upstream_revision: str | None = None
    is_idempotent: bool | None = None
    effects_level: str = "unknown"
    """At which level the effects of the tool are known (D12)."""
    observed: bytes = b""
    """What the tool was seen to do, as encoded members of the envelope."""
    fault: ToolFault | None = None
    """What a contract tool's own error says, in words of its contract."""
    is_empty: bool = False

    @property
    def whole_ms(self) -> int:
        return max(0, int(self.duration_ms))


Outcome = bytes | GatewayFailure
"""How a call ended: with a tool result, which may be a tool's own error, or with a failure of ours."""


class _Result(Struct):
    content: Raw = Raw(b"[]")
    structuredContent: Raw = Raw(b"null")  # noqa: N815 - the wire's spelling
    isError: bool = False  # noqa: N815


_result: Final = msgspec.json.Decoder(_Result)


def is_retryable(failure: GatewayFailure, facts: CallFacts) -> bool:
    """D7: the code says that trying again may help, and the tool does not say that it may do harm."""
    return failure.is_transient and facts.is_idempotent is not False


def runtime_view(facts: CallFacts, outcome: Outcome) -> dict[str, Any]:
    """The envelope of the runtime document: `SUCCESS_SCHEMA` or `ERROR_SCHEMA`, never both."""
    failure = failure_of(facts, outcome)
    metadata: dict[str, Any] = {
        "durationMs": facts.whole_ms,
        "cached": facts.is_cached,
        "truncated": facts.is_truncated,
        "requestId": facts.request_id,
    }
    if facts.original_size_bytes is not None:
        metadata["originalSizeBytes"] = facts.original_size_bytes
    if facts.is_empty:
        metadata["empty"] = True
    if failure is None:
        return {"success": True, "data": _data(outcome), "metadata": metadata}
    return {"success": False, "error": _error(facts, failure), "metadata": metadata}


def ecosystem_view(facts: CallFacts, outcome: Outcome) -> dict[str, Any]:
    """The answer to an invocation of the ecosystem document: `ECOSYSTEM_SCHEMA`. A tool's own error keeps its content."""
    failure = failure_of(facts, outcome)
    view: dict[str, Any] = {
        "success": failure is None,
        "toolName": facts.tool,
        "serverId": facts.server,
        "content": [] if isinstance(outcome, GatewayFailure) else messages.value(outcome).get("content", []),
        "isError": failure is not None,
        "durationMs": facts.whole_ms,
    }
    if failure is not None:
        view["error"] = _message(failure)
        view["errorCode"] = str(failure.ecosystem or failure.code)
    return view


def failure_of(facts: CallFacts, outcome: Outcome) -> GatewayFailure | None:
    """The failure a call ended with, a tool's own error included; None for a success."""
    if isinstance(outcome, GatewayFailure):
        return outcome
    result = _result.decode(outcome)
    if not result.isError:
        return None
    words = _words(messages.value(result.content))
    if facts.fault is not None:
        return _contract_failure(facts, facts.fault, words)
    code = _tool_code(messages.value(result.structuredContent))
    return GatewayFailure(
        Kind.TOOL_ERROR,
        words or f"{facts.tool or 'The tool'} reported an error without saying which.",
        server=facts.server,
        tool=facts.tool,
        operation="tools/call",
        details={} if code is None else {"toolCode": code},
    )


def _contract_failure(facts: CallFacts, fault: ToolFault, words: str) -> GatewayFailure:
    said = {**fault.details, "undeclaredCode": fault.undeclared} if fault.undeclared else fault.details
    return GatewayFailure(
        Kind.TOOL_ERROR,
        fault.message or words,
        server=facts.server,
        tool=facts.tool,
        operation="tools/call",
        code=fault.code,
        is_transient=fault.is_transient,
        details=said,
    )


def failure_facts(
    facts: CallFacts, failure: GatewayFailure, max_bytes: int = FAILURE_BYTES, *, has_message: bool = False
) -> dict[str, Any]:
    """Everything known of a failure for whoever has to act on it, within a bound.

    `has_message` adds the message, for a result: its content may be empty, or have no text.
    """
    told = {"message": _message(failure), **failure.record()} if has_message else failure.record()
    told["dispatched"] = failure.verdict is not Verdict.DID_NOT_RUN
    told["retryable"] = is_retryable(failure, facts)
    wait_ms = told.pop("retryAfterMs", None)
    if wait_ms is not None and told["retryable"]:
        told["retryAfterMs"] = wait_ms
        told["retryAfter"] = max(1, -(-wait_ms // 1000))
    return response_size.fit_facts(told, max_bytes)


def merge_meta(
    envelope: bytes, meta: Raw | bytes | None, server_info: bytes = b"", *, strip_modern: bool = False
) -> bytes:
    """The `_meta` of a result: our envelope, and the members of the server under other keys.

    `server_info` is the identity a modern caller is told, unless the server told its own. `strip_modern` leaves out what only a modern
    caller understands, for a caller that is not one.
    """
    held = b"" if meta is None else bytes(meta)
    others = (_memoised_others if len(held) <= _MEMOISED_BYTES else _others)(held, server_info, strip_modern)
    return b"{%b%b" % (envelope, others)


def _others(meta: bytes, server_info: bytes, strip_modern: bool) -> bytes:
    """The other members of `_meta`, with the closing brace."""
    others = messages.members(meta) if meta[:1] == b"{" else {}
    if others and has_duplicate_member(meta):
        raise GatewayFailure(Kind.MALFORMED_RESULT, "The result breaks the protocol: a key stands twice in its _meta.")
    others.pop(ENVELOPE_KEY, None)
    if server_info:
        others.setdefault(modern.SERVER_INFO_KEY, Raw(server_info))
    elif strip_modern:
        others = {key: value for key, value in others.items() if not key.startswith(modern.PREFIX)}
    return b",%b" % encode_json(others)[1:] if others else b"}"


# A server says the same of itself in each answer; reading that again would cost 2 us per call. At most 256 KiB.
_memoised_others: Final = lru_cache(maxsize=256)(_others)


def room_bytes(server: str | None, tool: str | None, upstream_revision: str | None) -> int:
    """What `stamp` adds to a result that did not fail, at most: to be kept free when the result is fitted."""
    return _STAMP_BYTES + len(origin_of(server, tool, upstream_revision, "partly enforced"))


def stamp_failure(reply: Reply, facts: CallFacts, failure: GatewayFailure, max_bytes: int) -> Reply:
    """A failure's reply with the envelope, in `_meta` of a tool result or in `data` of an error, within the bound."""
    is_error = reply.error is not None
    told = failure_facts(facts, failure, min(FAILURE_BYTES, max_bytes // 2), has_message=not is_error)
    if reply.error is not None:
        data = {
            **told,
            "effects": facts.effects_level.partition(":")[0],
            "requestId": facts.request_id,
            "durationMs": facts.whole_ms,
        }
        error = WireError(reply.error.code, reply.error.message or _message(failure), data)
        return Reply(error=response_size.fit_error(error, max_bytes - _ERROR_BYTES))
    members = messages.members(reply.result or b"{}")
    stamped = {"_meta": Raw(merge_meta(encode_envelope(facts, told), members.pop("_meta", None)))}
    around = len(stamped["_meta"]) + len(',"_meta":')
    fitted = response_size.fit(encode_json(members), max_bytes, has_output_schema=False, reserve_bytes=around)
    if isinstance(fitted, response_size.TooLarge):  # a bound so small that names alone fill it
        return Reply(result=encode_json({**members, "content": []}))
    return Reply(result=encode_json({**messages.members(fitted.result), **stamped}))


def encode_envelope(facts: CallFacts, failure: dict[str, Any] | None = None) -> bytes:
    """Our member of `_meta`, encoded; by hand from encoded parts, because every call pays for it. `failure` is from `failure_facts`."""
    end = _FLAGS[facts.is_cached, facts.is_truncated, facts.is_validated]
    if facts.original_size_bytes is not None:
        end = b'"originalSizeBytes":%d,%b' % (facts.original_size_bytes, end)
    if facts.is_empty:
        end = b'"empty":true,%b' % end
    if failure is not None:
        end = b'"failure":%b,%b' % (encode_json(failure), end)
    return b'%b:{"requestId":"%b",%b"durationMs":%d,%b%b' % (
        _KEY,
        facts.request_id.encode(),
        origin_of(facts.server, facts.tool, facts.upstream_revision, facts.effects_level),
        facts.duration_ms if facts.duration_ms > 0 else 0,
        facts.observed,
        end,
    )


@lru_cache(maxsize=1024)
def origin_of(server: str | None, tool: str | None, revision: str | None, effects: str = "unknown") -> bytes:
    """Where a result comes from, and how far the effects of its tool are known, as the stamp says it."""
    level = effects.partition(":")[0]
    known = {"server": server, "tool": tool, "upstreamRevision": revision, "effects": level}
    return b"".join(
        b"%b:%b," % (encode_json(name), encode_json(held)) for name, held in known.items() if held is not None
    )


def _error(facts: CallFacts, failure: GatewayFailure) -> dict[str, Any]:
    told = messages.value(
        encode_json(failure_facts(facts, failure))
    )  # an upstream's words are kept as raw JSON until here
    error = {
        "code": told.pop("code"),
        "message": _message(failure),
        "retryable": told.pop("retryable"),
        "context": told,
    }
    if "retryAfterMs" in told:
        error["retryAfterMs"] = told.pop("retryAfterMs")
    return error


def _message(failure: GatewayFailure) -> str:
    """One to a thousand characters, and never only white space."""
    return cut(failure.message.strip() or f"The call failed: {failure.mode}.", MESSAGE_CHARS)


def _data(outcome: Outcome) -> dict[str, Any]:
    """The result as the tool gave it, without the members that only steer the protocol and without our own stamp."""
    assert isinstance(outcome, bytes)
    result: dict[str, Any] = messages.value(outcome)
    data = {name: held for name, held in result.items() if name not in _PROTOCOL_MEMBERS}
    meta = data.get("_meta")
    if isinstance(meta, dict) and meta.pop(ENVELOPE_KEY, None) is not None and not meta:
        del data["_meta"]
    return data


def _words(content: list[Any]) -> str:
    """The texts of a result, joined."""
    texts = (item.get("text") for item in content if isinstance(item, dict) and item.get("type") == "text")
    return "\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())


def _tool_code(structured: Any) -> str | None:
    """The code a tool under the tool contract gives its own error: `error.code` of its structured result."""
    error = structured.get("error") if isinstance(structured, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) and _TOOL_CODE.fullmatch(code) else None


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """A closed object; every property that is not optional is required."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_WHOLE: Final = {"type": "integer", "minimum": 0}
_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": MESSAGE_CHARS}
_FLAG: Final = {"type": "boolean"}
_CODES: Final = [code.value for code in ErrorCode]
_DECLARED_CODE: Final = {"type": "string", "pattern": CODE_PATTERN}
"""A code of the contract of the tool."""
_UUID: Final = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"

METADATA_SCHEMA: Final = _object(
    {
        "durationMs": _WHOLE,
        "cached": _FLAG,
        "truncated": _FLAG,
        "originalSizeBytes": _WHOLE,
        "empty": _FLAG,
        "requestId": {"type": "string", "format": "uuid", "pattern": _UUID},
    },
    optional=("originalSizeBytes", "empty"),
)
SUCCESS_SCHEMA: Final = _object({"success": {"const": True}, "data": {}, "metadata": METADATA_SCHEMA})
ERROR_SCHEMA: Final = _object(
    {
        "success": {"const": False},
        "error": _object(
            {
                "code": {"anyOf": [{"enum": _CODES}, _DECLARED_CODE]},
                "message": _TEXT,
                "context": {"type": "object", "required": ["failure_mode", "category", "transient", "dispatched"]},
                "retryable": _FLAG,
                "retryAfterMs": _WHOLE,
            },
            optional=("retryAfterMs",),
        ),
        "metadata": METADATA_SCHEMA,
    }
)
ECOSYSTEM_SCHEMA: Final = _object(
    {
        "success": _FLAG,
        "toolName": {"type": ["string", "null"]},
        "serverId": {"type": ["string", "null"]},
        "content": {"type": "array"},
        "isError": _FLAG,
        "error": _TEXT,
        "errorCode": {"anyOf": [{"enum": [*(code.value for code in EcosystemCode), *_CODES]}, _DECLARED_CODE]},
        "durationMs": _WHOLE,
    },
    optional=("error", "errorCode"),
)
