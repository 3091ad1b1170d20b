"""Forwards requests that concern one server: prompts/get, resources/read, completion/complete, tasks and extensions.

Names and URIs in the request are replaced by those of the server; URIs in the result lead back to the server. An error of the server
keeps its code, message and data. A forwarded request takes a slot of its server, as a call does. Must not: send a request twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.catalog.index import PROMPT_KIND
from pactgate.catalog.name_resolution import NameResolution
from pactgate.catalog.uris import OWN_SCHEME, ResourceTarget, full_uri
from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.context import CLIENT, CONNECTION, QUEUE, ExecutionContext
from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.values import Caller, Prompt
from pactgate.pipeline.capabilities import has_extensions, has_tasks
from pactgate.pipeline.deadline import Deadline, TimeoutQueue
from pactgate.pipeline.forwarded_result import ForwardedResult, fit_prompt, refused_with, shape, with_full_uris
from pactgate.pipeline.input_required import too_large
from pactgate.pipeline.notification_relay import relay_progress, token_of
from pactgate.pipeline.permission import explain_unknown, require_permitted
from pactgate.pipeline.server_requests import ServerRequestBridge
from pactgate.pipeline.task_owners import TaskOwners
from pactgate.pipeline.timing import timed
from pactgate.pipeline.tool_policy import PolicyTable
from pactgate.pipeline.upstream_request import Headers, UpstreamRequest
from pactgate.policy.cache_policy import judge, only_traces
from pactgate.policy.overload import Overload
from pactgate.policy.result_cache import LeaderTicket, ResultCache
from pactgate.policy.state_tokens import StateBinding, StateSigner
from pactgate.protocol import messages, modern
from pactgate.protocol.era_bridge import INPUT_REQUIRED_METHODS
from pactgate.protocol.messages import Request, Response, encode_json
from pactgate.protocol.versions import LATEST_LEGACY, Era
from pactgate.state.ports import Lookup
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.peer import UpstreamReplyError

_TEXT: Final = msgspec.json.Decoder(str)

_Found = TypeVar("_Found")

_TASKS: Final = "tasks/"
_LIST_TASKS: Final = "tasks/list"
_CURSOR: Final = "cursor"
_CURSOR_S: Final = 3600.0
"""How long a cursor can be used."""

ReadOwn = Callable[[str, Caller], bytes | None]
"""The contents of a resource of the gateway itself for one caller, without era members; None when there is none."""


class _Addressed(NamedTuple):
    server: str
    members: dict[str, Raw]
    name: str | None = None
    token: Raw | None = None
    goes_on: bool = False
    """Whether it is about what an earlier call of this caller began, and so belongs in the session that call went to."""
    task: str | None = None
    """The task it is about, which has to be its caller's own."""


