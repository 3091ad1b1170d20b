"""The gates after a call came back: judge the result, fit it into its bound, keep it, stamp and shape it for the caller.

Must not: change anything an era change, a bound or our own stamp does not require.
Enforces S1/RESP-003, S1/RESP-004, S2/MCP-002 and decisions D9, D21.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.catalog.uris import full_uri
from pactgate.core.context import ExecutionContext
from pactgate.core.events import CodeReplaced, EffectsExceeded, Emit
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Caller, Tool
from pactgate.pipeline.call import Call
from pactgate.pipeline.tool_policy import ToolRules
from pactgate.policy import cache_policy, contracts, response_size
from pactgate.policy.assembly import parts_for
from pactgate.policy.envelope import (
    Facts,
    Opened,
    failure_facts,
    failure_of,
    open_for_stamp,
    open_plain,
    origin_of,
    stamp,
    success_stamp,
)
from pactgate.policy.result_pages import Shelf
from pactgate.protocol import downgrade, messages, modern
from pactgate.protocol.messages import encode_json
from pactgate.protocol.simple_result import is_one_text
from pactgate.protocol.versions import LEGACY, MODERN, Era, era_of
from pactgate.state.ports import Lookup


class _ToolResult(Struct):
    content: Raw | UnsetType = UNSET
    structuredContent: Raw | UnsetType = UNSET  # noqa: N815 - the wire's spelling
    isError: bool = False  # noqa: N815
    resultType: str = "complete"  # noqa: N815
    task: Raw | UnsetType = UNSET


_result: Final = msgspec.json.Decoder(_ToolResult)
_ARRAY: Final = ord("[")
_NOTHING: Final = Raw(b"[]")
_URIS: Final = b'"resource'
_NO_CONTENT: Final = b'"content":[]'
_SMALL_BYTES: Final = 4096
"""Up to here searching a result costs next to nothing."""
_KEPT_OPEN: Final = 512
_KEPT_OPEN_BYTES: Final = 8192
"""Together at most 8 MiB of halves, and for those results only that the cache may hold anyway."""
_OBSERVED_SHARE: Final = 8
"""What of an answer the envelope may use to show what a tool did: one part in so many."""
TASKS: Final = "io.modelcontextprotocol/tasks"


def facts_of(ctx: ExecutionContext, now: float) -> Facts:
    """What the envelope says of a call, read off its context."""
    tool = ctx.tool
    return Facts(
        request_id=ctx.request_id,
        duration_ms=(now - ctx.opened_at) * 1000,
        server=tool.server if tool else (ctx.failure.server if ctx.failure else ctx.caller.scope),
        tool=tool.full_name if tool else ctx.requested,
        is_cached=ctx.is_cached,
        is_empty=ctx.is_empty,
        is_truncated=ctx.is_truncated,
        original_size_bytes=ctx.original_size_bytes,
        is_validated=ctx.is_validated,
        upstream_revision=ctx.upstream_revision,
        is_idempotent=tool.traits.is_idempotent if tool else None,
        effects_level=ctx.effects_level,
        observed=ctx.observed,
        fault=ctx.tool_fault,
    )


class AcceptResult:
    """A result must be one: an array of content or structured content, a boolean isError, complete."""

    name = "accept_result"

    def __call__(self, call: Call) -> None:
        if call.plain is not None:
            if call.plain.is_error is True:
                call.ctx.note_tool_error()
            return
        try:
            read = _result.decode(call.result)
        except msgspec.DecodeError as problem:
            raise _malformed(call, str(problem)) from problem
        if _is_task(call, read):
            call.is_task = True
            return
        if read.content is UNSET and read.structuredContent is UNSET:
            raise _malformed(call, "it has neither content nor structuredContent")
        if not isinstance(read.content, UnsetType) and memoryview(read.content)[0] != _ARRAY:
            raise _malformed(call, "its content is not an array")
        if read.resultType != "complete":
            raise _malformed(call, f"it is {read.resultType!r}, which this caller did not offer to handle")
        if read.isError:
            call.ctx.note_tool_error()


class Audit:
    """What a contract tool did and how it failed, held against its contract. A breach is recorded and reported; nothing is undone."""

    name = "audit"

    def __init__(self, emit: Emit, mask: Callable[[str], str] = str) -> None:
        self._emit = emit
        self._mask = mask

    def __call__(self, call: Call) -> None:
        tool, ctx = call.bound.tool, call.ctx
        contract = tool.contract
        if contract is None:
            return
        account = contracts.take_contract_result(contract, call.result)
        call.replace(account.result)
        if account.operations is not None:
            ctx.effects_level = ctx.effects_level or contracts.OBSERVED
            ctx.operations = contracts.masked(account.operations, self._mask)
            ctx.violations = contracts.undeclared_operations(contract, ctx.operations)
            ctx.observed = contracts.envelope_members(
                ctx.operations, ctx.violations, call.bound.max_result_bytes // _OBSERVED_SHARE
            )
        ctx.effects_level = ctx.effects_level or contracts.DECLARED
        if ctx.violations:
            told = tuple(map(str, ctx.violations))
            self._emit(EffectsExceeded(tool.server, tool.full_name, ctx.request_id, told))
        if account.fault is not None and ctx.is_error:
            ctx.tool_fault = account.fault
            if account.fault.undeclared:
                self._emit(CodeReplaced(tool.server, tool.full_name, ctx.request_id, account.fault.undeclared))


class AcceptOutput:
    """A result that fits the output schema its tool declares. A tool's own error is exempt; a bad value is never a success (D8)."""

    name = "accept_output"

    def __call__(self, call: Call) -> None:
        tool = call.bound.tool
        if tool.output_check is None or call.ctx.is_error or call.is_task:
            return
        structured = messages.members(call.result).get("structuredContent")
        if structured is None:
            raise _misfit(tool, "it has no structuredContent", [])
        errors = tool.output_check.check(bytes(structured))
        if errors:
            raise _misfit(tool, errors[0].message, [error.facts() for error in errors])
        call.ctx.is_validated = True


