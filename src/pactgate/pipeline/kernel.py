"""The one entry for every request of every endpoint, and the boundary where a fault becomes its client's reply.

`start` looks the method up, runs its handler, and always gives a reply: a failure is rendered by the one table, an exception nobody
expected becomes `internal` with nothing of it on the wire. The context is sealed on every way out.
Enforces S4/R1, S4/R4 and S4/SIB-4.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

from pactgate.core import request_kinds
from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit, RequestFinished
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind, Party, Reply, Verdict, to_reply
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.masking import MAX_TEXT_CHARS, Mask
from pactgate.core.request_kinds import KINDS
from pactgate.core.trace_context import CallTrace
from pactgate.core.values import Caller, ClientGroup, Responder
from pactgate.pipeline.call import FRAME_BYTES
from pactgate.pipeline.post_gates import facts_of
from pactgate.pipeline.running_request import RunningRequest
from pactgate.pipeline.tool_policy import PolicyTable
from pactgate.policy.envelope import stamp_failure
from pactgate.policy.limits import check_body
from pactgate.policy.refused_bytes import RefusedBytes
from pactgate.policy.response_size import fit_error
from pactgate.policy.scopes import FREE_METHODS
from pactgate.protocol import modern, versions
from pactgate.protocol.messages import Notification, Request
from pactgate.upstreams.pending import in_task

Handler = Callable[[ExecutionContext, Request], Coroutine[Any, Any, bytes]]
"""Runs one method and returns its result, shaped for the caller's era."""

TOOL_CALL = "tools/call"
EXTENSION = "*"
"""In the table: what is done with a method no revision has."""


class ClientRegistry(Protocol):
    """Whoever has to know which callers there are."""

    def join(self, audience: ClientGroup) -> None: ...

    def leave(self, audience: ClientGroup) -> None: ...

    def left(self, session: str) -> None: ...


def _ignore(caller: Caller, notification: Notification) -> None:
    return


class AuditTrail(Protocol):
    """Where requests leave a record before their answers go out."""

    def require(self) -> None:
        """Raise when no record could be written now."""

    def keep(self, ctx: ExecutionContext, params: bytes | None) -> Awaitable[str | None] | None:
        """Hand over a sealed request. What is waited for says None once it is written, else why the answer must be held back."""


class RequestTracer(Protocol):
    """Decides whether a request is traced."""

    def begin(self, ctx: ExecutionContext, request: Request) -> CallTrace | None: ...


class RequestRates(Protocol):
    """Counts requests other than tool calls, which are counted by a gate."""

    def admit_request(self, subject: str, kind: str) -> Awaitable[None] | None:
        """Raise when one more is too many. An awaitable does so once it is known."""


