"""The gates after the server has answered: check the result, limit its size, cache it, adapt it for the client, add the envelope.

Must not: change anything that the era of the client, the size limit or the envelope does not require.
Enforces S1/RESP-003, S1/RESP-004, S2/MCP-002 and decisions D9, D21.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.catalog.uris import full_uri
from pactgate.core.context import ExecutionContext
from pactgate.core.contract import MAX_OUTPUT_ERRORS, OutputError
from pactgate.core.events import CodeReplaced, EffectsExceeded, Emit, OutputMismatched
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import SchemaViolation, Tool
from pactgate.pipeline.call import FRAME_BYTES, Call
from pactgate.pipeline.capabilities import TASKS
from pactgate.pipeline.task_owners import TaskOwners
from pactgate.pipeline.tool_policy import ToolPolicy
from pactgate.policy import cache_policy, contracts, response_size
from pactgate.policy.assembly import assemble
from pactgate.policy.envelope import CallFacts, encode_envelope, failure_facts, failure_of
from pactgate.policy.result_pages import PagedResultStore
from pactgate.protocol import downgrade, messages
from pactgate.protocol.json_limits import may_repeat_key, repeats_key
from pactgate.protocol.messages import encode_json
from pactgate.protocol.simple_result import size_of
from pactgate.protocol.versions import LEGACY, MODERN


class _ToolResult(Struct):
    content: Raw | UnsetType = UNSET
    structuredContent: Raw | UnsetType = UNSET  # noqa: N815 - the wire's spelling
    isError: bool = False  # noqa: N815
    resultType: str = "complete"  # noqa: N815
    task: Raw | UnsetType = UNSET


_result: Final = msgspec.json.Decoder(_ToolResult)
_ARRAY: Final = ord("[")
_URIS: Final = b'"resource'
_NOT_OBSERVED: Final = (None, contracts.UNKNOWN, contracts.DECLARED)
_NO_CONTENT: Final = b'"content":[]'
_EMPTY_BYTES: Final = len(b"[]")
_ONE_TEXT: Final = b'[{"type":"text",'
_SMALL_BYTES: Final = 4096
"""Up to here searching a result costs next to nothing."""
_OBSERVED_SHARE: Final = 8
"""What of an answer the envelope may use to show what a tool did: one part in so many."""


def facts_of(ctx: ExecutionContext, now: float) -> CallFacts:
    """The facts of a call for the envelope."""
    tool = ctx.tool
    return CallFacts(
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
        effects_level=ctx.effects_level or (contracts.declared_level(tool) if tool else contracts.UNKNOWN),
        observed=ctx.observed,
        fault=ctx.tool_fault,
    )


class CheckResult:
    """A result must be one: an array of content or structured content, a boolean isError, complete; or a task, for its caller alone."""

    name = "check_result"

    def __init__(self, tasks: TaskOwners) -> None:
        self._tasks = tasks

    def applies_to(self, policy: ToolPolicy) -> bool:
        return True

    def __call__(self, call: Call) -> None:
        if call.simple is not None:
            if call.simple.is_error is True:
                call.ctx.note_tool_error()
            return
        try:
            read = _result.decode(call.result)
        except msgspec.DecodeError as problem:
            raise _malformed(call, str(problem)) from problem
        if _is_task(call, read):
            call.is_task = True
            caller = call.ctx.caller
            self._tasks.note(call.session, caller.owner, call.result, call.policy.tool.full_name)
            call.replace(self._tasks.shown(caller.era, call.result))
            return
        if read.content is UNSET and read.structuredContent is UNSET:
            raise _malformed(call, "it has neither content nor structuredContent")
        if not isinstance(read.content, UnsetType) and memoryview(read.content)[0] != _ARRAY:
            raise _malformed(call, "its content is not an array")
        if read.resultType != "complete":
            raise _malformed(call, f"it is {read.resultType!r}, which this client did not offer to handle")
        if read.isError:
            call.ctx.note_tool_error()


class CheckEffects:
    """What a contract tool did and how it failed, compared with its contract. A breach is recorded and reported; nothing is undone."""

    name = "check_effects"

    def __init__(self, emit: Emit, mask: Callable[[str], str] = str) -> None:
        self._emit = emit
        self._mask = mask

    def applies_to(self, policy: ToolPolicy) -> bool:
        return policy.tool.contract is not None

    def __call__(self, call: Call) -> None:
        tool, ctx = call.policy.tool, call.ctx
        contract = tool.contract
        assert contract is not None, "applies only where there is one"
        account = contracts.take_contract_result(contract, call.result)
        call.replace(account.result)
        ctx.output_errors = account.output_errors
        if account.operations is not None:
            if ctx.effects_level in _NOT_OBSERVED:
                ctx.effects_level = contracts.OBSERVED
            ctx.operations = contracts.masked(account.operations, self._mask)
            ctx.violations = contracts.undeclared_operations(contract, ctx.operations)
            ctx.observed += contracts.envelope_members(
                ctx.operations, ctx.violations, call.policy.max_result_bytes // _OBSERVED_SHARE
            )
        if ctx.violations:
            told = tuple(map(str, ctx.violations))
            self._emit(EffectsExceeded(tool.server, tool.full_name, ctx.request_id, told))
        if account.fault is not None and ctx.is_error:
            ctx.tool_fault = account.fault
            if account.fault.undeclared:
                self._emit(CodeReplaced(tool.server, tool.full_name, ctx.request_id, account.fault.undeclared))


class ValidateOutput:
    """A result that fits the output schema its tool declares. A tool's own error is exempt; a bad value is never a success (D8).

    With `outputValidation: warn` a result of a REST API that does not fit is passed on, and the envelope says where it does not.
    """

    name = "validate_output"

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def applies_to(self, policy: ToolPolicy) -> bool:
        return policy.tool.output_check is not None or _is_lenient(policy.tool)

    def __call__(self, call: Call) -> None:
        tool, ctx = call.policy.tool, call.ctx
        if ctx.is_error or call.is_task:
            return
        if _is_lenient(tool):
            self._note(call)
            return
        why, errors = _output_errors(call)
        if why:
            raise _misfit(tool, why, [error.facts() for error in errors])
        ctx.is_validated = True

    def _note(self, call: Call) -> None:
        tool, ctx = call.policy.tool, call.ctx
        if tool.output_check is not None:
            why, errors = _output_errors(call)
            found = [OutputError(**error.facts()) for error in errors] or [OutputError(message=why)] * bool(why)
            ctx.output_errors = (*ctx.output_errors, *found)[:MAX_OUTPUT_ERRORS]
            ctx.is_validated = not ctx.output_errors
        if ctx.output_errors:
            ctx.observed += contracts.output_errors_member(
                ctx.output_errors, call.policy.max_result_bytes // _OBSERVED_SHARE
            )
            told = tuple(error.message for error in ctx.output_errors)
            self._emit(OutputMismatched(tool.server, tool.full_name, ctx.request_id, told))


def _is_lenient(tool: Tool) -> bool:
    return tool.contract is not None and tool.contract.output_validation == "warn"


def _output_errors(call: Call) -> tuple[str, Sequence[SchemaViolation]]:
    """What is wrong with the structured content, and where; nothing when it fits."""
    check = call.policy.tool.output_check
    assert check is not None, "asked only where there is one"
    structured = call.simple.structured if call.simple else messages.members(call.result).get("structuredContent")
    if structured is None or isinstance(structured, UnsetType):
        return "it has no structuredContent", ()
    text, value = bytes(structured), UNSET
    try:
        value = messages.value(text)
        is_ambiguous = repeats_key(text, value)
    except (msgspec.DecodeError, ValueError, RecursionError):
        is_ambiguous = False  # the check below says that it can't be read
    if is_ambiguous:
        raise _malformed(call, "a key stands twice in one object of its structuredContent")
    errors = check.check(text, value)
    return (errors[0].message, errors) if errors else ("", ())


class LimitSize:
    """A result within the size an answer may have: texts are cut and flagged, structured content is kept to be read in pages."""

    name = "limit_size"

    def __init__(self, pages: PagedResultStore) -> None:
        self._pages = pages

    def applies_to(self, policy: ToolPolicy) -> bool:
        return True

    def __call__(self, call: Call) -> None:
        rules, ctx = call.policy, call.ctx
        reserve_bytes = rules.room_bytes + len(call.request.id) + FRAME_BYTES + len(ctx.observed)
        simple = call.simple
        size = len(call.result) if simple is None else size_of(simple)
        if size + reserve_bytes <= rules.max_result_bytes:
            return
        fitted = response_size.fit(
            call.result,
            rules.max_result_bytes,
            has_output_schema=rules.tool.output_check is not None and not _is_lenient(rules.tool),
            reserve_bytes=reserve_bytes,
        )
        if isinstance(fitted, response_size.TooLarge):
            ctx.is_truncated, ctx.original_size_bytes = True, fitted.original_size_bytes
            raise self._pages.keep(ctx.caller.owner, call.result, rules.tool, rules.max_result_bytes)
        call.replace(fitted.result)
        if fitted.is_truncated:
            ctx.is_truncated, ctx.original_size_bytes = True, fitted.original_size_bytes


class StoreInCache:
    """A fresh result that may be given again is kept, and shared with all who asked for it meanwhile."""

    name = "cache_store"

    def applies_to(self, policy: ToolPolicy) -> bool:
        return policy.cache.ttl_ms is not None

    def __call__(self, call: Call) -> None:
        if call.ticket is None:
            return
        if call.is_task or call.ctx.output_errors:  # a hit could not say where the result does not fit
            call.ticket.release()
            return
        worth = cache_policy.judge(call.policy.cache, call.result, is_truncated=call.ctx.is_truncated)
        if worth is None:
            call.ticket.release()
            return
        mark = (call.ctx.upstream_revision or "").encode()
        call.ticket.keep(call.result, ttl_ms=worth.ttl_ms, mark=mark, is_public=worth.is_public)


class AdaptForClient:
    """What this caller can read: URIs that lead back to their server, content its revision knows. Mostly a look and nothing more."""

    name = "adapt_for_client"

    def applies_to(self, policy: ToolPolicy) -> bool:
        return True

    def __call__(self, call: Call) -> None:
        caller, simple = call.ctx.caller, call.simple
        has_uris = caller.scope is None and _may_have_uris(call)
        if not has_uris:
            if simple is not None and simple.structured is UNSET and caller.version >= downgrade.STRUCTURED_SINCE:
                return
            if not downgrade.may_not_fit(call.result, caller.version):
                return
        members = messages.members(call.result)
        content = members.get("content")
        if content is not None and may_repeat_key(bytes(content)):
            raise _malformed(call, "a key stands twice in one object of its content")
        if has_uris and content is not None:
            server = call.policy.tool.server
            members["content"] = downgrade.name_uris(content, lambda uri: full_uri(server, uri))
        if caller.era is LEGACY:
            downgrade.fit_tool_result(members, caller.version)
        call.replace(encode_json(members))


def _may_have_uris(call: Call) -> bool:
    """Whether the result may hold resources. One text is not searched: that would cost more than a look at its beginning."""
    if call.simple is None:
        return _URIS in call.result
    content = bytes(call.simple.content)
    is_one_text = content.startswith(_ONE_TEXT) and content.rfind(b"{") == 1
    return not is_one_text and _URIS in content


class AddEnvelope:
    """What the caller's era asks of a result, and our envelope in its `_meta`."""

    name = "add_envelope"

    def __init__(self, server_info: bytes, clock: Callable[[], float] = time.monotonic) -> None:
        self._server_info = server_info
        self._clock = clock

    def applies_to(self, policy: ToolPolicy) -> bool:
        return True

    def __call__(self, call: Call) -> None:
        ctx, simple = call.ctx, call.simple
        if not ctx.is_error and (simple is None or len(simple.content) == _EMPTY_BYTES) and _is_empty(call):
            ctx.is_empty = True
        facts = facts_of(ctx, self._clock())
        failure = failure_of(facts, call.result) if ctx.is_error else None
        told = None if failure is None else failure_facts(facts, failure, has_message=True)
        call.finish(
            assemble(
                simple,
                None if simple is not None else call.result,
                encode_envelope(facts, told),
                server_info=self._server_info,
                is_modern=ctx.caller.era is MODERN,
                was_modern=call.upstream_era is MODERN,
            )
        )


def _is_empty(call: Call) -> bool:
    """Whether the result has neither content nor structured content."""
    if call.simple is not None:
        return len(call.simple.content) == _EMPTY_BYTES and call.simple.structured is UNSET
    if len(call.result) > _SMALL_BYTES or _NO_CONTENT not in call.result:
        return False
    members = messages.members(call.result)
    return bytes(members.get("content", b"")) == b"[]" and "structuredContent" not in members


def _is_task(call: Call, read: _ToolResult) -> bool:
    """Whether a result is the handle of a task, and this caller said that it can follow tasks on the server's own path."""
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
    tool = call.policy.tool
    return GatewayFailure(
        Kind.MALFORMED_RESULT,
        f"{tool.full_name} answered with a result that breaks the protocol: {why}",
        server=tool.server,
        tool=tool.full_name,
        operation="tools/call",
    )
