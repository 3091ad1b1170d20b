"""One `tools/call` from admission to answer: a flat list of gates around a single dispatch, under one timer.

ADMIT gates run before anything leaves the gateway; one of them may already have the answer. VERIFY gates judge what came back, FINISH gates
shape what goes out. A gate either returns, or raises the failure that ends the call; every earlier gate leaves all later ones
untouched. Enforces S1/TIMEOUT-001 and S1/LIMIT-002.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from msgspec import Raw

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.model import Tool
from pactgate.pipeline.deadline import Deadline
from pactgate.pipeline.rules import Rulebook, ToolRules
from pactgate.policy.cache import Keys
from pactgate.policy.recall import Lease
from pactgate.policy.timeouts import Limit, shortened
from pactgate.protocol.messages import Request
from pactgate.protocol.versions import Era

_MOST_PATIENT_MS: Final = 5000
"""The longest wait a timeout advises before trying again."""


FRAME_BYTES: Final = 40
"""What a JSON-RPC answer has beside its id and its result."""


class Call:
    """What the gates know of one call. `members` are the caller's params without `_meta`, each as the bytes it arrived as."""

    __slots__ = (
        "book",
        "caller_limit_ms",
        "ctx",
        "frame_bytes",
        "is_answered",
        "is_indirect",
        "is_round",
        "is_sent",
        "is_task",
        "keys",
        "lease",
        "limit",
        "members",
        "meta",
        "params",
        "patience",
        "progress_token",
        "requested",
        "result",
        "rules",
        "tool",
        "upstream_era",
        "waiting_for",
    )

    def __init__(self, ctx: ExecutionContext, request: Request, book: Rulebook) -> None:
        self.ctx = ctx
        self.params = request.params
        self.frame_bytes = len(request.id) + FRAME_BYTES
        self.book = book
        self.limit: Limit = book.default_limit
        self.caller_limit_ms: int | None = None
        self.requested = ""
        self.members: dict[str, Raw] = {}
        self.meta: dict[str, Raw] = {}
        self.progress_token: Raw | None = None
        self.tool: Tool | None = None
        self.rules: ToolRules | None = None
        self.keys: Keys | None = None
        """Where its answer is kept, of a call that was recognised."""
        self.lease: Lease | None = None
        self.is_answered = False
        self.is_indirect = False
        """Whether the tool was named in the arguments of `tool_invoke`."""
        self.is_sent = False
        self.is_task = False
        self.is_round = False
        """The answer asks its caller for input; what may be said of a result can't be said of it."""
        self.patience: Deadline | None = None
        """Its time limit, from when it first has to wait."""
        self.upstream_era = Era.LEGACY
        self.waiting_for: str | None = None
        """The server a name points at, while what it offers is not known yet."""
        self.result = b""

    def bind(self, tool: Tool) -> None:
        self.tool = tool
        self.rules = self.book.of(tool)
        self.limit = shortened(self.rules.limit, self.caller_limit_ms)
        self.ctx.bind(tool)

    def over(self, pending: Awaitable[None]) -> Awaitable[None]:
        """The same to wait for, now under the limit the call has: the default one until its tool is known."""
        limit_ms = self.limit.ms
        if self.patience is None:
            self.patience = Deadline(limit_ms, self.book.input_timeout_ms)
        elif self.patience.limit_ms != limit_ms:
            self.patience.move(limit_ms)
        return pending

    def has_run_out(self) -> bool:
        """Whether it was its own time limit that ended it."""
        return self.patience is not None and self.patience.ended_it()

    def close(self) -> None:
        """Let go of what would outlive it."""
        if self.patience is not None:
            self.patience.close()
        if self.lease is not None:
            self.lease.decline()  # the first word counts: this is for whatever ended the call without one

    @property
    def bound(self) -> ToolRules:
        assert self.rules is not None, "the resolve gate binds a tool or raises"
        return self.rules


class Gate(Protocol):
    """One step. Returns nothing, or something to wait for; most gates have nothing to wait for and cost no suspension."""

    name: str

    def __call__(self, call: Call) -> Awaitable[None] | None: ...


class AdmitGate(Gate, Protocol):
    """A step before anything leaves."""

    judges_bytes: bool
    """Whether its verdict depends on nothing but the bytes of the call, the caller's rights, the rules and the catalog."""


class Sending(Protocol):
    """The step in the middle, which always waits."""

    name: str

    def __call__(self, call: Call) -> Awaitable[None]: ...


class ToolCall:
    """Drives the gates. `book` gives the rules in force when a call begins; they stay its rules to the end.

    `recognise` says whether the gates that judge bytes have judged these very bytes before, and well.
    `rounds` are those of the finishing gates that an answer passes which asks for input; it is neither judged nor kept.
    """

    def __init__(
        self,
        admit: Sequence[AdmitGate],
        dispatch: Sending,
        verify: Sequence[Gate],
        finish: Sequence[Gate],
        *,
        rounds: Sequence[Gate] = (),
        book: Callable[[], Rulebook],
        recognise: Callable[[Call], bool],
    ) -> None:
        self.gates: tuple[Gate, ...] = (*admit, dispatch, *verify, *finish)
        self._admit = tuple(admit)
        self._admit_again = tuple(gate for gate in admit if not gate.judges_bytes)
        self._recognise = recognise
        self._dispatch = dispatch
        self._judge = (*verify, *finish)
        self._rounds = tuple(rounds)
        self._finish = tuple(finish)
        self._book = book

    async def run(self, ctx: ExecutionContext, request: Request) -> bytes:
        call = Call(ctx, request, self._book())
        gate: Gate | Sending = self._admit[0]
        try:
            admit: Sequence[Gate] = self._admit_again if self._recognise(call) else self._admit
            for gate in admit:
                pending = gate(call)
                if pending is not None:
                    await call.over(pending)
            if not call.is_answered:
                gate = self._dispatch
                await call.over(self._dispatch(call))
            for gate in self._finish if call.is_answered else self._rounds if call.is_round else self._judge:
                pending = gate(call)
                if pending is not None:
                    await call.over(pending)
            return call.result
        except asyncio.CancelledError:
            if call.lease is not None:
                call.lease.hand_over()
            if call.has_run_out():
                raise _too_slow(call) from None
            raise
        finally:
            ctx.gate = gate.name
            call.close()


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
