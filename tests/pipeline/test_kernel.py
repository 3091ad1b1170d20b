"""The one entry: always a reply, always a seal, nothing internal on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Event, InternalFailure, RequestFinished
from pactgate.core.failures import GatewayFailure, Kind, Reply, WireSettings
from pactgate.pipeline.kernel import Kernel
from pactgate.protocol.messages import Request
from pactgate.protocol.versions import Era
from tests.support.callers import call, caller, context, request

Handler = Callable[[ExecutionContext, Request], Awaitable[bytes]]


class Heard:
    def __init__(self, **handlers: Handler) -> None:
        self.events: list[Event] = []
        table = {name.replace("__", "/"): handler for name, handler in handlers.items()}
        self.kernel = Kernel(
            table, wire=WireSettings(), max_response_bytes=2**20, emit=self.events.append, clock=lambda: 0.5
        )

    @property
    def records(self) -> list[str]:
        return [event.record.outcome for event in self.events if isinstance(event, RequestFinished)]


async def answers(ctx: ExecutionContext, request: Request) -> bytes:
    return b'{"ok":true}'


async def breaks(ctx: ExecutionContext, request: Request) -> bytes:
    raise ZeroDivisionError("the secret is hunter2")


async def refuses(ctx: ExecutionContext, request: Request) -> bytes:
    raise GatewayFailure(Kind.UPSTREAM_ERROR, "no")


async def test_a_result_is_passed_on_and_the_context_sealed() -> None:
    heard, ctx = Heard(ping=answers), context("ping")
    assert await heard.kernel.handle(ctx, request("ping")) == Reply(result=b'{"ok":true}')
    assert ctx.record is not None
    assert ctx.record.duration_ms == 500
    assert heard.records == ["ok"]


@pytest.mark.requirement("S4/F1")
async def test_an_unknown_method_is_not_found() -> None:
    heard = Heard(ping=answers)
    reply = await heard.kernel.handle(context("nonsense"), request("nonsense"))
    assert reply.error is not None
    assert reply.error.code == -32601
    assert heard.records == ["method_not_found"]


@pytest.mark.parametrize(("method", "era"), [("ping", Era.MODERN), ("server/discover", Era.LEGACY)])
async def test_a_method_of_the_other_era_does_not_exist(method: str, era: Era) -> None:
    heard = Heard(ping=answers, server__discover=answers)
    reply = await heard.kernel.handle(context(method, caller(era)), request(method))
    assert reply.error is not None
    assert reply.error.code == -32601


@pytest.mark.requirement("S4/R1")
async def test_an_unexpected_exception_is_internal_and_nothing_of_it_is_on_the_wire() -> None:
    heard, ctx = Heard(ping=breaks), context("ping")
    reply = await heard.kernel.handle(ctx, request("ping"))
    assert reply.error is not None
    assert reply.error.code == -32603
    assert reply.error.data["failure_mode"] == "internal"
    assert "hunter2" not in repr(reply)
    assert "ZeroDivision" not in repr(reply)
    logged = next(event for event in heard.events if isinstance(event, InternalFailure))
    assert logged.request_id == ctx.request_id
    assert logged.request_id in reply.error.message
    assert "hunter2" in logged.traceback
    assert heard.records == ["internal"]


@pytest.mark.requirement("S4/R4")
async def test_a_failure_is_kept_in_the_sealed_record() -> None:
    heard, ctx = Heard(tools__call=refuses), context()
    reply = await heard.kernel.handle(ctx, call("x"))
    assert reply.result is not None
    assert ctx.record is not None
    assert ctx.record.failure is not None
    assert ctx.record.failure["failure_mode"] == "upstream_error"


@pytest.mark.requirement("S4/R4")
async def test_a_cancelled_request_is_sealed_too_and_stays_cancelled() -> None:
    began = asyncio.Event()

    async def waits(ctx: ExecutionContext, request: Request) -> bytes:
        began.set()
        await asyncio.Event().wait()
        return b""

    heard, ctx = Heard(ping=waits), context("ping")
    task = asyncio.create_task(heard.kernel.handle(ctx, request("ping")))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard.records == ["cancelled"]
