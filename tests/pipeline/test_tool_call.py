"""The driver of the gates: order, early ends, one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pactgate.config.model import Config, Timeouts
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.values import Tool
from pactgate.pipeline.call import Call
from pactgate.pipeline.tool_call import ToolCall
from pactgate.pipeline.tool_policy import Rulebook
from tests.support.callers import call, context

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

    def begin(self, call: Call, sink: object) -> None:
        """As a dispatch: this one always waits."""


class Way:
    """Somebody who is told of a call, and here never is."""

    call: Call

    def __init__(self) -> None:
        self.ctx = context()
        self.request = call("x")
        self.sent = None


async def run(driven: ToolCall) -> bytes:
    came_to = driven.begin(Way())
    assert came_to is not None
    return came_to if isinstance(came_to, bytes) else await came_to


def binds(call: Call) -> None:
    call.bind(TOOL)


def raises(call: Call) -> None:
    raise GatewayFailure(Kind.INVALID_ARGUMENTS, "no")


async def answers(call: Call) -> None:
    call.is_sent = True


async def asks(call: Call) -> None:
    call.is_round = True


async def hangs(call: Call) -> None:
    call.is_sent = True
    await asyncio.Event().wait()


def driver(
    seen: list[str],
    *,
    default_limit_ms: int = 5000,
    limit_ms: int = 5000,
    is_known: bool = False,
    **then: Callable[[Call], Awaitable[None] | None],
) -> ToolCall:
    gate = {name: Step(name, seen, then.get(name)) for name in ("resolve", "check", "verify", "keep", "shape")}
    gate["resolve"] = Step("resolve", seen, then.get("resolve", binds))
    gate["dispatch"] = Step("dispatch", seen, then.get("dispatch", answers))
    timeouts = Timeouts(default_timeout_ms=default_limit_ms, tool_overrides={"files.read": limit_ms})
    book = Rulebook(Config(timeouts=timeouts), b"{}")
    return ToolCall(
        (gate["resolve"],),
        (gate["check"],),
        gate["dispatch"],
        (gate["verify"],),
        (gate["keep"], gate["shape"]),
        rounds=(gate["shape"],),
        book=lambda: book,
        again=lambda ctx, request, book: b'{"kept":true}' if is_known else None,
    )


async def test_gates_run_in_the_order_they_are_listed() -> None:
    seen: list[str] = []
    await run(driver(seen))
    assert seen == ["resolve", "check", "dispatch", "verify", "keep", "shape"]


async def test_an_answer_that_asks_for_input_is_shaped_but_neither_judged_nor_kept() -> None:
    seen: list[str] = []
    await run(driver(seen, dispatch=asks))
    assert seen == ["resolve", "check", "dispatch", "shape"]


async def test_a_call_whose_answer_is_known_passes_no_gate() -> None:
    seen: list[str] = []
    assert await run(driver(seen, is_known=True)) == b'{"kept":true}'
    assert seen == []


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
    while "dispatch" not in seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_that_met_its_limit_can_go_on_and_is_not_left_cancelled() -> None:
    async def twice() -> str:
        with pytest.raises(GatewayFailure):
            await run(driver([], limit_ms=10, dispatch=hangs))
        await asyncio.sleep(0)
        return "went on"

    assert await asyncio.create_task(twice()) == "went on"


async def test_no_timer_is_left_after_a_call() -> None:
    loop = asyncio.get_running_loop()
    before = len(loop._scheduled)  # type: ignore[attr-defined]
    for _ in range(200):
        await run(driver([]))
    alive = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
    assert len(alive) <= before