class Kernel:
    """The method table and the outermost boundary."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        policies: Callable[[], PolicyTable],
        emit: Emit,
        hearing: ClientRegistry | None = None,
        mask: Mask | None = None,
        audit: AuditTrail | None = None,
        rates: RequestRates | None = None,
        tracer: RequestTracer | None = None,
        on_notice: Callable[[Caller, Notification], None] = _ignore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._handlers = handlers
        self._policies = policies
        self._hearing = hearing
        self._emit = emit
        self._barrier = FaultBarrier(emit)
        self._mask = mask or Mask()
        self._audit = audit
        self._rates = rates
        self._tracer = tracer
        self._on_notice = on_notice
        self._clock = clock
        self._refused = RefusedBytes(clock)

    def check_body(self, subject: str, body: bytes) -> GatewayFailure | None:
        """Why a large body is refused before it is decoded: its sender has spent the budget, or it breaks a limit."""
        return self._refused.check(subject) or check_body(body, self._policies().body_limits)

    def count_refused(self, subject: str, size: int) -> None:
        """An endpoint has refused a body of this size by itself."""
        self._refused.add(subject, size)

    def start(self, ctx: ExecutionContext, request: Request, responder: Responder) -> RunningRequest:
        """Begin to answer a request. The responder is told once, perhaps at once, the reply, or None when it was cancelled."""
        if self._tracer is not None:
            ctx.trace = self._tracer.begin(ctx, request)
        running = RunningRequest(responder, self._barrier, self._run(ctx, request))
        ctx.interrupt = running.interrupt
        running.step()
        return running

    async def handle(self, ctx: ExecutionContext, request: Request) -> Reply:
        """The same for whoever waits. Raises nothing but the cancellation of its own task."""
        awaited = AwaitedReply()
        running = self.start(ctx, request, awaited)
        try:
            reply = await asyncio.shield(awaited.reply)
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait((awaited.reply,))
            raise
        if reply is None:
            raise asyncio.CancelledError
        return reply

    async def _run(self, ctx: ExecutionContext, request: Request) -> Reply:
        """Everything that can come of a request. Raises nothing but its cancellation."""
        try:
            if request.method == TOOL_CALL and TOOL_CALL in self._handlers:  # which every revision has
                if self._audit is not None:
                    self._audit.require()
                handler = self._handlers[TOOL_CALL]
            else:
                await in_task()  # only the way of a tool call does without what needs one
                handler, admitted = self._handler(ctx.caller, request.method)
                if admitted is not None:
                    await admitted
            reply = Reply(await handler(ctx, request))
        except GatewayFailure as failure:
            reply = self._refuse(ctx, request, failure)
        except asyncio.CancelledError:
            self._cancelled(ctx, request)
            raise
        except Exception as unexpected:  # noqa: BLE001 - the outermost boundary (S4/R1)
            reply = self._refuse(ctx, request, self._internal(ctx, request, unexpected))
        if ctx.trace is not None and ctx.trace.content is not None:
            ctx.trace.content.result = reply.result or b""
        recording = self._seal(ctx, request)
        if recording is not None:
            why = await recording
            if why is not None:
                reply = self._rendered(ctx, request, _held_back(ctx, why))
        return reply

    def _cancelled(self, ctx: ExecutionContext, request: Request) -> None:
        if request.method != modern.LISTEN:  # which ends in no other way
            ctx.fail(GatewayFailure(Kind.CANCELLED, "the client gave up"))
        self._seal(ctx, request)

    def _seal(self, ctx: ExecutionContext, request: Request) -> Awaitable[str | None] | None:
        """Seal what is known of a request, and see that it is recorded; what is to be waited for before its answer goes out."""
        self._emit(RequestFinished(ctx.seal(self._clock())))
        if self._audit is None or not (request.method in KINDS or self._is_extension(ctx.caller, request.method)):
            return None
        return self._audit.keep(ctx, request.params)

    def _handler(self, caller: Caller, method: str) -> tuple[Handler, Awaitable[None] | None]:
        """What runs a method other than `tools/call`, and what to await before.

        Absence is the version gate; on one server's own path, that server may know more methods, those the operator names."""
        handler = self._handlers.get(method)
        scopes = self._policies().scopes
        if handler is not None and (versions.exists(method, caller.version) or _is_of_groups(caller, method)):
            if scopes is not None and method not in FREE_METHODS:
                scopes.read.require(caller.principal, method)
            return handler, self._admit(caller, KINDS.get(method))
        if self._is_extension(caller, method):
            if scopes is not None:
                scopes.unknown.require(caller.principal, method[:100])
            return self._handlers[EXTENSION], self._admit(caller, request_kinds.EXTENSION)
        raise unknown_method(method, caller.scope)

    def _is_extension(self, caller: Caller, method: str) -> bool:
        if caller.scope is None or EXTENSION not in self._handlers or not versions.is_foreign(method):
            return False
        return self._policies().is_extension(caller.scope, method)

    def _admit(self, caller: Caller, kind: str | None) -> Awaitable[None] | None:
        """Count a request that is not a tool call, and see that it can be recorded."""
        if kind is None:
            return None
        if self._audit is not None:
            self._audit.require()
        return None if self._rates is None else self._rates.admit_request(caller.principal.key, kind)

    def notice(self, caller: Caller, notification: Notification) -> None:
        """A client's notification that is not about one of its requests."""
        self._on_notice(caller, notification)

    def join(self, audience: ClientGroup) -> None:
        """An endpoint has callers that can be told things outside their requests."""
        if self._hearing is not None:
            self._hearing.join(audience)

    def leave(self, audience: ClientGroup) -> None:
        if self._hearing is not None:
            self._hearing.leave(audience)

    def left(self, session: str) -> None:
        """A legacy session has ended."""
        if self._hearing is not None:
            self._hearing.left(session)

    def _refuse(self, ctx: ExecutionContext, request: Request, failure: GatewayFailure) -> Reply:
        # The traceback leads to the frames of the call, these to the context, and the context to the failure: a cycle that would keep
        # the arguments until the cycle collector runs, which large arguments do not make it do.
        failure.__traceback__ = failure.__context__ = failure.__cause__ = None
        if failure.party is Party.CALLER:
            self._refused.add(ctx.caller.principal.key, request.size)
        ctx.fail(failure)
        try:
            mask = self._mask
            failure.reword(lambda text: mask.start(text, MAX_TEXT_CHARS))
            failure.details = mask.value(failure.details)
            failure.tool = failure.tool and mask.start(failure.tool, MAX_TEXT_CHARS)
            return self._rendered(ctx, request, failure)
        except Exception as fault:  # noqa: BLE001 - a refusal must not fail, whatever a server put into its error
            self._barrier.report("refusal", fault, ctx.request_id)
            failure.reword(lambda text: f"The request failed: {failure.mode}.")
            failure.details = {}
            return self._rendered(ctx, request, failure)

    def _rendered(self, ctx: ExecutionContext, request: Request, failure: GatewayFailure) -> Reply:
        is_tool_call, policies = request.method == TOOL_CALL, self._policies()
        reply = to_reply(
            failure, is_tool_call=is_tool_call, era=ctx.caller.era, wire=policies.wire, request_id=ctx.request_id
        )
        if reply.error is not None and ctx.record is None:
            ctx.error_code = reply.error.code
        max_bytes = policies.max_response_bytes - FRAME_BYTES - len(request.id)
        if is_tool_call:
            return stamp_failure(reply, facts_of(ctx, self._clock()), failure, max_bytes)
        assert reply.error is not None, "only a tool call has a result to carry its failure"
        return Reply(error=fit_error(reply.error, max_bytes))

    def _internal(self, ctx: ExecutionContext, request: Request, error: Exception) -> GatewayFailure:
        self._barrier.report(request.method, error, ctx.request_id)
        return GatewayFailure(
            Kind.INTERNAL, f"Internal error. The operator finds it in the log under {ctx.request_id}."
        )


