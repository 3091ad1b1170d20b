"""A kernel for tests of the faces: it answers by method name, and lets a test see and steer what runs in it."""

from __future__ import annotations

import asyncio
from typing import Any

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import Reply, WireError
from pactgate.core.unanswered import Unanswered
from pactgate.core.values import Caller
from pactgate.inbound.http_exchange import Work
from pactgate.inbound.replies import Done
from pactgate.protocol import messages
from pactgate.protocol.messages import Notification, Request, encode_json

PROGRESS = "notifications/progress"


class FakeKernel:
    """`initialize`, `ping` and `server/discover` answer plainly; `tools/call` does what the called name says.

    `echo` returns its params; `hang` waits until it is let go or cancelled; `steps` sends as many notices as it is asked to, then
    answers; `stepwise` sends one, waits until it is let go, sends another and answers; `ask` asks its caller and answers with what it said;
    `fail` answers with an error; `crash` raises.
    """

    def __init__(self) -> None:
        self.callers: list[Caller] = []
        self.notices: list[tuple[Caller, Notification]] = []
        self.audiences: list[Any] = []
        self.ended_sessions: list[str] = []
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.handshake_error: WireError | None = None
        self.is_handshake_slow = False
        self.running = 0
        self.answered = 0

    async def handle(self, ctx: ExecutionContext, request: Request) -> Reply:
        self.callers.append(ctx.caller)
        self.running += 1
        try:
            reply = await self._reply(ctx, request)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        finally:
            self.running -= 1
        self.answered += 1
        return reply

    def start(self, ctx: ExecutionContext, request: Request, done: Done) -> Work:
        task = asyncio.get_running_loop().create_task(self.handle(ctx, request))
        task.add_done_callback(lambda ended: done(None if ended.cancelled() else ended.result()))
        return task

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
        what = getattr(self, f"_{params.get('name')}", None)
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
        except Unanswered as failure:
            return Reply(encode_json({"refused": failure.reply.code}))
        return Reply(b'{"said":%b}' % said)

    async def _fail(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        return Reply(error=WireError(arguments.get("code", messages.INTERNAL_ERROR), "it failed", {"why": "asked to"}))

    async def _crash(self, caller: Caller, request: Request, arguments: dict[str, Any]) -> Reply:
        raise RuntimeError("a bug")
