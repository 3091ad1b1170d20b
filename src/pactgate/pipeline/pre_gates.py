"""The gates before a call is sent: parse the params, find the tool, check access, scope, headers, limits, rate, schema; look in the cache.

Must not: send anything, or change a byte of the arguments. Enforces the tools/call part of S4/F1 and S4/R2, S1/LIMIT-001 to S1/LIMIT-004
and S0/ECO-300.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from pactgate.catalog.catalog import Catalog
from pactgate.catalog.connections import Connections
from pactgate.catalog.index import TOOL_KIND
from pactgate.catalog.name_resolution import NameResolution
from pactgate.catalog.search_surface import SearchSurface, is_search_tool
from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.events import Emit
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind
from pactgate.core.values import Caller, SchemaViolation, Tool
from pactgate.pipeline.call import Call
from pactgate.pipeline.capabilities import relayable_of
from pactgate.pipeline.permission import explain_unknown, require_permitted
from pactgate.pipeline.tool_invoke import INDIRECT, require_fit, unwrap
from pactgate.pipeline.tool_policy import ToolPolicy
from pactgate.policy import limits
from pactgate.policy.access import may_call
from pactgate.policy.cache_policy import is_plain
from pactgate.policy.rate_limits import RatePolicy
from pactgate.policy.result_cache import LeaderTicket, ResultCache
from pactgate.protocol import headers, messages, modern
from pactgate.protocol.headers import HeaderParam
from pactgate.protocol.versions import LEGACY, Era, era_of
from pactgate.state.ports import Lookup
from pactgate.upstreams.pending import in_task

_KNOWN_MEMBERS: Final = frozenset({"name", "arguments", "_meta", "task", "inputResponses", "requestState"})
_OBJECT: Final = ord("{")
_NAME: Final = msgspec.json.Decoder(str)
_MAX_NAME_CHARS: Final = 512
_NO_ARGUMENTS: Final = Raw(b"{}")
_LONGEST_MS: Final = 86_400_000
_FLAT: Final = 3
"""The opening brackets of a call whose arguments hold none: the message, its params, the arguments."""
TIMEOUT_KEY: Final = "dev.pactgate/timeoutMs"
"""In a caller's `_meta`: a shorter limit of its own."""


class ParseParams:
    """The params of a call: a name, an object of arguments or none, `_meta` apart. Nothing else is interpreted."""

    name = "parse_params"

    def __call__(self, call: Call) -> None:
        values, members = call.request.values, messages.members(call.request.params or b"{}")
        odd = None if members.keys() <= _KNOWN_MEMBERS else messages.check_member_names(members, _KNOWN_MEMBERS)
        if odd is not None:
            raise _bad_params(odd)
        call.requested = call.ctx.requested = _tool_name(members, values)
        arguments = members.get("arguments")
        if arguments is not None:
            if memoryview(arguments)[0] != _OBJECT:
                why = "arguments must be an object; leave the member out when there are none"
                raise _bad_params(why, call.requested)
            if values is not None:
                call.arguments = values["arguments"]
        meta = members.pop("_meta", None)
        if meta is not None and not (values is not None and modern.is_only_envelope(values["_meta"])):
            _read_meta(call, bytes(meta))
        call.members = members


class ResolveTool:
    """The tool meant by the requested name, on one snapshot of the catalog as it is for this caller.

    A call of `tool_invoke` is from here on a call of the tool it names: that tool's bounds, quota, time and record, and nothing nested.
    """

    name = "resolve_tool"

    def __init__(self, connections: Connections, names: NameResolution) -> None:
        self._connections = connections
        self._names = names

    def __call__(self, call: Call) -> Awaitable[None] | None:
        caller, connections = call.ctx.caller, self._connections
        catalog = connections.surfaces.of(caller)
        try:
            tool = catalog.tools.resolve(call.requested, caller.scope)
            if tool.server == OWN_SERVER_ID and tool.name in INDIRECT:
                unwrap(call, tool)
                tool = catalog.tools.resolve(call.requested)
        except GatewayFailure as failure:
            if failure.kind is Kind.UNKNOWN_TOOL:
                return self._wait_and_resolve(call)
            raise
        bind(call, catalog, tool)
        return None

    async def _wait_and_resolve(self, call: Call) -> None:
        await in_task()
        try:
            catalog, tool = await self._resolve(call)
            if call.outer is None and tool.server == OWN_SERVER_ID and tool.name in INDIRECT:
                unwrap(call, tool)
                catalog, tool = await self._resolve(call)
        except GatewayFailure as failure:
            if failure.kind is not Kind.UNKNOWN_TOOL:
                raise
            raise explain_unknown(self._names, TOOL_KIND, call.ctx, failure) from None
        bind(call, catalog, tool)

    async def _resolve(self, call: Call) -> tuple[Catalog, Tool]:
        """A name that is not known yet. One that stands in the arguments of another tool means any server."""
        caller = call.ctx.caller
        scope = caller.scope if call.outer is None else None
        call.waiting_for = self._names.server_for(call.requested, scope, caller)
        return await self._names.tool(call.requested, scope, caller, relayable_of(caller, Era.LEGACY))


