"""The driver of the gates: order, early ends, one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pactgate.config.model import Config
from pactgate.config.sections.limits import Timeouts
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.values import Tool
from pactgate.pipeline.call import Call
from pactgate.pipeline.deadline import TimeoutQueue
from pactgate.pipeline.tool_call import ToolCall
from pactgate.pipeline.tool_policy import PolicyTable, ToolPolicy
from tests.support.callers import call, context
from tests.support.eventually import eventually

TOOL = Tool("files", "read", "files.read", "files__read", b"{}", b"{}", "0")


class Step:
    """A gate that writes down that it ran, and then does what the test wants."""

    def __init__(
        self, name: str, seen: list[str], then: Callable[[Call], Awaitable[None] | None] | None = None
    ) -> None:
        self.name = name
        self._seen = seen
        self._then = then

    def __call__(self, call: Call) -> Awaitable[None] | None:
        self._seen.append(self.name)
        return self._then(call) if self._then else None

    def applies_to(self, policy: ToolPolicy) -> bool:
        return self.name not in self.skipped_for

    skipped_for: frozenset[str] = frozenset()


async def run(driven: ToolCall) -> bytes:
    """As the kernel runs it: whatever ends the call from outside cancels what it waits for."""
    ctx = context()
    task = asyncio.ensure_future(driven.run(ctx, call("x")))

    def interrupt() -> None:
        task.cancel()

    ctx.interrupt = interrupt
    return await task


def binds(call: Call) -> None:
    call.bind(TOOL, None)


def raises(call: Call) -> None:
    raise GatewayFailure(Kind.INVALID_ARGUMENTS, "no")


async def answers(call: Call) -> None:
    call.is_sent = True


async def asks(call: Call) -> None:
    call.is_input_required = True


async def hangs(call: Call) -> None:
    call.is_sent = True
    await asyncio.Event().wait()


def driver(
    seen: list[str],
    *,
    default_limit_ms: int = 5000,
    limit_ms: int = 5000,
    skipped: frozenset[str] = frozenset(),
    **then: Callable[[Call], Awaitable[None] | None],
) -> ToolCall:
    gate = {name: Step(name, seen, then.get(name)) for name in ("resolve", "check", "verify", "keep", "shape")}
    gate["resolve"] = Step("resolve", seen, then.get("resolve", binds))
    gate["dispatch"] = Step("dispatch", seen, then.get("dispatch", answers))
    timeouts = Timeouts(default_timeout_ms=default_limit_ms, tool_overrides={"files.read": limit_ms})
    policies = PolicyTable(Config(timeouts=timeouts), b"{}")
    for each in gate.values():
        each.skipped_for = skipped
    return ToolCall(
        (gate["resolve"],),
        (gate["check"],),
        gate["dispatch"],
        (gate["verify"],),
        (gate["keep"], gate["shape"]),
        input_required=(gate["shape"],),
        policies=lambda: policies,
        timeouts=TimeoutQueue(FaultBarrier(lambda event: None)),
    )


async def test_gates_run_in_the_order_they_are_listed() -> None:
    seen: list[str] = []
    await run(driver(seen))
    assert seen == ["resolve", "check", "dispatch", "verify", "keep", "shape"]


async def test_an_answer_that_asks_for_input_is_shaped_but_neither_judged_nor_kept() -> None:
    seen: list[str] = []
    await run(driver(seen, dispatch=asks))
    assert seen == ["resolve", "check", "dispatch", "shape"]


async def test_a_cached_answer_is_neither_sent_nor_judged_again_but_finished() -> None:
    def answers_from_the_cache(call: Call) -> None:
        call.is_answered = True

    seen: list[str] = []
    await run(driver(seen, check=answers_from_the_cache))
    assert seen == ["resolve", "check", "keep", "shape"]


async def test_gates_that_do_not_apply_to_a_tool_are_not_asked() -> None:
    seen: list[str] = []
    await run(driver(seen, skipped=frozenset({"check", "keep"})))
    assert seen == ["resolve", "dispatch", "verify", "shape"]


@pytest.mark.parametrize("waiting", ["resolve", "check"])
async def test_a_gate_that_waits_is_waited_for_before_the_next_one(waiting: str) -> None:
    seen: list[str] = []

    async def waits(call: Call) -> None:
        await asyncio.sleep(0)
        if waiting == "resolve":
            call.bind(TOOL, None)
        seen.append("waited")

    await run(driver(seen, **{waiting: waits}))
    assert seen[seen.index(waiting) + 1] == "waited"
    assert seen[-1] == "shape"


async def test_a_gate_that_refuses_leaves_every_later_gate_untouched() -> None:
    seen: list[str] = []
    with pytest.raises(GatewayFailure):
        await run(driver(seen, check=raises))
    assert seen == ["resolve", "check"]


@pytest.mark.requirement("S4/F3")
@pytest.mark.requirement("S0/ECO-100")
async def test_a_call_ends_at_its_limit_naming_server_and_operation() -> None:
    with pytest.raises(GatewayFailure) as caught:
        await run(driver([], limit_ms=20, dispatch=hangs))
    failure = caught.value
    assert failure.kind is Kind.CALL_TIMEOUT
    assert (failure.code, failure.ecosystem, failure.mode) == ("TOOL_TIMEOUT", "MCP_ECO_INVOCATION_FAILED", "timeout")
    assert failure.details == {
        "phase": "call",
        "timeoutMs": 20,
        "timeout_seconds": 0.02,
        "limitSource": 'timeouts.toolOverrides["files.read"]',
    }
    assert failure.verdict is Verdict.MAY_HAVE_RUN
    for word in ("timeout", "files", "tools/call"):
        assert word in failure.message


async def test_a_call_that_never_left_did_not_run() -> None:
    async def waits(call: Call) -> None:
        await asyncio.Event().wait()

    with pytest.raises(GatewayFailure) as caught:
        await run(driver([], default_limit_ms=100, resolve=waits))
    assert caught.value.verdict is Verdict.DID_NOT_RUN


async def test_the_callers_own_cancellation_is_not_a_timeout() -> None:
    seen: list[str] = []
    task = asyncio.create_task(run(driver(seen, dispatch=hangs)))
    await eventually(lambda: "dispatch" in seen)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_no_timer_is_left_after_a_call() -> None:
    loop = asyncio.get_running_loop()
    before = len(loop._scheduled)  # type: ignore[attr-defined]
    driven = driver([])
    for _ in range(200):
        await run(driven)
    alive = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
    assert len(alive) <= before + 1  # that of the queue, which all calls with this limit share
