"""Measures the CPU time of each gate of a tool call, in this process.

The gateway is built as `pactgate serve` builds it, in front of the benchmark's stdio server. One call runs through the pipeline;
then each gate but `dispatch` runs many times on that call.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from msgspec import Struct

from pactgate.app import Gateway
from pactgate.config.model import Config
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.rate_limits import RateLimits, ToolRate
from pactgate.config.server_settings import ServerConfig
from pactgate.core.context import ExecutionContext
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.principal import Principal
from pactgate.core.values import Caller, Silence
from pactgate.pipeline.call import Call
from pactgate.pipeline.deadline import TimeoutQueue
from pactgate.pipeline.tool_call import FindingGate
from pactgate.protocol.messages import Request, decode, encode_request
from pactgate.protocol.versions import LATEST_LEGACY, Era

RUNTIME: Final = ("check_limits", "validate_input", "cache_lookup", "limit_size", "cache_store", "add_envelope")
"""The gates for limits, schemas, cache, sizes and added metadata."""
_PARAMS: Final = b'{"name":"up.echo","arguments":{"text":"' + b"t" * 32 + b'"}}'
_NEVER_REACHED: Final = ToolRate(rpm=10**9, burst=10**9)
"""More than a configuration allows, so that the gate counts each call and refuses none."""
_TIMES: Final = 20_000
_ROUNDS: Final = 5


class GateCost(Struct, frozen=True):
    name: str
    cpu_us: float


def measure_gates() -> list[GateCost]:
    """The median over several rounds for each gate but `dispatch`, in the order of the pipeline."""
    return asyncio.run(_measure())


async def _measure() -> list[GateCost]:
    up = ServerConfig(id="up", command=sys.executable, args=("-m", "bench.upstream_stdio", "--tools", "23"))
    config = Config(
        servers={"up": up},
        categories={"up.echo": "query"},
        cache=Cache(tools={"up.echo": CacheRule(ttl_ms=60_000)}),
        rate_limits=RateLimits(enabled=True, tools={"up.echo": _NEVER_REACHED}),
    )
    async with Gateway.open(config) as gateway:
        await gateway.connections.session("up")
        await gateway.connections.settle()
        call = await _ready(gateway)
        return [GateCost(gate.name, _cost(gate, call)) for gate in _measured(gateway, call)]


def _measured(gateway: Gateway, call: Call) -> list[FindingGate]:
    """The gates that run for this call, but for `dispatch`."""
    gates = (gate for gate in gateway.tool_call.gates if gate.name != "dispatch")
    return [gate for gate in gates if not hasattr(gate, "applies_to") or gate.applies_to(call.policy)]


async def _ready(gateway: Gateway) -> Call:
    """A call with its result, as the gates after `dispatch` find it; the gates before `dispatch` can run on it too."""
    caller = Caller(principal=Principal("bench"), era=Era.LEGACY, version=LATEST_LEGACY, channel=Silence())
    request = decode(encode_request(b"1", "tools/call", _PARAMS))
    assert isinstance(request, Request)
    timeouts = TimeoutQueue(FaultBarrier(lambda event: None))
    call = Call(
        ctx=ExecutionContext("tools/call", caller, 0.0),
        request=request,
        policies=gateway.policies,
        timeouts=timeouts,
        limit=gateway.policies.default_limit,
    )
    for gate in gateway.tool_call.gates:
        if gate.name == "limit_size":
            break
        if hasattr(gate, "applies_to") and not gate.applies_to(call.policy):
            continue
        pending = gate(call)
        if pending is not None:
            await call.with_deadline(pending)
    if call.ticket is not None:
        call.ticket.release()
    call.deadline = None
    return call


def _cost(gate: FindingGate, call: Call) -> float:
    state = _State(call)
    rounds = sorted(_round(gate, call, state) for _ in range(_ROUNDS))
    state.restore(call, gate)
    return rounds[len(rounds) // 2]


class _State:
    """What a gate may change in a call, put back before it runs again."""

    def __init__(self, call: Call) -> None:
        self._result, self._simple, self.ticket = call.result, call.simple, call.ticket

    def restore(self, call: Call, gate: FindingGate) -> None:
        call.finish(self._result)
        call.simple, call.ticket = self._simple, self.ticket
        call.ctx.tool = None if gate.name == "resolve_tool" else call.tool


def _round(gate: FindingGate, call: Call, state: _State) -> float:
    began = time.process_time()
    for _ in range(_TIMES):
        state.restore(call, gate)
        gate(call)
        if call.ticket is not state.ticket and call.ticket is not None:
            call.ticket.release()  # else the next call would wait for it (single-flight)
    spent = time.process_time() - began
    began = time.process_time()
    for _ in range(_TIMES):
        state.restore(call, gate)
    return max(0.0, spent - (time.process_time() - began)) / _TIMES * 1e6
