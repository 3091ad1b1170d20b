"""Runs workloads in interleaved rounds, starts gateways to measure the start, and collects the measurements.

Each round measures each row of each workload once, every other round in reverse order, so that a change of the machine's load
affects all rows alike.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Final

import uvloop
from msgspec import Struct

from bench.cpu import pss_bytes, rss_bytes
from bench.gates import measure_gates
from bench.lab import Lab, Row
from bench.load import Load, LoadError, measure
from bench.measurements import GatewayStart, Measurements
from bench.tracing import measure_tracing
from bench.workloads import FEW, MANY, Workload

_FLAT_SHARE: Final = 3
_MAIN: Final = Row("pactgate", "pactgate", 23)
_GROWTHS: Final = 2
_LISTED_S: Final = 20.0
_OWN: Final = ("direct", "nginx", "pactgate")


class Plan(Struct, frozen=True):
    """How many rounds and starts, and how long each one takes."""

    rounds: int
    seconds: float
    starts: int = 0
    idle_s: float = 0.0
    warmup_each: int = 4


class Progress:
    """Shows on standard error what is running: one line that is rewritten on a terminal, one line per round elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._began = time.monotonic()
        self._last_round = ""

    def say(self, part: str, detail: str) -> None:
        if self._is_terminal:
            line = f"{time.monotonic() - self._began:5.0f} s  {part}: {detail}"
            print(f"\r\x1b[K{line[:110]}", end="", file=sys.stderr, flush=True)
        elif part != self._last_round:
            print(f"{time.monotonic() - self._began:5.0f} s  {part}", file=sys.stderr, flush=True)
        self._last_round = part

    def clear(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class Bench:
    """Measures workloads on the processes of one `Lab`."""

    def __init__(self, lab: Lab, progress: Progress, vias: Sequence[str], plan: Plan) -> None:
        self._lab = lab
        self._progress = progress
        self._vias = vias
        self._plan = plan
        self.measurements = Measurements()
        self.given_up: dict[str, str] = {}
        """Peers that failed and are not measured further, with the reason."""

    def rounds(self, workloads: Sequence[Workload], count: int, title: str) -> None:
        for number in range(count):
            part = f"{title} {number + 1} of {count}"
            for workload in workloads:
                repeats = _FLAT_SHARE if workload.name == "flat" else 1
                for _ in range(repeats):
                    self._pass(workload, part, reverse=bool(number % 2))

    def start(self) -> None:
        for number in range(self._plan.starts):
            self._progress.say("start and memory", f"{number + 1} of {self._plan.starts}")
            target, first_call_s = self._lab.start_gateway(_MAIN)
            time.sleep(self._plan.idle_s)
            self.measurements.starts.append(GatewayStart(first_call_s, rss_bytes(target.pid), pss_bytes(target.pid)))
            self._lab.stop(target)
        for _ in range(min(self._plan.starts, _GROWTHS)):
            grown = self._idle_rss(MANY) - self._idle_rss(FEW)
            self.measurements.further_server_bytes.append(grown / (MANY.upstreams - FEW.upstreams))

    def gates(self) -> None:
        self._progress.say("gates", "each alone")
        self.measurements.gates = [*measure_gates(), *measure_tracing()]

    def _idle_rss(self, row: Row) -> int:
        """Resident memory of an idle gateway after all of its servers are connected and their tools listed."""
        self._progress.say("start and memory", row.label)
        target, _ = self._lab.start_gateway(row)
        load = Load(target.url, kind="list", era="modern", calls=1, warmup=0, tools=target.tools)
        until = time.monotonic() + _LISTED_S
        while True:
            try:
                uvloop.run(measure(load))
                break
            except LoadError:
                if time.monotonic() > until:
                    raise
        time.sleep(self._plan.idle_s)
        idle = rss_bytes(target.pid)
        self._lab.stop(target)
        return idle

    def _pass(self, workload: Workload, part: str, *, reverse: bool) -> None:
        rows = [row for row in workload.rows if row.via in self._vias and row.via not in self.given_up]
        kept = self.measurements.results.setdefault(workload.name, {})
        for row in reversed(rows) if reverse else rows:
            self._progress.say(part, f"{workload.title}, {row.label}")
            target = self._lab.target(row)
            self._lab.pin(target.client_core)
            load = workload.load(target, self._plan.seconds, self._plan.warmup_each)
            try:
                kept.setdefault(row.label, []).append(uvloop.run(measure(load, target.pid)))
            except LoadError as problem:
                if row.via in _OWN:
                    raise
                self.given_up[row.via] = f"{workload.title}: {problem}"
