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
from pactgate.config.model import Cache, Config, RateLimits
from pactgate.config.sections.cache import CacheRule
from pactgate.config.sections.rate_limits import ToolRate
from pactgate.config.server_settings import ServerConfig
from pactgate.core.context import ExecutionContext
from pactgate.core.values import Caller, Silence
from pactgate.pipeline.tool_call import Call, Gate
from pactgate.policy.result_cache import LeaderTicket
from pactgate.protocol.messages import Request
from pactgate.protocol.versions import LATEST_LEGACY, Era

RUNTIME: Final = ("limit", "accept_input", "recall", "bound", "remember", "stamp")
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
        return [GateCost(gate.name, _cost(gate, call)) for gate in gateway.tool_call.gates if gate.name != "dispatch"]


async def _ready(gateway: Gateway) -> Call:
    """A call with its result, as the gates after `dispatch` find it; the gates before `dispatch` can run on it too."""
    caller = Caller("bench", Era.LEGACY, LATEST_LEGACY, Silence())
    call = Call(ExecutionContext("tools/call", caller, 0.0), Request(b"1", 1, "tools/call", _PARAMS), gateway.book)
    for gate in gateway.tool_call.gates:
        if gate.name == "bound":
            break
        pending = gate(call)
        if pending is not None:
            await pending
    if call.lease is not None:
        call.lease.decline()
    return call


def _cost(gate: Gate, call: Call) -> float:
    result, lease = call.result, call.lease
    rounds = sorted(_round(gate, call, result, lease) for _ in range(_ROUNDS))
    call.result, call.lease = result, lease
    return rounds[len(rounds) // 2]


def _round(gate: Gate, call: Call, result: bytes, lease: LeaderTicket | None) -> float:
    began = time.process_time()
    for _ in range(_TIMES):
        call.result, call.lease, call.ctx.tool = result, lease, None
        if gate.name != "resolve":
            call.ctx.tool = call.tool
        gate(call)
        if call.lease is not lease and call.lease is not None:
            call.lease.decline()  # release the single-flight lease, or the next call would wait for it
    spent = time.process_time() - began
    began = time.process_time()
    for _ in range(_TIMES):
        call.result, call.lease, call.ctx.tool = result, lease, None
        if gate.name != "resolve":
            call.ctx.tool = call.tool
    return max(0.0, spent - (time.process_time() - began)) / _TIMES * 1e6
