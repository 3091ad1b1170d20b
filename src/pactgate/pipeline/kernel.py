"""The one entry for every request of every face, and the one place where anything at all may be caught.

`start` looks the method up, lets it run, and always gives a reply: a failure is rendered by the one table, an exception nobody
expected becomes `internal` with nothing of it on the wire. A tool call goes in steps (`tool_call`), anything that has to be waited for
in a task of its own. The context is sealed on every way out. Enforces S4/R1, S4/R4 and S4/SIB-4.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit, InternalFailure, RequestFinished
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind, Reply, Verdict, WireSettings, to_reply
from pactgate.core.values import Caller
from pactgate.pipeline.call import FRAME_BYTES, Call
from pactgate.pipeline.change_notifications import Audience
from pactgate.pipeline.post_gates import facts_of
from pactgate.pipeline.tool_call import Step, Way
from pactgate.policy.envelope import stamp_failure
from pactgate.policy.response_size import fit_error
from pactgate.protocol import messages, modern, versions
from pactgate.protocol.messages import Notification, Request, Response, encode_json
from pactgate.upstreams.pending import Sent

Handler = Callable[[ExecutionContext, Request], Coroutine[Any, Any, bytes]]
"""Runs one method and returns its result, shaped for the caller's era."""

Recording = asyncio.Future[str | None]

Done = Callable[[Reply | None], None]
"""Takes the reply to a request, or None when it was cancelled."""

TOOL_CALL = "tools/call"
EXTENSION = "*"
"""In the table: what is done with a method no revision has."""


class Hearing(Protocol):
    """Whoever has to know which callers there are."""

    def join(self, audience: Audience) -> None: ...

    def leave(self, audience: Audience) -> None: ...

    def left(self, session: str) -> None: ...


def _ignore(caller: Caller, notification: Notification) -> None:
    return


class Audit(Protocol):
    """Where tool calls leave a record before their answers go out."""

    def require(self) -> None:
        """Raise when no record could be written now."""

    def keep(self, ctx: ExecutionContext, params: bytes | None) -> Recording | None:
        """Hand over a sealed call. What is waited for says None once it is written, else why the answer must be held back."""


class Stepwise(Protocol):
    """A tool call in steps (`ToolCall`). Each says what it came to, or raises the failure that ends the call."""

    def begin(self, way: Way) -> Step: ...

    def answered(self, way: Way, response: Response) -> Step: ...

    def failed(self, way: Way, failure: GatewayFailure) -> Step: ...

    def expired(self, way: Way) -> Step: ...

    def cancelled(self, way: Way) -> None: ...


