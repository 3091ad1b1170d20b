"""The one entry: always a reply, always a seal, nothing internal on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pactgate.core.context import ContextError, ExecutionContext
from pactgate.core.events import Event, InternalFailure, RequestFinished
from pactgate.core.failures import TABLE, GatewayFailure, Kind, Plane, Reply, WireSettings
from pactgate.core.model import Tool
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
@pytest.mark.requirement("S4/CODES")
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
async def test_every_kind_of_failure_is_answered_and_sealed_with_what_is_known_of_it(kind: Kind, method: str) -> None:
    async def fails(ctx: ExecutionContext, request: Request) -> bytes:
        raise GatewayFailure(kind, "x", server="files", details={"errors": [{"path": "a"}]})

    heard, ctx = Heard(tools__call=fails, tools__list=fails), context(method, caller(Era.MODERN))
    reply = await heard.kernel.handle(ctx, call("x") if method == "tools/call" else request(method))
    row = TABLE[kind]
    if method == "tools/call" and row.plane is Plane.RESULT:
        assert reply.result is not None
        assert b'"isError":true' in reply.result
    else:
        assert reply.error is not None
        assert (reply.error.code, reply.error.data["failure_mode"]) == (row.number, row.mode)
    assert heard.records == [row.mode]
    assert ctx.record is not None
    assert ctx.record.failure is not None
    told = {name: ctx.record.failure[name] for name in ("category", "failure_mode", "code", "verdict", "party")}
    assert told == {
        "category": row.category,
        "failure_mode": row.mode,
        "code": row.code,
        "verdict": row.verdict,
        "party": row.party,
    }
    assert ctx.record.duration_ms == 500
    with pytest.raises(TypeError):
        ctx.record.failure["errors"][0]["path"] = "b"
    with pytest.raises(ContextError):
        ctx.is_cached = True


@pytest.mark.requirement("S4/F1")
@pytest.mark.requirement("S4/R1")
async def test_a_broken_invariant_of_the_context_is_internal_and_never_leaves_as_an_exception() -> None:
    async def binds_twice(ctx: ExecutionContext, request: Request) -> bytes:
        tool = Tool("files", "read", "files.read", "files__read", b"{}", b"{}", "0")
        ctx.bind(tool)
        ctx.bind(tool)
        return b""

    heard = Heard(ping=binds_twice)
    reply = await heard.kernel.handle(context("ping"), request("ping"))
    assert reply.error is not None
    assert (reply.error.code, reply.error.data["category"]) == (-32603, "contract_violation")
    assert heard.records == ["internal"]


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