class Forward:
    """Sends a request to its server, once, under one time limit."""

    def __init__(
        self,
        connections: Connections,
        names: NameResolution,
        results: ResultCache,
        policies: Callable[[], PolicyTable],
        bridge: ServerRequestBridge,
        timeouts: TimeoutQueue,
        tasks: TaskOwners,
        overload: Overload,
        *,
        read_own: ReadOwn,
        server_info: bytes,
        cursors: StateSigner,
        emit: Emit,
    ) -> None:
        self._connections = connections
        self._names = names
        self._results = results
        self._policies = policies
        self._bridge = bridge
        self._timeouts = timeouts
        self._tasks = tasks
        self._overload = overload
        self._cursors = cursors
        self._read_own = read_own
        self._server_info = server_info
        self._emit = emit

    async def get_prompt(self, ctx: ExecutionContext, request: Request) -> bytes:
        members, meta, token = _params(request)
        name = ctx.requested = _text(members, "name", request.method)
        prompt = await self._in_time(request.method, self._prompt(ctx, name))
        access = self._connections.catalog_for(ctx.caller).access
        if access is not None:
            arguments, grant = bytes(members.get("arguments", Raw(b"{}"))), access.prompts[prompt.full_name]
            require_permitted(ctx, grant, arguments, prompt.full_name, prompt.server, self._emit)
        members["name"] = Raw(encode_json(prompt.name))
        answer = await self._ask(ctx, request, _Addressed(prompt.server, members, prompt.name, token), meta)
        return fit_prompt(shape(answer, request.method, ctx.caller, self._server_info), prompt.server, ctx.caller)

    async def read_resource(self, ctx: ExecutionContext, request: Request) -> bytes:
        members, meta, token = _params(request)
        uri = ctx.requested = _text(members, "uri", request.method)
        if uri.startswith(OWN_SCHEME):
            ctx.server = OWN_SERVER_ID
            own = ForwardedResult(self._own(uri, ctx.caller), LATEST_LEGACY)
            return shape(own, request.method, ctx.caller, self._server_info)
        target = await self._in_time(request.method, self._target(ctx, uri))
        members["uri"] = Raw(encode_json(target.uri))
        answer = await self._read(ctx, request, _Addressed(target.server, members, target.uri, token), meta)
        result = shape(answer, request.method, ctx.caller, self._server_info)
        is_ready = ctx.caller.scope is not None or answer.is_input_required
        return result if is_ready else with_full_uris(result, target.server)

    async def complete(self, ctx: ExecutionContext, request: Request) -> bytes:
        """Completions are asked of the server the reference points at."""
        members, meta, token = _params(request)
        try:
            reference = messages.members(bytes(members["ref"]))
            kind = _TEXT.decode(reference["type"])
        except (KeyError, msgspec.DecodeError):
            raise _bad(request.method, "ref must be an object with a type") from None
        server = await self._in_time(request.method, self._rewrite(ctx, reference, kind))
        members["ref"] = Raw(encode_json(reference))
        answer = await self._ask(ctx, request, _Addressed(server, members, token=token), meta)
        return shape(answer, request.method, ctx.caller, self._server_info)

    async def pass_on(self, ctx: ExecutionContext, request: Request) -> bytes:
        """A method of tasks or of an extension, as it is, to the one server whose path this is; both must speak the same era.

        A request about a task is sent only if the task is this caller's own.
        """
        server = ctx.caller.scope
        if server is None:
            raise _not_here(request.method, "it belongs to one server; ask at /mcp/{serverId}")
        access, is_about_tasks = self._connections.catalog_for(ctx.caller).access, request.method.startswith(_TASKS)
        if access is not None and not is_about_tasks and not access.has_whole(server):
            raise _not_here(request.method, f"{server} does not offer it")
        session = await self._in_time(request.method, self._connections.session(server))
        if session.identity.era is not ctx.caller.era:
            raise _not_here(
                request.method, f"{server} speaks another protocol version, which this request can't be translated to"
            )
        if not (has_tasks if is_about_tasks else has_extensions)(session.identity.capabilities):
            raise _not_here(request.method, f"{server} does not offer it")
        members, meta, token = _params(request)
        task = None
        if request.method == _LIST_TASKS:
            self._open_cursor(ctx.caller, server, members)
        elif is_about_tasks:
            ctx.requested = _text(members, "taskId", request.method)
            task = self._tasks.of_server(ctx.caller.era, ctx.requested)
            members["taskId"] = Raw(encode_json(task))
        answer = await self._ask(ctx, request, _Addressed(server, members, task, token, goes_on=True, task=task), meta)
        return shape(answer, request.method, ctx.caller, self._server_info)

    def _open_cursor(self, caller: Caller, server: str, members: dict[str, Raw]) -> None:
        """Put the server's own cursor in place of the one its caller was given. Raises for any other."""
        if "cursor" not in members:
            return
        sealed = _text(members, "cursor", _LIST_TASKS)
        try:
            cursor = self._cursors.open(sealed, _cursor_binding(caller, server)).content
        except GatewayFailure:
            raise _bad(
                _LIST_TASKS, "the cursor is not one that was given to this client; list from the start"
            ) from None
        members["cursor"] = Raw(encode_json(cursor))

    def _keep_tasks_apart(self, caller: Caller, method: str, session: Session, result: bytes) -> bytes:
        """The answer to a method of tasks or of an extension, with no task of another caller in it."""
        if method != _LIST_TASKS:
            is_task = method.startswith(_TASKS) or self._tasks.note(session, caller.owner, result)
            return self._tasks.shown(caller.era, result) if is_task else result
        members = messages.members(self._tasks.only_own(session, caller.owner, result, self._tools_of(caller)))
        cursor = members.pop("nextCursor", None)
        if cursor is not None and bytes(cursor).startswith(b'"'):
            binding = _cursor_binding(caller, session.peer.server)
            sealed = self._cursors.seal(_CURSOR, _TEXT.decode(cursor), binding, _CURSOR_S)
            members["nextCursor"] = Raw(encode_json(sealed))
        return encode_json(members)

    async def _in_time(self, method: str, finding: Awaitable[_Found]) -> _Found:
        """Find the server of a request, or wait for it to connect, within the default time limit."""
        limit_ms = self._policies().default_limit.ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await finding
        except TimeoutError:
            raise _too_slow("The server", method, limit_ms, phase="connect", verdict=Verdict.DID_NOT_RUN) from None

    async def _rewrite(self, ctx: ExecutionContext, reference: dict[str, Raw], kind: str) -> str:
        if kind == "ref/prompt":
            ctx.requested = _text(reference, "name", kind)
            prompt = await self._prompt(ctx, ctx.requested)
            reference["name"] = Raw(encode_json(prompt.name))
            return prompt.server
        if kind == "ref/resource":
            ctx.requested = _text(reference, "uri", kind)
            target = await self._target(ctx, ctx.requested)
            reference["uri"] = Raw(encode_json(target.uri))
            return target.server
        raise _bad("completion/complete", f"a reference can't be of type {kind[:40]!r}")

    async def _prompt(self, ctx: ExecutionContext, name: str) -> Prompt:
        try:
            return await self._names.prompt(name, ctx.caller)
        except GatewayFailure as failure:
            if failure.kind is not Kind.UNKNOWN_PROMPT:
                raise
            raise explain_unknown(self._names, PROMPT_KIND, ctx, failure) from None

    async def _target(self, ctx: ExecutionContext, uri: str) -> ResourceTarget:
        """The server of a listed resource, or of a template (completions name the template itself)."""
        try:
            target = await self._names.resource(uri, ctx.caller)
        except GatewayFailure as failure:
            if failure.kind is not Kind.UNKNOWN_RESOURCE:
                raise
            raise explain_unknown(self._names, None, ctx, failure) from None
        access = self._connections.catalog_for(ctx.caller).access
        if access is not None:
            applied = access.of_uri(target.server, full_uri(*target)).applied
            ctx.rule = applied if applied.revision else None
        return target

    async def _read(
        self, ctx: ExecutionContext, request: Request, to: _Addressed, meta: Mapping[str, Raw]
    ) -> ForwardedResult:
        """Read a resource, from the cache if its server gave a time to live. Equal reads at the same time are sent once."""
        plan = self._policies().of_reads(to.server)
        if len(to.members) > 1 or not only_traces(meta):  # a read that says more than its URI may be answered otherwise
            return await self._ask(ctx, request, to, meta)
        caller, ctx.server = ctx.caller, to.server
        session = self._bridge.session_key(to.server, caller) if plan.may_be_private else None
        found = self._results.ask(plan.keys(caller.principal.key, bytes(to.members["uri"]), session), to.server)
        if not isinstance(found, Lookup | LeaderTicket):
            found = await found
        if isinstance(found, Lookup):
            ctx.is_cached = True
            return ForwardedResult(found.value, found.mark.decode(), found.remaining_ms)
        try:
            answer = await self._ask(ctx, request, to, meta, found.release)
            worth = judge(plan, answer.data)
            if worth is not None:
                mark = answer.revision.encode()
                found.keep(answer.data, ttl_ms=worth.ttl_ms, mark=mark, is_public=worth.is_public)
        except asyncio.CancelledError:
            found.transfer()
            raise
        finally:
            found.release()  # the first word counts
        return answer

    async def _ask(
        self,
        ctx: ExecutionContext,
        request: Request,
        to: _Addressed,
        meta: Mapping[str, Raw],
        on_asked: Callable[[], None] = lambda: None,
    ) -> ForwardedResult:
        """Send a request within its time limit, and return the result of the server, or its questions for methods that allow them."""
        ctx.server = to.server
        limit_ms = self._policies().server_limit_ms(to.server)
        input_ms = self._policies().input_timeout_ms
        deadline = self._timeouts.begin(ctx.interrupt, limit_ms, input_ms)
        try:
            async with self._overload.slot(to.server, ctx.caller.principal.key, partial(timed, ctx, QUEUE)):
                sent, response = await self._send(ctx, request, to, meta, deadline, on_asked)
        except asyncio.CancelledError:
            if not deadline.has_expired:
                raise
            if deadline.is_waiting_for_client:
                raise _unanswered(to.server, request.method, input_ms) from None
            raise _too_slow(to.server, request.method, limit_ms) from None
        except UpstreamReplyError as refusal:
            raise refused_with(refusal, ctx.caller, request.method) from refusal
        finally:
            ctx.received_at = time.monotonic()
            deadline.close()
            if deadline.client_s:
                ctx.note_wait(CLIENT, deadline.client_s)
        result, revision = response.result, sent.session.identity.version
        ctx.upstream_revision = revision
        if not result.startswith(b"{"):
            raise GatewayFailure(
                Kind.MALFORMED_RESULT, f"{to.server} answered {request.method} without an object", server=to.server
            )
        if to.goes_on:
            result = self._keep_tasks_apart(ctx.caller, request.method, sent.session, result)
        max_bytes = self._policies().max_response_bytes
        if sent.is_input_required and len(result) > max_bytes:
            raise too_large(to.server, request.method, max_bytes)
        return ForwardedResult(result, revision, is_input_required=sent.is_input_required)

    async def _send(
        self,
        ctx: ExecutionContext,
        request: Request,
        to: _Addressed,
        meta: Mapping[str, Raw],
        deadline: Deadline,
        on_asked: Callable[[], None],
    ) -> tuple[UpstreamRequest, Response]:
        caller = ctx.caller
        session = self._connections.connected(to.server)
        if session is None:
            session = await timed(ctx, CONNECTION, self._connections.session(to.server))
        sent = UpstreamRequest(
            ctx=ctx,
            caller=caller,
            server=to.server,
            method=request.method,
            members=to.members,
            meta=meta,
            name=to.name,
            on_progress=relay_progress(caller.channel, to.token),
            deadline=deadline,
            on_send=_no_headers if to.task is None else partial(self._require_own, caller, to.task),
            on_asked=on_asked,
        )
        needs_no_answer = request.method not in INPUT_REQUIRED_METHODS and not (to.goes_on and caller.era is Era.LEGACY)
        if needs_no_answer and not session.is_lists_alone:
            return sent, await self._bridge.send(sent, session, to.members)
        return sent, await self._bridge.complete(sent, await self._bridge.exchange(sent, session))

    def _require_own(self, caller: Caller, task: str, session: Session) -> Headers:
        """Check the owner of a task right before the request leaves, because only then its session is certain."""
        self._tasks.require(session, caller.owner, task, self._tools_of(caller))
        return ()

    def _tools_of(self, caller: Caller) -> Collection[str] | None:
        """The tools that a caller may use now; None where permissions say nothing."""
        access = self._connections.catalog_for(caller).access
        return None if access is None else access.tools

    def _own(self, uri: str, caller: Caller) -> bytes:
        text = self._read_own(uri, caller)
        if text is None:
            raise GatewayFailure(Kind.UNKNOWN_RESOURCE, f"The gateway has no resource {uri!r}.", details={"uri": uri})
        return text