def bind(call: Call, catalog: Catalog, tool: Tool) -> None:
    """Bind a tool of a caller's catalog to its call. In a view, that is the server's own tool, with the arguments that the view fixes."""
    if call.outer is not None:
        require_fit(tool, call.outer)
    bound = None if catalog.bound is None else catalog.bound.get(tool.full_name)
    if bound is None:
        call.search = catalog.search
        call.bind(tool, catalog.grant_of(tool))
        return
    call.bind(bound.tool, catalog.grant_of(tool))
    if bound.fixed:
        call.members["arguments"] = Raw(bound.fill(bytes(call.members.get("arguments", _NO_ARGUMENTS))))
        call.arguments, call.fixed = UNSET, frozenset(bound.fixed)


class Authorize:
    """Tools of the gateway itself are for administrators. With permissions, the rules for a tool allow these arguments.

    What a caller may not call at all is not in its catalog; whoever gets hold of it in another way is told that it does not exist.
    """

    name = "authorize"

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def applies_to(self, policy: ToolPolicy) -> bool:
        return policy.is_guarded or policy.tool.server == OWN_SERVER_ID

    def __call__(self, call: Call) -> None:
        tool, grant, ctx = call.policy.tool, call.grant, call.ctx
        if is_search_tool(tool):
            return
        if not may_call(tool.server, ctx.caller.principal.roles) or (grant is None and call.policy.is_guarded):
            message = f"No tool {call.requested!r} on any connected server. tools/list shows what there is."
            raise GatewayFailure(Kind.UNKNOWN_TOOL, message, tool=call.requested)
        if grant is None:
            return
        if grant.reader is None and grant.rule is not None:
            ctx.rule, ctx.observed = grant.rule.applied, grant.rule.envelope
            return
        arguments = bytes(call.members.get("arguments", _NO_ARGUMENTS))
        ctx.observed = require_permitted(ctx, grant, arguments, tool.full_name, tool.server, self._emit)


class CheckScope:
    """The access token must have the scope for what the tool does, by its category. Tokens of the configuration have no scopes."""

    name = "check_scope"

    def applies_to(self, policy: ToolPolicy) -> bool:
        return policy.scope is not None

    def __call__(self, call: Call) -> None:
        scope, tool = call.policy.scope, call.policy.tool
        assert scope is not None, "applies only where there is one"
        scope.require(call.ctx.caller.principal, tool.full_name)


class CheckHeaderParams:
    """Arguments a modern HTTP caller mirrored into headers must say what the body says."""

    name = "check_header_params"

    def applies_to(self, policy: ToolPolicy) -> bool:
        return bool(policy.tool.header_params)

    def __call__(self, call: Call) -> None:
        sent: Mapping[str, list[str]] | None = None if call.outer is not None else call.ctx.caller.headers
        tool = call.policy.tool
        if sent is None:
            return
        arguments = messages.value(call.members.get("arguments", _NO_ARGUMENTS))
        params = tool.header_params if not call.fixed else _not_fixed(tool.header_params, call.fixed)
        problem = headers.check_mirror(params, arguments, sent)
        if problem is not None:
            raise GatewayFailure(
                Kind.INVALID_PARAMS, problem, number=messages.HEADER_MISMATCH, tool=tool.full_name, server=tool.server
            )


class CheckLimits:
    """Arguments within the tool's bounds of lists, texts and nesting."""

    name = "check_limits"

    def applies_to(self, policy: ToolPolicy) -> bool:
        return True

    def __call__(self, call: Call) -> None:
        arguments = call.members.get("arguments")
        if arguments is None:
            return
        rules, openings = call.policy, call.request.openings
        if openings is not None and openings <= _FLAT and not call.fixed and len(arguments) <= rules.bounds.max_string:
            return  # no list and no object in the arguments: most calls
        if limits.is_small(arguments, rules.bounds):
            return
        if call.arguments is UNSET:
            call.arguments = messages.value(arguments)
        errors = limits.check(call.arguments, rules.bounds)
        if errors:
            raise _refused(rules.tool, Kind.LIMIT_EXCEEDED, "break a limit", errors, errors[0].code)


class RateLimit:
    """As many calls as one caller may make of this kind of tool. A refused call consumes nothing."""

    name = "rate_limit"

    def __init__(self, rates: RatePolicy) -> None:
        self._rates = rates

    def applies_to(self, policy: ToolPolicy) -> bool:
        return policy.is_rate_limited

    def __call__(self, call: Call) -> Awaitable[None] | None:
        return self._rates.admit(call.ctx.caller.principal.key, call.policy.tool)


class ValidateInput:
    """Arguments that fit the tool's input schema. Nothing is coerced, filled in or left out (D8)."""

    name = "validate_input"

    def applies_to(self, policy: ToolPolicy) -> bool:
        return policy.tool.input_check is not None

    def __call__(self, call: Call) -> None:
        tool = call.policy.tool
        assert tool.input_check is not None, "applies only where there is one"
        arguments = call.members.get("arguments", _NO_ARGUMENTS)
        errors = tool.input_check.check(bytes(arguments), call.arguments)
        if (
            errors and tool.header_params
        ):  # an annotated argument that is null counts as absent (streamable HTTP, custom headers)
            given = headers.without_nulls(tool.header_params, messages.value(arguments))
            errors = tool.input_check.check(messages.encode_json(given))
        if errors:
            raise _refused(tool, Kind.INVALID_ARGUMENTS, "do not match its input schema", errors)


