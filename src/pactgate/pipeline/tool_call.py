"""One `tools/call` from admission to answer: a flat list of gates around a single dispatch, under one timer.

FIND gates learn which tool is meant; from there on only those gates are asked that have something to do for it. ADMIT gates run before
anything leaves the gateway; one of them may already have the answer. VERIFY gates judge what came back, FINISH gates shape what goes
out. A gate either returns, or raises the failure that ends the call; every earlier gate leaves all later ones untouched.
Enforces S1/TIMEOUT-001 and S1/LIMIT-002.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.pipeline.call import Call
from pactgate.pipeline.deadlines import Deadlines
from pactgate.pipeline.tool_policy import Rulebook
from pactgate.protocol.messages import Request, Response
from pactgate.protocol.simple_result import read_plain
from pactgate.upstreams.pending import Sent, Sink

_MOST_PATIENT_MS: Final = 5000
"""The longest wait a timeout advises before trying again."""


class Gate(Protocol):
    """One step. Returns nothing, or something to wait for; most gates have nothing to wait for and cost no suspension."""

    name: str

    def __call__(self, call: Call) -> Awaitable[None] | None: ...


class JudgeGate(Protocol):
    """A step after everything has come back: never waits."""

    name: str

    def __call__(self, call: Call) -> None: ...


class Chosen(Struct, frozen=True):
    """The gates that have anything to do for a kind of tool, in their order."""

    admit: tuple[Gate, ...]
    judge: tuple[JudgeGate, ...]
    finish: tuple[JudgeGate, ...]


class Sending(Protocol):
    """The step in the middle: waited for, or begun and told about."""

    name: str

    def __call__(self, call: Call) -> Awaitable[None]: ...

    def begin(self, call: Call, sink: Sink) -> Sent | None:
        """Send it without waiting, where that can be done; then exactly one `end` follows. None: nothing was sent or taken."""

    def end(self, call: Call) -> None:
        """A call that was begun is over, in whatever way."""

    def as_told(self, call: Call, failure: GatewayFailure) -> GatewayFailure:
        """What the caller is told of a failure the sink was told."""

    def came_back(self, call: Call) -> Awaitable[None] | None:
        """A call that was begun has its answer, which ends it; else what is to be waited for before the answer is complete."""


class Way(Protocol):
    """A call on its way that nobody awaits: it is told what happens, and steps on by `ToolCall`."""

    ctx: ExecutionContext
    request: Request
    call: Call
    sent: Sent | None

    def answered(self, response: Response) -> None: ...

    def failed(self, failure: GatewayFailure) -> None: ...

    def expire(self) -> None: ...


Step = bytes | Coroutine[Any, Any, bytes] | None
"""What a step came to: the result; the rest of the way, which has to wait; or nothing yet, and the way is told."""


class ToolCall:
    """Drives the gates. `book` gives the rules in force when a call begins; they stay its rules to the end.

    A call goes in steps, `begin` and then `answered`, `failed`, `expired` or `cancelled`, and needs no task as long as it has to wait for
    nothing but its server; whatever else has to be waited for makes the rest of it a coroutine.
    `again` has the answer to a call that was judged before and whose answer is kept.
    `rounds` are those of the finishing gates that an answer passes which asks for input; it is neither judged nor kept.
    """

    def __init__(
        self,
        find: Sequence[Gate],
        admit: Sequence[Gate],
        dispatch: Sending,
        verify: Sequence[JudgeGate],
        finish: Sequence[JudgeGate],
        *,
        rounds: Sequence[JudgeGate] = (),
        book: Callable[[], Rulebook],
        again: Callable[[ExecutionContext, Request, Rulebook], bytes | None],
    ) -> None:
        self.gates: tuple[Gate, ...] = (*find, *admit, dispatch, *verify, *finish)
        self._find = tuple(find)
        self._admit = tuple(admit)
        self._again = again
        self._dispatch = dispatch
        self._judge = (*verify, *finish)
        self._rounds = tuple(rounds)
        self._finish = tuple(finish)
        self._book = book
        self._chosen = _Choices(self._choose)
        self._deadlines = Deadlines()

    def close(self) -> None:
        self._deadlines.close()

    # In steps.

    def begin(self, way: Way) -> Step:
        book = self._book()
        kept = self._again(way.ctx, way.request, book)
        if kept is not None:
            return kept
        call = way.call = Call(way.ctx, way.request, book)
        gate: Gate | Sending = self._dispatch
        goes_on = False
        try:
            for gate in self._find:
                pending = gate(call)
                if pending is not None:
                    goes_on = True
                    return self._go_on(call, (*_after(gate, self._find), *self._admit), pending, gate)
            chosen = self._chosen[call.bound.idle_gates]
            for gate in chosen.admit:
                pending = gate(call)
                if pending is not None:
                    goes_on = True
                    return self._go_on(call, _after(gate, chosen.admit), pending, gate)
            if call.is_answered:
                goes_on = True
                return self._conclude(call, chosen.finish)
            gate = self._dispatch
            way.sent = self._dispatch.begin(call, way)
            goes_on = True
            if way.sent is None:
                return self._go_on(call, ())
            call.sent_at = self._deadlines.add(call.limit.ms, way)
            return None
        finally:
            if not goes_on:
                call.ctx.gate = gate.name
                call.close()

    def answered(self, way: Way, response: Response) -> Step:
        call = way.call
        self._deadlines.remove(call.limit.ms, way)
        call.result, call.plain = response.result, response.plain or read_plain(response.result)
        rest = self._dispatch.came_back(call)
        if rest is not None:
            return self._go_on(call, (), rest)
        chosen = self._chosen[call.bound.idle_gates]
        return self._conclude(call, chosen.judge)

    def failed(self, way: Way, failure: GatewayFailure) -> Step:
        self._deadlines.remove(way.call.limit.ms, way)
        self._leave(way.call)
        raise self._dispatch.as_told(way.call, failure)

    def expired(self, way: Way) -> Step:
        self._give_up(way)
        raise _too_slow(way.call)

    def cancelled(self, way: Way) -> None:
        self._deadlines.remove(way.call.limit.ms, way)
        self._give_up(way)

    def _give_up(self, way: Way) -> None:
        if way.sent is not None:
            way.sent.give_up()
        if way.call.lease is not None:
            way.call.lease.hand_over()
        self._leave(way.call)

    def _leave(self, call: Call) -> None:
        self._dispatch.end(call)
        call.ctx.gate = self._dispatch.name
        call.close()

    def _conclude(self, call: Call, gates: Sequence[JudgeGate]) -> bytes:
        gate: JudgeGate | Sending = self._dispatch
        try:
            for gate in gates:
                gate(call)
            return call.result
        finally:
            call.ctx.gate = gate.name
            call.close()

    # As a coroutine.

    async def _go_on(
        self,
        call: Call,
        admit: Sequence[Gate],
        pending: Awaitable[None] | None = None,
        waits_at: Gate | None = None,
    ) -> bytes:
        """The rest of a call, from something a gate has to wait for (without one: the dispatch) or from its next gate."""
        gate: Gate | Sending = waits_at or self._dispatch
        has_come_back = False
        try:
            if pending is not None:
                await call.over(pending)
            for gate in admit:
                pending = gate(call)
                if pending is not None:
                    await call.over(pending)
            if not (call.is_answered or call.is_sent):
                gate = self._dispatch
                await call.over(self._dispatch(call))
            has_come_back = True
        except asyncio.CancelledError:
            if call.lease is not None:
                call.lease.hand_over()
            if call.has_run_out():
                raise _too_slow(call) from None
            raise
        finally:
            if not has_come_back:
                call.ctx.gate = gate.name
                call.close()
        if call.is_round:
            return self._conclude(call, self._rounds)
        chosen = self._chosen[call.bound.idle_gates]
        return self._conclude(call, chosen.finish if call.is_answered else chosen.judge)

    def _choose(self, idle: frozenset[str]) -> Chosen:
        return Chosen(
            admit=tuple(gate for gate in self._admit if gate.name not in idle),
            judge=tuple(gate for gate in self._judge if gate.name not in idle),
            finish=tuple(gate for gate in self._finish if gate.name not in idle),
        )


class _Choices(dict[frozenset[str], Chosen]):
    """By which gates are idle; worked out the first time. There are as many as combinations of gates, which is few."""

    def __init__(self, choose: Callable[[frozenset[str]], Chosen]) -> None:
        super().__init__()
        self._choose = choose

    def __missing__(self, idle: frozenset[str]) -> Chosen:
        chosen = self[idle] = self._choose(idle)
        return chosen


def _after(gate: Gate, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
    return gates[gates.index(gate) + 1 :]


def _too_slow(call: Call) -> GatewayFailure:
    if call.patience is not None and call.patience.is_waiting_for_caller:
        return _unanswered(call)
    tool = call.tool
    server = tool.server if tool else call.waiting_for
    name = tool.full_name if tool else call.requested
    limit = call.limit
    return GatewayFailure(
        Kind.CALL_TIMEOUT,
        f"{name} did not answer within {limit.ms} ms (timeout of tools/call on {server or 'an unknown server'})",
        server=server,
        tool=name,
        operation="tools/call",
        verdict=Verdict.MAY_HAVE_RUN if call.is_sent else Verdict.DID_NOT_RUN,
        retry_after_ms=min(limit.ms, _MOST_PATIENT_MS),
        details={
            "phase": "call" if call.is_sent else "connect",
            "timeoutMs": limit.ms,
            "timeout_seconds": limit.ms / 1000,
            "limitSource": limit.source,
        },
    )


def _unanswered(call: Call) -> GatewayFailure:
    tool, limit_ms = call.bound.tool, call.book.input_timeout_ms
    return GatewayFailure(
        Kind.INPUT_UNANSWERED,
        f"{tool.full_name} asked its caller for input and had no answer within {limit_ms} ms (timeouts.inputTimeoutMs)",
        server=tool.server,
        tool=tool.full_name,
        operation="tools/call",
        details={"phase": "input", "timeoutMs": limit_ms},
    )
