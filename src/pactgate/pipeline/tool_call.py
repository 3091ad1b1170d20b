"""One `tools/call` from admission to answer: a flat list of gates around a single dispatch, under one timer.

ADMIT gates run before anything leaves the gateway, VERIFY gates judge what came back, FINISH gates shape what goes out.
A gate either returns, or raises the failure that ends the call; every earlier gate leaves all later ones
untouched. Enforces S1/TIMEOUT-001.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Raw

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.model import Tool
from pactgate.protocol.messages import Request
from pactgate.protocol.versions import Era


class Call:
    """What the gates know of one call. `members` are the caller's params without `_meta`, each as the bytes it arrived as."""

    __slots__ = (
        "ctx",
        "is_sent",
        "limit_ms",
        "members",
        "meta",
        "params",
        "progress_token",
        "requested",
        "result",
        "tool",
        "upstream_era",
    )

    def __init__(self, ctx: ExecutionContext, params: bytes | None, limit_ms: int) -> None:
        self.ctx = ctx
        self.params = params
        self.limit_ms = limit_ms
        self.requested = ""
        self.members: dict[str, Raw] = {}
        self.meta: dict[str, Raw] = {}
        self.progress_token: Raw | None = None
        self.tool: Tool | None = None
        self.is_sent = False
        self.upstream_era = Era.LEGACY
        self.result = b""

    @property
    def bound_tool(self) -> Tool:
        assert self.tool is not None, "the resolve gate binds a tool or raises"
        return self.tool


class Gate(Protocol):
    """One step. Returns nothing, or something to wait for; most gates have nothing to wait for and cost no suspension."""

    name: str

    def __call__(self, call: Call) -> Awaitable[None] | None: ...


class ToolCall:
    """Drives the gates. `limit_ms` gives the time a tool may take once it is known."""

    def __init__(
        self,
        admit: Sequence[Gate],
        dispatch: Gate,
        verify: Sequence[Gate],
        finish: Sequence[Gate],
        *,
        default_limit_ms: int,
        limit_ms: Callable[[Tool], int],
    ) -> None:
        self.gates = (*admit, dispatch, *verify, *finish)
        self._admit = tuple(admit)
        self._rest = (dispatch, *verify, *finish)
        self._default_limit_ms = default_limit_ms
        self._limit_ms = limit_ms

    async def run(self, ctx: ExecutionContext, request: Request) -> bytes:
        call = Call(ctx, request.params, self._default_limit_ms)
        deadline = _Deadline(self._default_limit_ms)
        try:
            for gate in self._admit:
                pending = gate(call)
                if pending is not None:
                    await pending
            call.limit_ms = self._limit_ms(call.bound_tool)
            deadline.move(call.limit_ms)
            for gate in self._rest:
                pending = gate(call)
                if pending is not None:
                    await pending
            return call.result
        except asyncio.CancelledError:
            if deadline.ended_it():
                raise _too_slow(call) from None
            raise
        finally:
            deadline.drop()


class _Deadline:
    """One `call_later` that cancels the task it was made in; far cheaper than a timeout scope per step."""

    __slots__ = ("_began", "_has_expired", "_limit_ms", "_loop", "_task", "_timer")

    def __init__(self, limit_ms: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._limit_ms = limit_ms
        self._has_expired = False
        self._timer = self._loop.call_later(limit_ms / 1000, self._expire)

    def move(self, limit_ms: int) -> None:
        if limit_ms != self._limit_ms:
            self._limit_ms = limit_ms
            self._timer.cancel()
            self._timer = self._loop.call_at(self._began + limit_ms / 1000, self._expire)

    def ended_it(self) -> bool:
        """Whether the cancellation was ours, and only ours."""
        return self._has_expired and self._task.uncancel() == 0

    def drop(self) -> None:
        self._timer.cancel()

    def _expire(self) -> None:
        self._has_expired = True
        self._task.cancel()


def _too_slow(call: Call) -> GatewayFailure:
    tool = call.tool
    server = tool.server if tool else None
    name = tool.full_name if tool else call.requested
    return GatewayFailure(
        Kind.CALL_TIMEOUT,
        f"{name} did not answer within {call.limit_ms} ms (timeout of tools/call on {server or 'an unknown server'})",
        server=server,
        tool=name,
        operation="tools/call",
        verdict=Verdict.MAY_HAVE_RUN if call.is_sent else Verdict.DID_NOT_RUN,
        details={
            "phase": "call" if call.is_sent else "connect",
            "timeoutMs": call.limit_ms,
            "timeout_seconds": call.limit_ms / 1000,
        },
    )
