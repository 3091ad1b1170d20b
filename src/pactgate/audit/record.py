"""The contents of audit records: of a request, from the sealed `ExecutionRecord` and the params; of a changed setting;
of refused credentials; of definitions that changed or hide characters.

Bounded and masked: no record is longer than a bound or has a secret of the configuration. Must not: know how records are written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pactgate.audit.argument_shapes import Masking, shape_of, values_of
from pactgate.core.context import ExecutionRecord
from pactgate.core.contract import Operation
from pactgate.core.events import (
    CompositionHazard,
    ConfigurationChanged,
    CredentialsRefused,
    EntriesChanged,
    ListenOpened,
    RequestRefused,
    ToolChanged,
)
from pactgate.core.failures import TABLE, Kind, Verdict
from pactgate.core.principal import PrincipalKind
from pactgate.core.request_kinds import CALL, EXTENSION, PROMPT, READ, SUBSCRIPTION, kind_of
from pactgate.protocol.messages import encode_json
from pactgate.protocol.modern import LISTEN

MAX_ARGUMENTS_BYTES: Final = 16_384
MAX_DECODED_BYTES: Final = 262_144
"""Larger arguments are not decoded; only their size is recorded."""
MAX_LIST_BYTES: Final = 16_384
MAX_LISTED: Final = 101
_NAME_CHARS: Final = 200
_TARGET_CHARS: Final = 300
_MESSAGE_CHARS: Final = 500
_PATH_CHARS: Final = 1000
_VALUE_CHARS: Final = 2000

_PLAIN_KINDS: Final = (PrincipalKind.ANONYMOUS, PrincipalKind.LOCAL, PrincipalKind.TOKEN)
"""Their subject says everything."""

Detail = Literal["shape", "values", "none"]


class CallRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """The members of the record of a call, or of another request. An absent member means none, or false."""

    kind: str
    time: str
    request_id: str
    method: str | None = None
    """Of a request that is not a tool call."""
    subject: str
    principal_kind: str | None = None
    """By what the subject is known, where that is no token of the configuration."""
    issuer: str = ""
    client_id: str = ""
    """Of a token of an identity provider; `client` is what a client calls itself."""
    client: str = ""
    peer: str = ""
    session: str | None = None
    era: str
    version: str
    server: str | None = None
    tool: str | None = None
    requested: str | None = None
    via: str | None = None
    category: str | None = None
    arguments: Any = None
    effects: str | None = None
    operations: list[Any] | None = None
    violations: list[Any] | None = None
    outcome: str
    verdict: str
    code: str | None = None
    party: str | None = None
    retry_after_ms: int | None = None
    message: str | None = None
    gate: str | None = None
    rule: int | None = None
    rule_at: str | None = None
    policy_revision: str | None = None
    revision: str | None = None
    duration_ms: float
    times: dict[str, float]
    cached: bool = False
    truncated: bool = False
    validated: bool = False


class _Params(Struct):
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


_params: Final = msgspec.json.Decoder(_Params)
_any: Final = msgspec.json.Decoder()
_object: Final = msgspec.json.Decoder(dict[str, Any])
_ARGUED: Final = (CALL, PROMPT)
"""Kinds of requests with a member `arguments`."""


def call_facts(
    record: ExecutionRecord, params: bytes | None, ended_at: float, detail: Detail, masking: Masking
) -> bytes:
    """The facts of a call, or of another request, as JSON. `ended_at` is the wall clock time of its end."""
    short, failure, asked_for = masking.short, record.failure, record.requested
    kind = kind_of(record.method) or EXTENSION
    is_renamed = asked_for is not None and asked_for != record.tool
    return encode_json(
        CallRecord(
            kind=kind,
            time=stamp(ended_at),
            request_id=record.request_id,
            method=None if kind == CALL else short(record.method, _NAME_CHARS),
            subject=short(record.subject, _NAME_CHARS),
            **_identity(record, masking),
            client=short(record.client, _NAME_CHARS),
            peer=record.peer,
            session=record.session,
            era=record.era,
            version=record.version,
            server=None if record.server is None else short(record.server, _NAME_CHARS),
            tool=record.tool,
            requested=short(asked_for, _TARGET_CHARS) if asked_for is not None and is_renamed else None,
            via=record.via,
            category=record.category,
            arguments=None
            if detail == "none" or kind == READ
            else arguments(params, detail, masking, is_nested=record.via is not None, is_whole=kind not in _ARGUED),
            effects=record.effects_level,
            operations=_operations(record.operations, masking) if record.operations else None,
            violations=_violations(record.violations, masking) if record.violations else None,
            outcome=record.outcome,
            verdict=verdict_of(record),
            code=code_of(record),
            party=failure.get("party") if failure else None,
            retry_after_ms=failure.get("retryAfterMs") if failure else None,
            message=None if record.message is None else short(record.message, _MESSAGE_CHARS),
            gate=record.gate,
            rule=record.rule.number if record.rule else None,
            rule_at=record.rule.place or None if record.rule else None,
            policy_revision=record.rule.revision if record.rule else None,
            revision=record.upstream_revision,
            duration_ms=round(record.duration_ms, 3),
            times=times_of(record),
            cached=record.is_cached,
            truncated=record.is_truncated,
            validated=record.is_validated,
        )
    )


def change_facts(change: ConfigurationChanged, made_at: float, masking: Masking) -> bytes:
    """The facts of a setting that was changed at run time. `old` and `new` are JSON, cut to a bound."""
    return encode_json(
        {
            "kind": "change",
            "time": stamp(made_at),
            "subject": masking.short(change.who, _NAME_CHARS),
            "path": masking.short(change.path, _PATH_CHARS),
            "old": masking.short(change.old, _VALUE_CHARS),
            "new": masking.short(change.new, _VALUE_CHARS),
            "revision": change.revision,
            "persisted": change.is_persisted,
        }
    )


def refused_facts(refused: CredentialsRefused, noticed_at: float) -> bytes:
    """The facts of credentials that are not known here, told of together."""
    return encode_json(
        {
            "kind": "refused",
            "time": stamp(noticed_at),
            "peer": refused.peer,
            "attempts": refused.attempts,
            "elsewhere": refused.elsewhere,
        }
    )


def rejected_facts(refused: RequestRefused, noticed_at: float, more: int, masking: Masking) -> bytes:
    """The facts of a request that was refused for its credentials, its Host or its Origin. `more` before it were too many to record."""
    return encode_json(
        {
            "kind": "rejected",
            "time": stamp(noticed_at),
            "peer": refused.peer,
            "status": refused.status,
            "request": masking.short(refused.target, _TARGET_CHARS),
            "message": masking.short(refused.reason, _MESSAGE_CHARS),
            **({"more": more} if more else {}),
        }
    )


def listen_facts(opened: ListenOpened, opened_at: float, masking: Masking) -> bytes:
    """The facts of a listen that has just been opened. The record of its end has the same request id."""
    watched = _fitted((masking.short(one, _TARGET_CHARS) for one in opened.watched), len(opened.watched))
    return encode_json(
        {
            "kind": SUBSCRIPTION,
            "time": stamp(opened_at),
            "requestId": opened.request_id,
            "method": LISTEN,
            "subject": masking.short(opened.subject, _NAME_CHARS),
            "client": masking.short(opened.client, _NAME_CHARS),
            **({} if opened.server is None else {"server": opened.server}),
            "watched": watched,
            "outcome": "open",
        }
    )


def definition_facts(
    event: ToolChanged | EntriesChanged | CompositionHazard, noticed_at: float, masking: Masking
) -> bytes:
    """The facts of definitions that a server changed, or in which it hides characters."""
    facts: dict[str, Any] = {"kind": "definition", "time": stamp(noticed_at)}
    if isinstance(event, ToolChanged):
        facts |= {
            "server": event.server,
            "tool": masking.short(event.tool, _NAME_CHARS),
            "members": [masking.short(name, _NAME_CHARS) for name in event.members],
            "oldDigest": event.old_digest,
            "newDigest": event.new_digest,
            "ignored": list(event.ignored),
        }
    elif isinstance(event, EntriesChanged):
        facts |= {"server": event.server, "entries": event.entries, "added": event.added, "removed": event.removed}
        facts |= {"changed": event.changed, "names": [masking.short(name, _NAME_CHARS) for name in event.names]}
    else:
        facts |= {"server": event.servers[0], "subject": masking.short(event.subject, _NAME_CHARS)}
        facts |= {"hazard": event.kind, "message": masking.short(event.message, _MESSAGE_CHARS)}
    return encode_json(facts)


def own_facts(kind: str, now: float, **more: Any) -> bytes:
    """The facts of a record about the log itself: `opened`, `continued`, `gap` or `closed`."""
    return encode_json({"kind": kind, "time": stamp(now), **more})


def times_of(record: ExecutionRecord) -> dict[str, float]:
    """Where the time went, in milliseconds: `server`, `gateway`, and what else it waited for. They add up to the duration."""
    times = {"server": record.server_ms} if record.sent_at else {}
    for what, waited_ms in record.waits:
        times[what] = times.get(what, 0.0) + waited_ms
    times["gateway"] = record.overhead_ms
    return {name: round(ms, 3) for name, ms in times.items()}


def verdict_of(record: ExecutionRecord) -> str:
    """Whether the tool can have run. A cached result means that it did not (D6)."""
    if record.failure is not None:
        return str(record.failure["verdict"])
    return (Verdict.DID_NOT_RUN if record.is_cached else Verdict.RAN).value


def code_of(record: ExecutionRecord) -> str | None:
    if record.failure is not None:
        return str(record.failure["code"])
    return record.tool_code or (None if record.outcome == "ok" else TABLE[Kind.TOOL_ERROR].code.value)


def arguments(
    params: bytes | None, detail: Detail, masking: Masking, *, is_nested: bool = False, is_whole: bool = False
) -> Any:
    """The arguments as far as they are recorded. Unreadable or too large params are described instead.

    With `is_nested` the arguments are those of a tool that the outer arguments name; with `is_whole` they are all params but `_meta`.
    """
    if params is None:
        return None
    if len(params) > MAX_DECODED_BYTES:
        return f"params of {len(params)} bytes"
    try:
        if is_whole:
            value = {name: held for name, held in _object.decode(params).items() if name != "_meta"}
        else:
            given = _params.decode(params).arguments
            value = _any.decode(_params.decode(given).arguments if is_nested else given)
    except (msgspec.DecodeError, RecursionError):
        return "unreadable"
    if detail == "values":
        shown = values_of(value, masking)
        if len(encode_json(shown)) <= MAX_ARGUMENTS_BYTES:
            return shown
    shown = shape_of(value, masking)
    return shown if len(encode_json(shown)) <= MAX_ARGUMENTS_BYTES else f"params of {len(params)} bytes"


def _identity(record: ExecutionRecord, masking: Masking) -> dict[str, str]:
    principal = record.principal
    if principal is None or principal.kind in _PLAIN_KINDS:
        return {}
    return {
        "principal_kind": principal.kind.value,
        "issuer": masking.short(principal.issuer, _NAME_CHARS),
        "client_id": masking.short(principal.client_id, _NAME_CHARS),
    }


def _operations(operations: Sequence[Operation], masking: Masking) -> list[Any]:
    shown = (
        replace(one, kind=masking.short(one.kind, _TARGET_CHARS), target=masking.short(one.target, _TARGET_CHARS))
        for one in operations
    )
    return _fitted(shown, len(operations))


def _violations(violations: Sequence[Operation], masking: Masking) -> list[Any]:
    return _fitted((masking.short(str(one), _NAME_CHARS) for one in violations), len(violations))


def _fitted(items: Iterable[Any], count: int) -> list[Any]:
    """As many items as fit, and a last one with the number of the rest."""
    kept: list[Any] = []
    room = MAX_LIST_BYTES
    for item in items:
        room -= len(encode_json(item)) + 1
        if room < 0 or len(kept) >= MAX_LISTED:
            return [*kept, {"more": count - len(kept)}]
        kept.append(item)
    return kept


def stamp(now: float) -> str:
    return f"{_to_the_second(int(now))}.{int(now * 1000) % 1000:03}Z"


@lru_cache(maxsize=4)
def _to_the_second(now: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