class AwaitedReply:
    """A responder somebody awaits."""

    def __init__(self) -> None:
        self.reply: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()

    def done(self, reply: Reply | None) -> None:
        if not self.reply.done():  # who awaits it directly may have been cancelled, and the future with it
            self.reply.set_result(reply)

    def broken(self) -> None:
        self.reply.cancel()


def _held_back(ctx: ExecutionContext, why: str) -> GatewayFailure:
    """No answer goes out without its record. What is known of the action stays what it was."""
    verdict = ctx.failure.verdict if ctx.failure else Verdict.DID_NOT_RUN if ctx.is_cached else Verdict.RAN
    return GatewayFailure(
        Kind.AUDIT_UNAVAILABLE,
        f"The answer is held back, because the call could not be recorded: the audit log can't be written ({why}). "
        "The operator has to see to it. Look whether the action happened before you call again.",
        server=ctx.tool.server if ctx.tool else None,
        tool=ctx.tool.full_name if ctx.tool else ctx.requested,
        operation=ctx.method,
        code=ErrorCode.OPERATION_FAILED,
        verdict=verdict,
    )


def _is_of_groups(caller: Caller, method: str) -> bool:
    return caller.scope is None and method in versions.GROUPS and caller.version in versions.MODERN_VERSIONS


def unknown_method(method: str, server: str | None) -> GatewayFailure:
    is_unnamed = server is not None and versions.is_foreign(method)
    why = f": `extensions` of the server {server!r} does not name it" if is_unnamed else ""
    return GatewayFailure(Kind.METHOD_NOT_FOUND, f"There is no method {method[:100]!r} here{why}.")
