"""The one entry: always a reply, always a seal, nothing internal on the wire."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec import Raw

from pactgate.config.model import Config
from pactgate.core.context import ContextError, ExecutionContext
from pactgate.core.events import Event, InternalFailure, RequestFinished
from pactgate.core.failures import TABLE, GatewayFailure, Kind, Plane, Reply
from pactgate.core.masking import Mask
from pactgate.core.request_kinds import KINDS
from pactgate.core.values import Tool
from pactgate.pipeline.kernel import AwaitedReply, Kernel
from pactgate.pipeline.tool_policy import PolicyTable
from pactgate.protocol.messages import Request
from pactgate.protocol.versions import LATEST_LEGACY, Era, exists
from pactgate.upstreams.pending import Resumable
from tests.support.callers import call, caller, context, request
from tests.support.each import each
from tests.support.eventually import eventually

Handler = Callable[[ExecutionContext, Request], Coroutine[Any, Any, bytes]]


class Recording:
    """An audit log that is told when to have written."""

    def __init__(self) -> None:
        self.trouble: GatewayFailure | None = None
        self.kept: list[ExecutionContext] = []
        self.written: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def require(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def keep(self, ctx: ExecutionContext, params: bytes | None) -> asyncio.Future[str | None]:
        assert ctx.record is not None
        self.kept.append(ctx)
        return self.written


class Heard:
    def __init__(self, audit: Recording | None = None, **handlers: Handler) -> None:
        self.events: list[Event] = []
        table = {name.replace("__", "/"): handler for name, handler in handlers.items()}
        policies = PolicyTable(Config(), b"{}")
        self.kernel = Kernel(
            table,
            policies=lambda: policies,
            emit=self.events.append,
            audit=audit,
            clock=lambda: 0.5,
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


async def refuses_limit(ctx: ExecutionContext, request: Request) -> bytes:
    raise GatewayFailure(Kind.LIMIT_EXCEEDED, "too long")


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
@each("kind", list(Kind))
@each("method", ["tools/call", "tools/list"])
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
        ctx.note_tool_error()


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


async def test_the_answer_of_a_call_waits_until_its_record_is_written() -> None:
    audit = Recording()
    heard = Heard(audit, tools__call=answers, ping=answers)
    task = asyncio.create_task(heard.kernel.handle(context(), call("files.read")))
    await asyncio.wait({task}, timeout=0.01)
    assert (task.done(), heard.records, len(audit.kept)) == (False, ["ok"], 1)
    audit.written.set_result(None)
    assert await task == Reply(result=b'{"ok":true}')
    assert await heard.kernel.handle(context("ping"), request("ping")) == Reply(result=b'{"ok":true}')
    assert len(audit.kept) == 1


@pytest.mark.parametrize("handler", [refuses, breaks])
async def test_refused_and_broken_calls_are_recorded_too(handler: Handler) -> None:
    audit = Recording()
    audit.written.set_result(None)
    heard = Heard(audit, tools__call=handler)
    await heard.kernel.handle(context(), call("files.read"))
    assert [ctx.record.outcome for ctx in audit.kept if ctx.record] == heard.records


async def test_an_answer_whose_record_can_not_be_written_is_held_back_and_says_that_it_ran() -> None:
    audit = Recording()
    audit.written.set_result("No space left on device")
    reply = await Heard(audit, tools__call=answers).kernel.handle(context(), call("files.read"))
    assert reply.result is not None
    assert b"No space left on device" in reply.result
    assert b'"verdict":"ran"' in reply.result
    assert b'"retryable":true' not in reply.result
    assert b'"ok":true' not in reply.result


async def test_a_call_that_could_not_be_recorded_does_not_begin() -> None:
    audit = Recording()
    audit.trouble = GatewayFailure(Kind.AUDIT_UNAVAILABLE, "full")
    audit.written.set_result(None)
    begun: list[str] = []

    async def begins(ctx: ExecutionContext, request: Request) -> bytes:
        begun.append(request.method)
        return b"{}"

    reply = await Heard(audit, tools__call=begins).kernel.handle(context(), call("files.read"))
    assert reply.result is not None
    assert b'"failure_mode":"audit_unavailable"' in reply.result
    assert b'"verdict":"did_not_run"' in reply.result
    assert begun == []


async def test_a_caller_that_gives_up_does_not_wait_for_its_record() -> None:
    audit, begun = Recording(), asyncio.Event()

    async def hangs(ctx: ExecutionContext, request: Request) -> bytes:
        begun.set()
        await asyncio.get_running_loop().create_future()
        return b""

    task = asyncio.create_task(Heard(audit, tools__call=hangs).kernel.handle(context(), call("files.read")))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task}, timeout=5)
    assert task.cancelled()
    assert [ctx.record.outcome for ctx in audit.kept if ctx.record] == ["cancelled"]


# Started, and told.


class Started:
    """A request that nobody awaits: its responder notes what it is told."""

    def __init__(self, heard: Heard, handler: Handler, *, fails: bool = False) -> None:
        self.ctx = context()
        self.told: list[Reply | None] = []
        self.was_broken = False
        self._fails = fails
        heard.kernel._handlers = {"tools/call": handler}  # each test has its own
        self.running = heard.kernel.start(self.ctx, call("files.read"), self)

    def done(self, reply: Reply | None) -> None:
        self.told.append(reply)
        if self._fails:
            raise ZeroDivisionError("writer")

    def broken(self) -> None:
        self.was_broken = True


def waiting() -> tuple[Resumable[bytes], Handler]:
    pending: Resumable[bytes] = Resumable(loop=asyncio.get_running_loop())

    async def waits(ctx: ExecutionContext, request: Request) -> bytes:
        return await pending

    return pending, waits


async def test_a_call_whose_result_is_there_at_once_is_answered_at_once() -> None:
    heard = Heard()
    started = Started(heard, answers)
    assert started.told == [Reply(result=b'{"ok":true}')]
    assert started.ctx.record is not None
    assert heard.records == ["ok"]


async def test_a_call_is_answered_on_the_spot_when_its_server_answers() -> None:
    heard, (pending, waits) = Heard(), waiting()
    started = Started(heard, waits)
    assert (started.told, heard.records) == ([], [])
    pending.fulfil(b'{"x":1}')
    assert (started.told, heard.records) == ([Reply(result=b'{"x":1}')], ["ok"])


async def test_what_ends_a_call_on_its_way_is_rendered_like_any_failure() -> None:
    heard, (pending, waits) = Heard(), waiting()
    started = Started(heard, waits)
    pending.refuse(GatewayFailure(Kind.CALL_TIMEOUT, "too slow"))
    assert "too slow" in repr(started.told)
    assert heard.records == ["timeout"]


@pytest.mark.requirement("S4/R1")
async def test_a_fault_while_an_answer_is_handled_becomes_internal_and_does_not_reach_the_reader() -> None:
    heard, (pending, _) = Heard(), waiting()

    async def breaks_later(ctx: ExecutionContext, request: Request) -> bytes:
        await pending
        raise ZeroDivisionError("the secret is hunter2")

    started = Started(heard, breaks_later)
    pending.fulfil(b"{}")
    (reply,) = started.told
    assert reply is not None
    assert "internal" in repr(reply)
    assert "hunter2" not in repr(reply)
    assert heard.records == ["internal"]


@pytest.mark.requirement("S4/R1")
async def test_a_writer_that_fails_is_reported_and_does_not_reach_the_reader() -> None:
    heard, (pending, waits) = Heard(), waiting()
    started = Started(heard, waits, fails=True)
    pending.fulfil(b"{}")
    assert started.was_broken
    assert [event.where for event in heard.events if isinstance(event, InternalFailure)] == ["reply"]


async def test_an_answer_that_nobody_awaits_any_more_is_no_fault() -> None:
    heard, (pending, waits) = Heard(), waiting()
    awaited = AwaitedReply()
    heard.kernel._handlers = {"tools/call": waits}
    heard.kernel.start(context(), call("files.read"), awaited)
    awaited.reply.cancel()  # as the end of a task that awaits it does
    pending.fulfil(b"{}")
    assert awaited.reply.cancelled()
    assert [event for event in heard.events if isinstance(event, InternalFailure)] == []


async def test_a_cancelled_call_on_its_way_is_sealed_and_has_no_answer() -> None:
    heard, (pending, waits) = Heard(), waiting()
    started = Started(heard, waits)
    started.running.cancel()
    started.running.cancel()
    pending.fulfil(b"{}")
    assert (started.told, heard.records) == ([None], ["cancelled"])


async def test_a_call_is_recorded_before_its_answer_goes_out() -> None:
    audit = Recording()
    started = Started(Heard(audit), answers)
    assert len(audit.kept) == 1
    await asyncio.sleep(0)
    assert started.told == []
    audit.written.set_result(None)
    await eventually(lambda: bool(started.told))
    assert started.told == [Reply(result=b'{"ok":true}')]


TEN_MEGABYTES = 10_000_000


class Large:
    """Arguments whose end can be seen."""


async def test_what_a_refused_call_held_is_let_go_at_once() -> None:
    """Not when the cycle collector runs, because large arguments are too few objects to make it run."""
    ends: list[weakref.ref[Large]] = []

    async def refuses_arguments(ctx: ExecutionContext, request: Request) -> bytes:
        arguments = Large()
        ends.append(weakref.ref(arguments))
        try:
            raise ValueError("the cause has a traceback too")
        except ValueError as cause:
            raise GatewayFailure(Kind.LIMIT_EXCEEDED, "too long") from cause

    gc.disable()
    try:
        started = Started(Heard(), refuses_arguments)
        assert started.ctx.failure is not None
        assert [end() for end in ends] == [None]
    finally:
        gc.enable()


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
@pytest.mark.parametrize("details", [{"n": object()}, {"set": {1, 2}}, {"bytes": b"\xff"}, {"text": "\ud800"}, {1: 2}])
async def test_a_refusal_whose_details_can_not_be_written_goes_out_without_them(
    details: dict[Any, Any], method: str
) -> None:
    async def refuses_oddly(ctx: ExecutionContext, request: Request) -> bytes:
        raise GatewayFailure(Kind.UPSTREAM_ERROR, "no", details=details)

    heard = Heard(None, **{method.replace("/", "__"): refuses_oddly})
    ctx = context(method)
    reply = await heard.kernel.handle(ctx, call("files.read") if method == "tools/call" else request(method))
    assert reply.result is not None or reply.error is not None
    assert heard.records == ["upstream_error"]
    assert ctx.record is not None
    assert ctx.record.failure is not None


async def test_a_secret_in_an_error_is_masked_as_a_value() -> None:
    said = {"number": 123456789, "given": Raw(b'{"pw":"CANARY\\"quote\\\\back9","n":123456789}')}

    async def repeats_secrets(ctx: ExecutionContext, request: Request) -> bytes:
        raise GatewayFailure(Kind.UPSTREAM_ERROR, 'bad CANARY"quote\\back9', details=said)

    policies = PolicyTable(Config(), b"{}")
    mask = Mask(["123456789", 'CANARY"quote\\back9'])
    kernel = Kernel({"prompts/get": repeats_secrets}, policies=lambda: policies, emit=lambda event: None, mask=mask)
    reply = await kernel.handle(context("prompts/get"), request("prompts/get"))
    assert reply.error is not None
    assert reply.error.message == "bad ***"
    assert reply.error.data["number"] == "***"
    assert reply.error.data["given"] == {"pw": "***", "n": "***"}


async def test_refused_requests_of_many_bytes_use_up_the_budget_of_their_caller() -> None:
    heard = Heard(tools__call=refuses_limit)
    body = b"x" * 100_000
    large = Request(b"1", 1, "tools/call", b'{"name":"t","arguments":{"x":"%b"}}' % (b"a" * TEN_MEGABYTES))
    assert heard.kernel.check_body("alice", body) is None
    for _ in range(7):
        await heard.kernel.handle(context("tools/call"), large)
    failure = heard.kernel.check_body(context("tools/call").caller.principal.key, body)
    assert failure is not None
    assert failure.kind is Kind.RATE_LIMITED
    assert heard.kernel.check_body("somebody else", body) is None


async def test_a_failure_of_a_server_does_not_count_against_its_caller() -> None:
    heard = Heard(tools__call=refuses)
    large = Request(b"1", 1, "tools/call", b'{"name":"t","arguments":{"x":"%b"}}' % (b"a" * TEN_MEGABYTES))
    for _ in range(20):
        await heard.kernel.handle(context("tools/call"), large)
    assert heard.kernel.check_body(context("tools/call").caller.principal.key, b"x" * 100_000) is None


@pytest.mark.parametrize("method", [method for method, kind in KINDS.items() if kind != "call"])
async def test_what_could_not_be_recorded_does_not_begin_whatever_it_is(method: str) -> None:
    audit = Recording()
    audit.trouble = GatewayFailure(Kind.AUDIT_UNAVAILABLE, "full")
    audit.written.set_result(None)
    who = caller(Era.LEGACY if exists(method, LATEST_LEGACY) else Era.MODERN)
    heard = Heard(audit, **{method.replace("/", "__"): answers, "tools__list": answers})
    reply = await heard.kernel.handle(context(method, who), request(method))
    assert reply.error is not None
    assert reply.error.data["failure_mode"] == "audit_unavailable"
    listed = await heard.kernel.handle(context("tools/list", who), request("tools/list"))
    assert listed.result is not None
    assert len(audit.kept) == 1