class Kernel:
    """The method table and the outermost boundary."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        tool_call: Stepwise,
        wire: WireSettings,
        emit: Emit,
        max_response_bytes: int,
        hearing: Hearing | None = None,
        mask: Callable[[str], str] = str,
        audit: Audit | None = None,
        on_notice: Callable[[Caller, Notification], None] = _ignore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._handlers = handlers
        self.tool_call = tool_call
        self.wire = wire
        self.max_response_bytes = max_response_bytes
        self._hearing = hearing
        self._emit = emit
        self._mask = mask
        self._audit = audit
        self._begin_call = tool_call.begin if audit is None else self._begin_recorded
        self._on_notice = on_notice
        self._clock = clock

    def start(self, ctx: ExecutionContext, request: Request, done: Done) -> UnderWay:
        """Begin to answer a request; `done` is called once, perhaps at once, with the reply or with None when it was cancelled."""
        way = UnderWay(self, ctx, request, done)
        self.step(way, self._begin_call if request.method == TOOL_CALL else self._begin)
        return way

    async def handle(self, ctx: ExecutionContext, request: Request) -> Reply:
        """The same for whoever waits. Raises nothing but the cancellation of its own task."""
        told: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        way = self.start(ctx, request, told.set_result)
        try:
            reply = await asyncio.shield(told)
        except asyncio.CancelledError:
            way.cancel()
            await asyncio.wait((told,))
            raise
        if reply is None:
            raise asyncio.CancelledError
        return reply

    def step(self, way: UnderWay, take: Callable[..., Step], given: Any = None) -> None:
        """Go one step on the way of a request, with what it was told. Everything that can come of it ends in a reply."""
        try:
            result = take(way) if given is None else take(way, given)
        except GatewayFailure as failure:
            reply = self._refuse(way.ctx, way.request, failure)
        except Exception as unexpected:  # noqa: BLE001 - the outermost boundary (S4/R1)
            reply = self._refuse(way.ctx, way.request, self._internal(way.ctx, way.request, unexpected))
        else:
            if result is None:
                return
            if not isinstance(result, bytes):
                way.follow(result)
                return
            reply = Reply(result)
        kept = self._ended(way.ctx, way.request)
        if kept is None:
            way.end(reply)
        else:
            way.hold(reply, kept)

    def _begin(self, way: UnderWay) -> Step:
        return self._handler(way.ctx.caller, way.request.method)(way.ctx, way.request)

    def _begin_recorded(self, way: UnderWay) -> Step:
        assert self._audit is not None, "chosen because there is one"
        self._audit.require()
        return self.tool_call.begin(way)

    def give_up(self, way: UnderWay) -> None:
        """A request is cancelled, and so has no answer."""
        if way.request.method == modern.LISTEN:  # which ends in no other way
            self._ended(way.ctx, way.request)
        else:
            self._ended(way.ctx, way.request, GatewayFailure(Kind.CANCELLED, "the caller gave up"))

    def _ended(
        self, ctx: ExecutionContext, request: Request, failure: GatewayFailure | None = None
    ) -> Recording | None:
        """Seal what is known of a request, and see that it is recorded; what is to be waited for before its answer goes out."""
        if failure is not None:
            ctx.fail(failure)
        self._emit(RequestFinished(ctx.seal(self._clock())))
        if self._audit is None or request.method != TOOL_CALL:
            return None
        return self._audit.keep(ctx, request.params)

    def released(self, ctx: ExecutionContext, request: Request, reply: Reply, kept: Recording) -> Reply:
        """What is answered once it is known whether the call was recorded."""
        why = kept.result()
        return reply if why is None else self._rendered(ctx, request, _held_back(ctx, why))

    def _handler(self, caller: Caller, method: str) -> Handler:
        """Absence is the version gate; on one server's own path, that server may know more methods than we do."""
        handler = self._handlers.get(method)
        if handler is not None and versions.exists(method, caller.version):
            return handler
        if caller.scope is not None and versions.is_foreign(method) and EXTENSION in self._handlers:
            return self._handlers[EXTENSION]
        raise _unknown_method(method)

    def notice(self, caller: Caller, notification: Notification) -> None:
        """A client's notification that is not about one of its requests."""
        self._on_notice(caller, notification)

    def join(self, audience: Audience) -> None:
        """A face has callers that can be told things outside their requests."""
        if self._hearing is not None:
            self._hearing.join(audience)

    def leave(self, audience: Audience) -> None:
        if self._hearing is not None:
            self._hearing.leave(audience)

    def left(self, session: str) -> None:
        """A legacy session has ended."""
        if self._hearing is not None:
            self._hearing.left(session)

    def _refuse(self, ctx: ExecutionContext, request: Request, failure: GatewayFailure) -> Reply:
        failure.message = self._mask(failure.message)
        failure.details = self._masked(failure.details)
        ctx.fail(failure)
        return self._rendered(ctx, request, failure)

    def _rendered(self, ctx: ExecutionContext, request: Request, failure: GatewayFailure) -> Reply:
        is_tool_call = request.method == TOOL_CALL
        reply = to_reply(
            failure, is_tool_call=is_tool_call, era=ctx.caller.era, wire=self.wire, request_id=ctx.request_id
        )
        max_bytes = self.max_response_bytes - FRAME_BYTES - len(request.id)
        if is_tool_call:
            return stamp_failure(reply, facts_of(ctx, self._clock()), failure, max_bytes)
        assert reply.error is not None, "only a tool call has a result to carry its failure"
        return Reply(error=fit_error(reply.error, max_bytes))

    def _masked(self, details: dict[str, Any]) -> dict[str, Any]:
        """What an upstream said in an error may repeat a secret it was given (D18)."""
        text = encode_json(details).decode()
        masked = self._mask(text)
        return details if masked == text else messages.value(masked.encode())

    def _internal(self, ctx: ExecutionContext, request: Request, error: Exception) -> GatewayFailure:
        self._emit(
            InternalFailure(ctx.request_id, request.method, repr(error), "".join(traceback.format_exception(error)))
        )
        return GatewayFailure(
            Kind.INTERNAL, f"The gateway made a mistake. The operator finds it in the log under {ctx.request_id}."
        )


