"""One `tools/call` from admission to answer: a flat list of gates around a single dispatch, under one deadline.

The gates that find the tool run first; from there on only those gates run that apply to it. Gates before the dispatch run before
anything leaves the gateway; one of them may already have the answer. Gates after it judge what came back and shape what goes out.
A gate either returns, or raises the failure that ends the call; every earlier gate leaves all later ones untouched.
Enforces S1/TIMEOUT-001 and S1/LIMIT-002.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.pipeline.call import Call
from pactgate.pipeline.deadline import TimeoutQueue
from pactgate.pipeline.timing import timed
from pactgate.pipeline.tool_policy import ChosenGates, GateStep, PolicyTable, ToolPolicy
from pactgate.policy.timeouts import CALLERS_LIMIT, ToolTimeout
from pactgate.protocol.messages import Request

_MAX_RETRY_AFTER_MS: Final = 5000
"""The longest wait a timeout advises before trying again."""


class Gate(Protocol):
    """One step. Returns nothing, or something to wait for; most gates have nothing to wait for and cost no suspension."""

    name: str

    def applies_to(self, policy: ToolPolicy) -> bool:
        """Whether the gate has anything to do for calls of this tool, whatever the call."""

    def __call__(self, call: Call) -> Awaitable[None] | None: ...


class PostGate(Protocol):
    """A step after everything has come back: never waits."""

    name: str

    def applies_to(self, policy: ToolPolicy) -> bool: ...

    def __call__(self, call: Call) -> None: ...


class FindingGate(Protocol):
    """A step before the tool is known; it applies to every call."""

    name: str

    def __call__(self, call: Call) -> Awaitable[None] | None: ...


class Dispatching(Protocol):
    """The step in the middle: sends the call, once, and leaves the answer in it."""

    name: str

    async def __call__(self, call: Call) -> None: ...


_NamedGate = FindingGate | Dispatching | PostGate


class ToolCall:
    """Runs the gates. `policies` gives the policies in force when a call begins; they stay its policies to the end.

    `input_required` are those of the finishing gates that an answer passes which asks for input; it is neither judged nor cached.
    """

    def __init__(
        self,
        find: Sequence[FindingGate],
        before: Sequence[Gate],
        dispatch: Dispatching,
        verify: Sequence[PostGate],
        finish: Sequence[PostGate],
        *,
        input_required: Sequence[PostGate] = (),
        policies: Callable[[], PolicyTable],
        timeouts: TimeoutQueue,
    ) -> None:
        self.gates: tuple[FindingGate | Dispatching | PostGate, ...] = (*find, *before, dispatch, *verify, *finish)
        self._find = _steps(find)
        self._before = tuple(before)
        (self._sending,) = _steps((dispatch,))
        self._verify = tuple(verify)
        self._finish = tuple(finish)
        self._input_required = _steps(input_required)
        self._policies = policies
        self._timeouts = timeouts

    async def run(self, ctx: ExecutionContext, request: Request) -> bytes:
        policies = self._policies()
        call = Call(ctx=ctx, request=request, policies=policies, timeouts=self._timeouts, limit=policies.default_limit)
        step = self._sending
        try:
            for step in self._find:
                pending = step.run(call)
                if pending is not None:
                    await timed(ctx, step.name, call.with_deadline(pending))
            chosen = call.policy.gates or self._choose(call.policy)
            for step in chosen.before:
                pending = step.run(call)
                if pending is not None:
                    await timed(ctx, step.name, call.with_deadline(pending))
            if not call.is_answered:
                step = self._sending
                await call.with_deadline(step.run(call))
                after = self._input_required if call.is_input_required else chosen.after
            else:
                after = chosen.finish
            for step in after:
                step.run(call)
            return call.result
        except asyncio.CancelledError:
            if call.ticket is not None:
                call.ticket.transfer()
            if call.has_timed_out:
                raise _timed_out(call) from None
            raise
        finally:
            ctx.gate = step.name
            call.close()

    def _choose(self, policy: ToolPolicy) -> ChosenGates:
        chosen = policy.gates = ChosenGates(
            before=_steps(gate for gate in self._before if gate.applies_to(policy)),
            after=_steps(gate for gate in (*self._verify, *self._finish) if gate.applies_to(policy)),
            finish=_steps(gate for gate in self._finish if gate.applies_to(policy)),
        )
        return chosen


def _steps(gates: Iterable[_NamedGate]) -> tuple[GateStep, ...]:
    return tuple(GateStep(gate.name, gate.__call__) for gate in gates)


def _timed_out(call: Call) -> GatewayFailure:
    if call.deadline is not None and call.deadline.is_waiting_for_client:
        return _unanswered(call)
    tool = call.tool
    server = tool.server if tool else call.waiting_for
    name = tool.full_name if tool else call.requested
    limit, since = _limit_that_ended(call)
    return GatewayFailure(
        Kind.CALL_TIMEOUT,
        f"{name} did not answer within {limit.ms} ms{since} (timeout of tools/call on {server or 'an unknown server'}). "
        f"{_advice(name, limit)}",
        server=server,
        tool=name,
        operation="tools/call",
        verdict=Verdict.MAY_HAVE_RUN if call.is_sent else Verdict.DID_NOT_RUN,
        retry_after_ms=min(limit.ms, _MAX_RETRY_AFTER_MS),
        details={
            "phase": "call" if call.is_sent else "connect",
            "timeoutMs": limit.ms,
            "timeout_seconds": limit.ms / 1000,
            "limitSource": limit.source,
        },
    )


def _limit_that_ended(call: Call) -> tuple[ToolTimeout, str]:
    """The limit, and what it was counted from where that is not the beginning."""
    deadline, longest_ms = call.deadline, call.policies.progress_timeout_ms
    if deadline is None or longest_ms is None or not deadline.is_extended:
        return call.limit, ""
    if deadline.full_ms >= longest_ms:
        return ToolTimeout(longest_ms, "timeouts.progressTimeoutMs"), ""
    return call.limit, " of its last progress"


def _advice(name: str, limit: ToolTimeout) -> str:
    if limit.source == CALLERS_LIMIT:
        return f"The limit is the {limit.source}."
    return f'The limit is set by {limit.source}; the operator can raise it with timeouts.toolOverrides["{name}"].'


def _unanswered(call: Call) -> GatewayFailure:
    tool, limit_ms = call.policy.tool, call.policies.input_timeout_ms
    return GatewayFailure(
        Kind.INPUT_UNANSWERED,
        f"{tool.full_name} asked the client for input and had no answer within {limit_ms} ms (timeouts.inputTimeoutMs)",
        server=tool.server,
        tool=tool.full_name,
        operation="tools/call",
        details={"phase": "input", "timeoutMs": limit_ms},
    )