class Bound:
    """A result within the size an answer may have: texts are cut and flagged, structured content is kept to be read in pages."""

    name = "bound"

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def __call__(self, call: Call) -> None:
        rules, ctx = call.bound, call.ctx
        reserve_bytes = rules.room_bytes + call.frame_bytes + len(ctx.observed)
        if len(call.result) + reserve_bytes <= rules.max_result_bytes:
            return
        fitted = response_size.fit(
            call.result,
            rules.max_result_bytes,
            has_output_schema=rules.tool.output_check is not None,
            reserve_bytes=reserve_bytes,
        )
        if isinstance(fitted, response_size.TooLarge):
            ctx.is_truncated, ctx.original_size_bytes = True, fitted.original_size_bytes
            raise self._shelf.keep(ctx.caller.subject, call.result, rules.tool, rules.max_result_bytes)
        call.replace(fitted.result)
        if fitted.is_truncated:
            ctx.is_truncated, ctx.original_size_bytes = True, fitted.original_size_bytes


class Remember:
    """A fresh result that may be given again is kept, and shared with all who asked for it meanwhile."""

    name = "remember"

    def __call__(self, call: Call) -> None:
        if call.lease is None:
            return
        if call.is_task:
            call.lease.decline()
            return
        worth = cache_policy.judge(call.bound.plan, call.result, is_truncated=call.ctx.is_truncated)
        if worth is None:
            call.lease.decline()
            return
        mark = (call.ctx.upstream_revision or "").encode()
        call.lease.keep(call.result, ttl_ms=worth.ttl_ms, mark=mark, is_public=worth.is_public)


class Fit:
    """What this caller can read: URIs that lead back to their server, content its revision knows. Mostly a look and nothing more."""

    name = "fit"

    def __call__(self, call: Call) -> None:
        caller, result, plain = call.ctx.caller, call.result, call.plain
        has_uris = caller.scope is None and _may_have_uris(call)
        if not has_uris:
            if plain is not None and plain.structured is UNSET and caller.version >= downgrade.STRUCTURED_SINCE:
                return
            if not downgrade.may_not_fit(result, caller.version):
                return
        members = messages.members(result)
        content = members.get("content")
        if has_uris and content is not None:
            server = call.bound.tool.server
            members["content"] = downgrade.name_uris(content, lambda uri: full_uri(server, uri))
        if caller.era is LEGACY:
            downgrade.fit_tool_result(members, caller.version)
        call.replace(encode_json(members))


def _may_have_uris(call: Call) -> bool:
    result, plain = call.result, call.plain
    if call.ctx.is_cached and len(result) <= _KEPT_OPEN_BYTES:
        return _looks_of(result).has_uris
    if plain is not None and len(result) > _SMALL_BYTES and is_one_text(result, plain):
        return False  # to search a long text would cost more than all the rest
    return _URIS in result


class _Looks(NamedTuple):
    """What was seen in a kept result: it is the same bytes each time."""

    has_uris: bool
    is_empty: bool


@lru_cache(maxsize=_KEPT_OPEN)
def _looks_of(result: bytes) -> _Looks:
    return _Looks(_URIS in result, _NO_CONTENT in result)


@lru_cache(maxsize=64)
def revision_of(mark: bytes) -> tuple[str, Era]:
    """The revision a kept result was given in, which is what it is marked with."""
    revision = mark.decode()
    return revision, era_of(revision) or LEGACY


