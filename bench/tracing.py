"""Measures the CPU time that taking the times of a call and tracing it add to the call, in this process.

Off: the comparison, and the two readings of the clock that every call pays for. All: the beginning of a trace under the parent that the
client sent, the new `_meta`, exemplars, the queue, and the encoding of both spans. Sending a batch of 512 is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from bench.gates import GateCost
from pactgate.config.sections.telemetry import Telemetry
from pactgate.core.context import ExecutionContext
from pactgate.core.events import RequestFinished
from pactgate.core.principal import Principal
from pactgate.core.values import Caller, Silence, Tool
from pactgate.protocol.messages import Request
from pactgate.protocol.versions import LATEST_MODERN, Era
from pactgate.telemetry.metrics import Metrics
from pactgate.telemetry.spans import ServerAddress, SpanEncoder
from pactgate.telemetry.tracing import Tracer

OFF: Final = "tracing off"
ALL: Final = "tracing all"
_PARENT: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_TOOL: Final = Tool("up", "echo", "up.echo", "up__echo", b"{}", b"{}", "0")
_TIMES: Final = 20_000
_ROUNDS: Final = 5


class _Dropped:
    """An exporter that keeps nothing."""

    def put(self, record: object) -> None:
        return


def measure_tracing() -> list[GateCost]:
    tracer = Tracer(Telemetry(endpoint="http://127.0.0.1:1/"), _Dropped())
    encoder = SpanEncoder(lambda server: ServerAddress("pipe"))
    metrics = Metrics()
    request = Request(b"1", 1, "tools/call", values={"name": "up.echo", "_meta": {"traceparent": _PARENT}})
    plain, traced = _context(), _context()
    traced.trace = trace = tracer.begin(traced, request)
    assert trace is not None, "everything is sampled"
    untraced_event, traced_event = RequestFinished(plain.seal(0.02)), RequestFinished(traced.seal(0.02))
    nobody: Tracer | None = None
    clock = time.monotonic

    def off() -> None:
        if nobody is not None:
            nobody.begin(plain, request)
        plain.sent_at = clock()
        plain.received_at = clock()

    def all_() -> None:
        tracer.begin(traced, request)
        trace.carried({})
        metrics.emit(traced_event)
        tracer.emit(traced_event)
        encoder.encode(traced_event.record, trace, 0)

    counted = _cost(lambda: metrics.emit(untraced_event))
    return [GateCost(OFF, _cost(off)), GateCost(ALL, _cost(all_) - counted)]


def _context() -> ExecutionContext:
    caller = Caller(principal=Principal("bench"), era=Era.MODERN, version=LATEST_MODERN, channel=Silence())
    ctx = ExecutionContext("tools/call", caller, 0.0)
    ctx.bind(_TOOL)
    ctx.sent_at, ctx.received_at, ctx.upstream_revision = 0.0001, 0.0199, LATEST_MODERN
    return ctx


def _cost(work: Callable[[], None]) -> float:
    """The median over several rounds, without the loop around it."""
    rounds = sorted(_round(work) - _round(_nothing) for _ in range(_ROUNDS))
    return max(0.0, rounds[len(rounds) // 2])


def _nothing() -> None:
    return


def _round(work: Callable[[], None]) -> float:
    began = time.process_time()
    for _ in range(_TIMES):
        work()
    return (time.process_time() - began) / _TIMES * 1e6
