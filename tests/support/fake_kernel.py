"""A kernel for tests of the endpoints: it answers by method name, and lets a test see and steer what runs in it."""

from __future__ import annotations

import asyncio
from typing import Any

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure, Reply, WireError
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.unanswered import UnansweredError
from pactgate.core.values import Caller, Responder
from pactgate.inbound.http_exchange import Work
from pactgate.pipeline.running_request import RunningRequest
from pactgate.protocol import messages
from pactgate.protocol.messages import Notification, Request, encode_json

PROGRESS = "notifications/progress"


class FakeKernel:
    """`initialize`, `ping` and `server/discover` answer plainly; `tools/call` does what the called name says.

    Answered inside `start`: `echo` returns its params; `big` returns as many bytes as it is asked to; `steps` sends as many notifications
    as it is asked to, then answers; `fail` answers with an error. Answered later: `hang` waits until it is let go or cancelled;
    `stepwise` sends one notification, waits until it is let go, sends another and answers; `later` answers in another turn of the loop;
    `ask` asks its caller and answers with what it said. Answered with a cancellation that nobody asked for: `dropped`. Never answered:
    `never`, which can't be cancelled either. `unwritable` answers with a result no responder can write, inside `start`;
    `unwritable_later` does so in another turn of the loop. `crash` raises where it runs, and `crash_at_once` out of `start`:
    the real kernel does neither unless it has a bug.
    """

    def __init__(self, emit: Emit = lambda event: None) -> None:
        self.callers: list[Caller] = []
        self.notices: list[tuple[Caller, Notification]] = []
        self.audiences: list[Any] = []
        self.ended_sessions: list[str] = []
        self.refused: list[tuple[str, int]] = []
        self.body_failure: GatewayFailure | None = None
        """Why every large body is refused before it is decoded."""
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.handshake_error: WireError | None = None
        self.is_handshake_slow = False
        self.running = 0
        self._barrier = FaultBarrier(emit)

    def check_body(self, subject: str, body: bytes) -> GatewayFailure | None:
        return self.body_failure

    def count_refused(self, subject: str, size: int) -> None:
        self.refused.append((subject, size))

    def start(self, ctx: ExecutionContext, request: Request, responder: Responder) -> Work:
        """Begin to answer, driven as the real kernel drives its requests: the responder is told inside `start` unless something waits."""
        called = _called_tool(request)
        if called == "crash_at_once":
            raise RuntimeError("a bug")
        if called == "never":
            self.started.set()
            return _Deaf()
        running = RunningRequest(responder, self._barrier, self._run(ctx, request))
        running.step()
        return running

    async def _run(self, ctx: ExecutionContext, request: Request) -> Reply:
        self.callers.append(ctx.caller)
        self.running += 1
        try:
            return await self._reply(ctx, request)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        finally:
            self.running -= 1

    def notice(self, caller: Caller, notification: Notification) -> None:
        self.notices.append((caller, notification))

    def join(self, audience: Any) -> None:
        self.audiences.append(audience)

    def leave(self, audience: Any) -> None:
        self.audiences = [each for each in self.audiences if each is not audience]

    def left(self, session: str) -> None:
        self.ended_sessions.append(session)

    async def _reply(self, ctx: ExecutionContext, request: Request) -> Reply:
        if request.method == "initialize":
            if self.is_handshake_slow:
                await self._hang(ctx.caller, request, {})
            if self.handshake_error is not None:
                return Reply(error=self.handshake_error)
            info = {"protocolVersion": ctx.caller.version, "serverInfo": {"name": "fake", "version": "0"}}
            return Reply(encode_json({**info, "capabilities": {}}))
        if request.method == "subscriptions/listen":
            return await self._hang(ctx.caller, request, {})
        if request.method != "tools/call":
            return Reply(b"{}" if request.method == "ping" else encode_json({"method": request.method}))
        params: dict[str, Any] = messages.value(request.params or b"{}")
        what = getattr(self, f"_{_called_tool(request)}", None)
        if what is None:
            return Reply(error=WireError(messages.INVALID_PARAMS, "unknown tool"))
        reply: Reply = await what(ctx.caller, request, params.get("arguments") or {})
        return reply

    async def _echo(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        return Reply(request.params)

    async def _big(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        return Reply(b'{"text":"%b"}' % (b"x" * arguments["bytes"]))

    async def _hang(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        self.started.set()
        await self.release.wait()
        return Reply(b'{"released":true}')

    async def _steps(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        padding = "x" * arguments.get("padding", 0)
        for step in range(arguments["count"]):
            caller.channel.notify(PROGRESS, encode_json({"progress": step, "message": padding}))
        return Reply(b'{"done":true}')

    async def _stepwise(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        caller.channel.notify(PROGRESS, b'{"progress":1}')
        self.started.set()
        await self.release.wait()
        caller.channel.notify(PROGRESS, b'{"progress":2}')
        return Reply(b'{"done":true}')

    async def _ask(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        if not caller.channel.can_ask:
            return Reply(b'{"said":"can not be asked"}')
        self.started.set()
        try:
            said = await caller.channel.ask("roots/list", b"{}")
        except UnansweredError as failure:
            return Reply(encode_json({"refused": failure.reply.code}))
        return Reply(b'{"said":%b}' % said)

    async def _fail(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        return Reply(error=WireError(arguments.get("code", messages.INTERNAL_ERROR), "it failed", {"why": "asked to"}))

    async def _later(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        await asyncio.sleep(0)
        return Reply(request.params)

    async def _dropped(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        raise asyncio.CancelledError

    async def _unwritable(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        for _ in range(arguments.get("notices", 0)):
            caller.channel.notify(PROGRESS, b"{}")
        return Reply(_UNWRITABLE)

    async def _unwritable_later(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        await asyncio.sleep(0)
        return await self._unwritable(caller, request, arguments)

    async def _crash(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        raise RuntimeError("a bug")


class _Deaf:
    """Work that can't be stopped."""

    def cancel(self) -> None:
        return


_UNWRITABLE: Any = object()
"""True, as a result is, and no bytes: whoever writes it raises."""


def _called_tool(request: Request) -> str | None:
    if request.method != "tools/call":
        return None
    name: str | None = messages.value(request.params or b"{}").get("name")
    return name
