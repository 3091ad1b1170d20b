"""Callers for tests of the layers below the faces."""

from __future__ import annotations

from typing import Any

from pactgate.core.context import ExecutionContext
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.principal import Principal
from pactgate.core.unanswered import CannotAsk
from pactgate.core.values import Caller
from pactgate.pipeline.call import Call
from pactgate.pipeline.deadline import TimeoutQueue
from pactgate.pipeline.tool_policy import PolicyTable
from pactgate.protocol.messages import Request, encode_json
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era


class Heard(CannotAsk):
    """A channel that remembers what the caller was told."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, bytes]] = []

    def notify(self, method: str, params: bytes) -> None:
        self.notes.append((method, params))


def caller(
    era: Era = Era.LEGACY,
    *,
    key: str = "tester",
    roles: frozenset[str] = frozenset(),
    scope: str | None = None,
    **more: Any,
) -> Caller:
    version = LATEST_MODERN if era is Era.MODERN else LATEST_LEGACY
    return Caller(
        principal=Principal(key, roles),
        era=era,
        version=version,
        channel=Heard(),
        scope=scope,
        client="tests/1",
        **more,
    )


def context(method: str = "tools/call", who: Caller | None = None) -> ExecutionContext:
    return ExecutionContext(method, who or caller(), opened_at=0.0)


def request(method: str, params: Any = None) -> Request:
    return Request(b"1", 1, method, None if params is None else encode_json(params))


def call(name: str, arguments: Any = None, **more: Any) -> Request:
    members = {"name": name, **({} if arguments is None else {"arguments": arguments}), **more}
    return request("tools/call", members)


def call_of(ctx: ExecutionContext, request: Request, policies: PolicyTable) -> Call:
    """A call before its first gate."""
    timeouts = TimeoutQueue(FaultBarrier(lambda event: None))
    return Call(ctx=ctx, request=request, policies=policies, timeouts=timeouts, limit=policies.default_limit)