class AnswerSearch:
    """`find_tools` and `describe_tools` of a search surface, from the tools that the caller sees in the view.

    As a list does, it waits for servers that have neither connected nor failed since they were started. The index is made in a thread,
    because other calls would have to wait for it.
    """

    name = "answer_search"

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def applies_to(self, policy: ToolPolicy) -> bool:
        return is_search_tool(policy.tool)

    def __call__(self, call: Call) -> Awaitable[None] | None:
        is_ready = call.search is None or call.search.is_ready_for(call.policy.tool.name)
        if self._connections.settling() or not is_ready:
            return self._prepare_and_answer(call)
        self._answer(call, call.search)
        return None

    async def _prepare_and_answer(self, call: Call) -> None:
        await in_task()
        await self._connections.settle()
        search = self._connections.catalog_for(call.ctx.caller).search
        if search is not None and not search.is_ready_for(call.policy.tool.name):
            await asyncio.to_thread(search.prepare)
        self._answer(call, search)

    def _answer(self, call: Call, search: SearchSurface | None) -> None:
        if search is None:
            raise GatewayFailure(Kind.UNKNOWN_TOOL, "The view is gone; list the tools again.", tool=call.requested)
        arguments = bytes(call.members.get("arguments", _NO_ARGUMENTS))
        call.replace(search.answer(call.policy.tool.name, arguments))
        call.is_answered = True


SessionKey = Callable[[str, Caller], str | None]
"""What tells a caller's own session with a server from all others; None where the shared session serves it."""


class LookInCache:
    """A cached response to the very same call, or the lead of all who ask for it now (single-flight); only where the operator allows it."""

    name = "cache_lookup"

    def __init__(self, results: ResultCache, session_key: SessionKey) -> None:
        self._results = results
        self._session_key = session_key

    def applies_to(self, policy: ToolPolicy) -> bool:
        return policy.cache.ttl_ms is not None

    def __call__(self, call: Call) -> Awaitable[None] | None:
        if not is_plain(call.members, call.meta):
            return None
        policy, caller, server = call.policy, call.ctx.caller, call.policy.tool.server
        arguments = bytes(call.members.get("arguments", _NO_ARGUMENTS))
        session = self._session_key(server, caller) if policy.cache.may_be_private else None
        found = self._results.ask(policy.cache.keys(caller.principal.key, arguments, session), server)
        if isinstance(found, Lookup | LeaderTicket):
            _take(call, found)
            return None
        return _wait(call, found)


async def _wait(call: Call, found: Awaitable[Lookup | LeaderTicket]) -> None:
    _take(call, await found)


def _take(call: Call, found: Lookup | LeaderTicket) -> None:
    if isinstance(found, LeaderTicket):
        call.ticket = found
        return
    call.replace(found.value)
    call.is_answered = call.ctx.is_cached = True
    call.ctx.upstream_revision = revision = found.mark.decode()
    call.upstream_era = era_of(revision) or LEGACY


def _not_fixed(params: tuple[HeaderParam, ...], fixed: Collection[str]) -> tuple[HeaderParam, ...]:
    """Arguments that the client knows of: it can't mirror one that the view fixes."""
    return tuple(param for param in params if param.path[0] not in fixed)


def _refused(
    tool: Tool, kind: Kind, why: str, errors: Sequence[SchemaViolation], code: ErrorCode | None = None
) -> GatewayFailure:
    first = errors[0].message
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return GatewayFailure(
        kind,
        f"The arguments of {tool.full_name} {why}: {first}{more}.",
        server=tool.server,
        tool=tool.full_name,
        operation="tools/call",
        code=code,
        details={"errors": [error.facts() for error in errors]},
    )


def _tool_name(members: Mapping[str, Raw], values: Mapping[str, Any] | None) -> str:
    try:
        name = _NAME.decode(members["name"]) if values is None else values["name"]
    except (KeyError, msgspec.DecodeError):
        name = None
    if type(name) is not str:
        raise _bad_params("name must be a string: the tool to call")
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
    limit = meta.pop(TIMEOUT_KEY, None)
    if limit is not None:
        call.caller_limit_ms = _milliseconds(bytes(limit), call.requested)
    call.meta = modern.without_envelope(meta)


def _milliseconds(text: bytes, tool: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= _LONGEST_MS:
        raise _bad_params(f"{TIMEOUT_KEY} must be an integer of milliseconds from 1 to {_LONGEST_MS}", tool)
    return int(text)


def _bad_params(why: str, tool: str | None = None) -> GatewayFailure:
    return GatewayFailure(Kind.INVALID_PARAMS, f"The params of tools/call can't be used: {why}.", tool=tool)