def _cursor_binding(caller: Caller, server: str) -> StateBinding:
    session = {} if caller.session is None else {"session": Raw(encode_json(caller.session))}
    return StateBinding(caller.principal.key, server, _LIST_TASKS, session)


def _no_headers(session: Session) -> Headers:
    return ()


def _params(request: Request) -> tuple[dict[str, Raw], dict[str, Raw], Raw | None]:
    """The params without `_meta`, the members of `_meta` to pass on, and the progress token."""
    members = messages.members(request.params or b"{}")
    held = members.pop("_meta", None)
    try:
        meta = messages.members(bytes(held)) if held is not None else {}
    except msgspec.DecodeError:
        raise _bad(request.method, "_meta must be an object") from None
    return members, modern.without_envelope(meta), token_of(meta, request.method)


def _text(members: Mapping[str, Raw], name: str, method: str) -> str:
    try:
        return _TEXT.decode(members[name])
    except (KeyError, msgspec.DecodeError):
        raise _bad(method, f"{name} must be a text") from None


def _not_here(method: str, why: str) -> GatewayFailure:
    return GatewayFailure(Kind.METHOD_NOT_FOUND, f"There is no method {method[:100]!r} here: {why}.")


def _too_slow(
    server: str, method: str, limit_ms: int, *, phase: str = "call", verdict: Verdict | None = None
) -> GatewayFailure:
    return GatewayFailure(
        Kind.CALL_TIMEOUT,
        f"{server} did not answer {method} within {limit_ms} ms (timeout)",
        server=server,
        operation=method,
        verdict=verdict,
        details={"phase": phase, "timeoutMs": limit_ms, "timeout_seconds": limit_ms / 1000},
    )


def _unanswered(server: str, method: str, limit_ms: int) -> GatewayFailure:
    return GatewayFailure(
        Kind.INPUT_UNANSWERED,
        f"{server} asked the client for input to {method} and had no answer within {limit_ms} ms (timeouts.inputTimeoutMs)",
        server=server,
        operation=method,
        details={"phase": "input", "timeoutMs": limit_ms},
    )


def _bad(method: str, why: str) -> GatewayFailure:
    return GatewayFailure(Kind.INVALID_PARAMS, f"The params of {method} can't be used: {why}.")
