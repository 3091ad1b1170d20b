"""`python -m bench replicas`: what a shared store and a hop between replicas cost, and what a second replica gains, in CPU time per call.

Two gateways share a Redis and stand beside one that is alone, in interleaved rounds. Clients have tokens, and rate limits count their
calls. A forwarded call is charged with the CPU time of both gateways. Two replicas, each with a core, carry twice what one does as far as a
call costs them no more when both are called; what load generator, server and store take is not theirs. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from operator import sub, truediv
from pathlib import Path
from typing import Any, Final

import uvloop
from msgspec import Struct

from bench.cpu import cpu_us
from bench.load import Load, LoadError, LoadResult, measure
from bench.tokens import Tokens
from bench.traffic import MIXED

MOST_MORE_US: Final = 2.0
MOST_TIMES: Final = 2.0
LEAST_GAIN: Final = 1.7
_CONNECTIONS: Final = 64
_TOKENS: Final = Tokens(_CONNECTIONS)
_START_S: Final = 20.0


class Row(Struct, frozen=True):
    """One thing to measure: calls to the gateways `to`, charged to `charged`."""

    name: str
    era: str
    to: tuple[int, ...]
    charged: tuple[int, ...]
    sessions_at: int | None = None


ROWS: Final = (
    Row("modern, alone", "modern", (0,), (0,)),
    Row("modern, with a store", "modern", (1,), (1,)),
    Row("modern, two replicas", "modern", (1, 2), (1, 2)),
    Row("legacy, alone", "legacy", (0,), (0,)),
    Row("legacy, with a store", "legacy", (1,), (1,)),
    Row("legacy, forwarded", "legacy", (1,), (1, 2), 2),
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench replicas", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each row in each round")
    options = parser.parse_args(arguments)
    if shutil.which("redis-server") is None:
        print("redis-server is not installed")
        return 2
    found: dict[str, list[float]] = {row.name: [] for row in ROWS}
    with _lab() as (addresses, pids):
        for number in range(options.rounds):
            for row in ROWS if number % 2 == 0 else reversed(ROWS):
                try:
                    found[row.name].append(_measure(row, addresses, pids, options.seconds))
                except LoadError as problem:
                    print(f"{row.name}: {problem}")
                    return 2
    for name, values in found.items():
        print(f"{name:<24} {statistics.median(values):8.1f} us   ({min(values):.1f} to {max(values):.1f})")
    return _conclude(found)


def _conclude(found: dict[str, list[float]]) -> int:
    """Rows are compared round by round: what else the machine does changes from one round to the next."""
    alone, shared, both = (found[f"modern, {name}"] for name in ("alone", "with a store", "two replicas"))
    local, forwarded = found["legacy, with a store"], found["legacy, forwarded"]
    more_us = statistics.median(map(sub, shared, alone))
    times = statistics.median(map(truediv, forwarded, local))
    gain = 2 * statistics.median(map(truediv, alone, both))
    goals = (
        (f"a store costs a modern call {more_us:+.1f} us", f"at most {MOST_MORE_US:+.1f} us", more_us <= MOST_MORE_US),
        (f"a forwarded call costs {times:.2f} x a local one", f"at most {MOST_TIMES:.1f} x", times <= MOST_TIMES),
        (f"two replicas carry {gain:.2f} x what one carries", f"at least {LEAST_GAIN:.1f} x", gain >= LEAST_GAIN),
    )
    for measured, limit, is_met in goals:
        print(f"{'met' if is_met else 'MISSED':<7} {measured} ({limit}), load average {os.getloadavg()[0]:.1f}")
    return 0 if all(is_met for _, _, is_met in goals) else 1


def _measure(row: Row, addresses: Sequence[str], pids: Sequence[int], seconds: float) -> float:
    loads = [
        Load(
            url=f"{addresses[number]}/mcp",
            tool="up__echo",
            era=row.era,
            connections=_CONNECTIONS // len(row.to),
            seconds=seconds,
            warmup=0,
            shape=MIXED,
            session_url=None if row.sessions_at is None else addresses[row.sessions_at],
            tokens=_TOKENS,
        )
        for number in row.to
    ]
    before = sum(cpu_us(pids[number]) for number in row.charged)
    results = uvloop.run(_measure_all(loads))
    for result in results:
        if result.failed:
            raise LoadError(result.last_failure)
    spent_us = sum(cpu_us(pids[number]) for number in row.charged) - before
    return spent_us / sum(result.calls for result in results)


async def _measure_all(loads: Sequence[Load]) -> list[LoadResult]:
    return await asyncio.gather(*map(measure, loads))


@contextmanager
def _lab() -> Iterator[tuple[list[str], list[int]]]:
    """The addresses and process numbers of a gateway alone and of two replicas, before one server."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = [_free_port() for _ in range(5)]
        redis = ["redis-server", "--port", str(ports[3]), "--save", "", "--dir", str(folder)]
        upstream = [sys.executable, "-m", "bench.upstream_http", "--port", str(ports[4]), "--ports", "1"]
        _start(stack, redis, ports[3])
        _start(stack, upstream, ports[4])
        settings: dict[str, Any] = {
            "mcpServers": {"up": {"url": f"http://127.0.0.1:{ports[4]}/mcp"}},
            "auth": _TOKENS.settings(),
            "rateLimits": {"tools": {"up.*": {"rpm": 10_000, "burst": 1000}}},
        }
        store = {"state": {"url": f"redis://127.0.0.1:{ports[3]}", "key": "5e" * 32}}
        pids = []
        for number, port in enumerate(ports[:3]):
            file = folder / f"gateway{number}.json"
            file.write_text(json.dumps(settings | (store if number else {})))
            command = [sys.executable, "-m", "pactgate", "serve", "--config", str(file), "--port", str(port)]
            pids.append(_start(stack, command, port).pid)
        time.sleep(3)  # longer than a beat: the replicas know each other
        yield [f"http://127.0.0.1:{port}" for port in ports[:3]], pids


def _start(stack: ExitStack, command: Sequence[str], port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(_end, process)
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe, suppress(OSError):
            probe.connect(("127.0.0.1", port))
            return process
        time.sleep(0.05)
    raise LoadError(f"{command[0]} does not listen on {port}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