class UnderWay:
    """A request nobody awaits: told by its server's connection, its deadline, its caller or its own task, it takes the next step."""

    __slots__ = ("_done", "_held", "_is_over", "_kernel", "_task", "call", "ctx", "request", "sent")

    call: Call

    def __init__(self, kernel: Kernel, ctx: ExecutionContext, request: Request, done: Done) -> None:
        self._kernel = kernel
        self._done = done
        self._is_over = False
        self._task: asyncio.Task[bytes] | None = None
        self._held: Reply | None = None
        """The answer, while it waits for the call to be recorded."""
        self.ctx = ctx
        self.request = request
        self.sent: Sent | None = None

    def answered(self, response: Response) -> None:
        self._kernel.step(self, self._kernel.tool_call.answered, response)

    def failed(self, failure: GatewayFailure) -> None:
        self._kernel.step(self, self._kernel.tool_call.failed, failure)

    def expire(self) -> None:
        self._kernel.step(self, self._kernel.tool_call.expired)

    def cancel(self) -> None:
        """The caller does not want an answer any more, or can't have one."""
        if self._task is not None:
            # Not before its first step: what never began could not say that it was cancelled.
            asyncio.get_running_loop().call_soon(self._task.cancel)
        elif not self._is_over:
            if self._held is None:
                self._kernel.tool_call.cancelled(self)
                self._kernel.give_up(self)
            self.end(None)

    def follow(self, rest: Coroutine[Any, Any, bytes]) -> None:
        """What is left has to be waited for."""
        self._task = asyncio.get_running_loop().create_task(rest)
        self._task.add_done_callback(self._followed)

    def _followed(self, task: asyncio.Task[bytes]) -> None:
        self._task = None
        if task.cancelled():
            self._kernel.give_up(self)
            self.end(None)
        else:
            self._kernel.step(self, _result_of, task)

    def hold(self, reply: Reply, kept: Recording) -> None:
        """It has its answer, which goes out when the call is recorded."""
        self._held = reply
        kept.add_done_callback(self._recorded)

    def _recorded(self, kept: Recording) -> None:
        if self._held is not None and not self._is_over:
            self.end(self._kernel.released(self.ctx, self.request, self._held, kept))

    def end(self, reply: Reply | None) -> None:
        self._is_over = True
        self._done(reply)


def _result_of(way: UnderWay, task: asyncio.Task[bytes]) -> bytes:
    return task.result()


def _held_back(ctx: ExecutionContext, why: str) -> GatewayFailure:
    """No answer goes out without its record. What is known of the action stays what it was."""
    verdict = ctx.failure.verdict if ctx.failure else Verdict.DID_NOT_RUN if ctx.is_cached else Verdict.RAN
    return GatewayFailure(
        Kind.AUDIT_UNAVAILABLE,
        f"The answer is held back, because the call could not be recorded: the audit log can't be written ({why}). "
        "The operator has to see to it. Look whether the action happened before you call again.",
        server=ctx.tool.server if ctx.tool else None,
        tool=ctx.tool.full_name if ctx.tool else ctx.requested,
        operation=TOOL_CALL,
        code=ErrorCode.OPERATION_FAILED,
        verdict=verdict,
    )


def _unknown_method(method: str) -> GatewayFailure:
    return GatewayFailure(Kind.METHOD_NOT_FOUND, f"There is no method {method[:100]!r} here.")