class Stamp:
    """What the caller's era asks of a result, and our envelope in its `_meta`.

    A kept result is the same bytes each time: its two halves around the stamp are made once for each era.
    """

    name = "stamp"

    def __init__(self, server_info: bytes, clock: Callable[[], float] = time.monotonic) -> None:
        self._server_info = server_info
        self._clock = clock
        self._open_again = lru_cache(maxsize=_KEPT_OPEN)(self._open)

    def __call__(self, call: Call) -> None:
        ctx, result, plain = call.ctx, call.result, call.plain
        is_empty = _may_be_empty(call) if plain is None else plain.content == _NOTHING
        if is_empty or ctx.is_error or ctx.observed or ctx.original_size_bytes is not None:
            self._stamp_in_full(call)
            return
        tool = call.bound.tool
        is_modern, was_modern = ctx.caller.era is MODERN, call.upstream_era is MODERN
        if plain is not None:
            parts = parts_for(plain, self._server_info, is_modern=is_modern, was_modern=was_modern)
            parts.insert(-1, self._ours(ctx, tool))
            call.result = b"".join(parts)
            return
        open_result = self._open_again if ctx.is_cached and len(result) <= _KEPT_OPEN_BYTES else self._open
        most, before, after = open_result(result, is_modern, was_modern)
        call.result = b"".join((most, before, self._ours(ctx, tool), after))

    def is_enough(self, result: bytes, caller: Caller, rules: ToolRules, frame_bytes: int) -> bool:
        """Whether a kept result needs nothing but its stamp: no other finishing gate would change it."""
        size = len(result)
        if size > _KEPT_OPEN_BYTES or size + rules.room_bytes + frame_bytes > rules.max_result_bytes:
            return False
        looks = _looks_of(result)
        if looks.is_empty or (looks.has_uris and caller.scope is None):
            return False
        return not downgrade.may_not_fit(result, caller.version)

    def again(self, ctx: ExecutionContext, tool: Tool, kept: Lookup) -> bytes:
        """A kept result for which a stamp is enough, with its stamp."""
        ctx.is_cached = True
        ctx.upstream_revision, era = revision_of(kept.mark)
        most, before, after = self._open_again(kept.value, ctx.caller.era is MODERN, era is MODERN)
        return b"".join((most, before, self._ours(ctx, tool), after))

    def _ours(self, ctx: ExecutionContext, tool: Tool) -> bytes:
        return success_stamp(
            ctx.request_id,
            origin_of(tool.server, tool.full_name, ctx.upstream_revision, ctx.effects_level),
            (self._clock() - ctx.opened_at) * 1000,
            is_cached=ctx.is_cached,
            is_validated=ctx.is_validated,
        )

    def _open(self, result: bytes, is_modern: bool, was_modern: bool) -> Opened:
        plain = None if is_modern or was_modern else open_plain(result)
        return plain or open_for_stamp(self._shape(result, is_modern, was_modern))

    def _shape(self, result: bytes, is_modern: bool, was_modern: bool) -> dict[str, Raw]:
        members = messages.members(result)
        if is_modern:
            return modern.complete(members, self._server_info, cacheable=False)
        return modern.strip_result(members) if was_modern else members

    def _stamp_in_full(self, call: Call) -> None:
        """A tool's own error, a result that was cut or has no content, and a tool that was seen doing something have more to say."""
        ctx = call.ctx
        members = self._shape(call.result, ctx.caller.era is MODERN, call.upstream_era is MODERN)
        if not ctx.is_error and members.get("content") == _NOTHING:
            ctx.is_empty = "structuredContent" not in members
        facts = facts_of(ctx, self._clock())
        failure = failure_of(facts, call.result) if ctx.is_error else None
        stamp(members, facts, None if failure is None else failure_facts(facts, failure))
        call.result = encode_json(members)


def _may_be_empty(call: Call) -> bool:
    if call.ctx.is_cached and len(call.result) <= _KEPT_OPEN_BYTES:
        return _looks_of(call.result).is_empty
    return len(call.result) <= _SMALL_BYTES and _NO_CONTENT in call.result


def _is_task(call: Call, read: _ToolResult) -> bool:
    """A handle instead of a result, for a caller that offered to follow it on the server's own path."""
    if call.ctx.caller.scope is None:
        return False
    if call.ctx.caller.era is LEGACY:
        return "task" in call.members and not isinstance(read.task, UnsetType)
    extensions = call.ctx.caller.capabilities.get("extensions")
    return read.resultType == "task" and isinstance(extensions, dict) and TASKS in extensions


def _misfit(tool: Tool, why: str, errors: list[dict[str, Any]]) -> GatewayFailure:
    return GatewayFailure(
        Kind.SCHEMA_MISMATCH,
        f"{tool.full_name} answered with a result that does not fit the output schema it declares: {why}",
        server=tool.server,
        tool=tool.full_name,
        operation="tools/call",
        details={"errors": errors},
    )


def _malformed(call: Call, why: str) -> GatewayFailure:
    tool = call.bound.tool
    return GatewayFailure(
        Kind.MALFORMED_RESULT,
        f"{tool.full_name} answered with a result that breaks the protocol: {why}",
        server=tool.server,
        tool=tool.full_name,
        operation="tools/call",
    )
