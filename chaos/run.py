"""One run: starts the gateway and its servers, drives clients and faults, and checks the promises at the end.

Everything runs in real processes on 127.0.0.1, with its files in one temporary folder. All processes carry a mark in their environment, so
that one that outlives the gateway is found wherever it was re-parented to.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from bench.cpu import PROC, own_descriptors, own_rss_bytes
from chaos.clients import LIMIT_MS, Client, Endpoint, Tally, misbehave
from chaos.plan import CLIENTS, FRAGILE, SIGNALS, STEADY, Fault, plan
from pactgate.audit.verify import files_of, lines_of, verify

_ROOT: Final = Path(__file__).resolve().parent.parent
_MARK: Final = "PACTGATE_CHAOS"
_CLIENTS: Final = 12
_START_S: Final = 20.0
_STOP_S: Final = 15.0
_SAMPLE_S: Final = 2.0
_ORPHAN_S: Final = 3.0
P99_S: Final = 0.25
GROWTH_BYTES: Final = 48 * 2**20
FURTHER_DESCRIPTORS: Final = 16


class ChaosError(Exception):
    """The run could not begin."""


class Sample(Struct, frozen=True):
    rss_bytes: int
    descriptors: int


class Outcome(Struct, frozen=True):
    """The figures of a run, and the promises it found broken."""

    seed: int
    seconds: float
    calls: int
    faults: int
    outcomes: dict[str, int]
    steady_p50_ms: float
    steady_p99_ms: float
    first_rss_bytes: int
    last_rss_bytes: int
    further_descriptors: float
    audit_records: int
    problems: tuple[str, ...]


async def run(seed: int, seconds: float, say: Callable[[str], None]) -> Outcome:
    """Run for so many seconds. Raises ChaosError when the gateway can't be started."""
    with tempfile.TemporaryDirectory(prefix="pactgate-chaos-") as folder:
        lab = _Lab(Path(folder))
        await lab.start()
        tally, samples = Tally(), []
        faults = plan(seed, seconds)
        until = time.monotonic() + seconds
        clients = [Client(lab.endpoint, number, tally, seed) for number in range(_CLIENTS)]
        try:
            async with asyncio.TaskGroup() as group:
                for client in clients:
                    group.create_task(client.run(until))
                group.create_task(_inject(lab, faults, say))
                samples = await _watch(lab, until, tally, say)
            await _recovered(lab, tally)
        finally:
            await lab.stop(tally)
        return _judge(seed, seconds, faults, tally, samples, lab)


class _Lab:
    """The gateway of a run."""

    def __init__(self, folder: Path) -> None:
        self.audit = folder / "audit.jsonl"
        self._mark = secrets.token_hex(16)
        self._folder = folder
        self._token = secrets.token_urlsafe(32)
        self.endpoint = Endpoint(host="127.0.0.1", port=_free_port(), token=self._token)
        self._web_port = _free_port()
        self._web: asyncio.subprocess.Process | None = None
        self.gateway: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        environ = {**os.environ, _MARK: self._mark}
        web = [sys.executable, "-m", "bench.upstream_http", "--port", str(self._web_port), "--ports", "1"]
        self._web = await asyncio.create_subprocess_exec(*web, "--tools", "23", cwd=_ROOT, stdout=-3, stderr=-3)
        config = self._folder / "pactgate.json"
        config.write_text(json.dumps(self._settings()))
        config.chmod(0o600)
        script = str(Path(sys.executable).with_name("pactgate"))
        log = (self._folder / "gateway.log").open("wb")
        command = (script, "serve", "--config", str(config), "--port", str(self.endpoint.port))
        self.gateway = await asyncio.create_subprocess_exec(*command, env=environ, stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + _START_S
        while not all(self.state_of(name) == "connected" for name in (*STEADY, *FRAGILE)):
            if self.gateway.returncode is not None or time.monotonic() > deadline:
                raise ChaosError("the gateway did not start:\n" + self.log()[-2000:])
            await asyncio.sleep(0.1)

    def _settings(self) -> dict[str, Any]:
        program = {"command": sys.executable, "args": ["-m", "chaos.server"], "cwd": str(_ROOT)}
        servers: dict[str, Any] = {
            name: {**program, "env": {_MARK: self._mark}, "requestTimeoutMs": LIMIT_MS} for name in ("steady", *FRAGILE)
        }
        servers["web"] = {"url": f"http://127.0.0.1:{self._web_port}/mcp"}
        return {
            "mcpServers": servers,
            "rateLimits": {"enabled": False},
            "audit": {"file": str(self.audit)},
            "auth": {"tokens": {"chaos": {"token": self._token, "roles": ["admin"]}}},
        }

    def servers(self) -> list[dict[str, Any]]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.endpoint.port}/api/servers", headers={"Authorization": f"Bearer {self._token}"}
        )
        with urllib.request.urlopen(request, timeout=5) as response:
            found: list[dict[str, Any]] = json.load(response)["servers"]
        return found

    def row_of(self, server: str) -> dict[str, Any]:
        with suppress(OSError):
            return next((row for row in self.servers() if row["serverId"] == server), {})
        return {}

    def state_of(self, server: str) -> str:
        return str(self.row_of(server).get("status"))

    def log(self) -> str:
        return (self._folder / "gateway.log").read_text(errors="replace")

    async def stop(self, tally: Tally) -> None:
        """End the gateway as an operator does. Whatever it started has to end with it."""
        if self.gateway is not None and self.gateway.returncode is None:
            self.gateway.terminate()
            try:
                await asyncio.wait_for(self.gateway.wait(), _STOP_S)
            except TimeoutError:
                tally.problem("the gateway did not stop in time")
                self.gateway.kill()
        if self._web is not None:
            self._web.terminate()
            await self._web.wait()
        await asyncio.to_thread(_wait_for_end, self._mark)
        for pid in _marked(self._mark):
            tally.problem(f"process {pid} outlived the gateway")
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def _inject(lab: _Lab, faults: Sequence[Fault], say: Callable[[str], None]) -> None:
    began = time.monotonic()
    background: set[asyncio.Task[None]] = set()
    for fault in faults:
        await asyncio.sleep(max(0.0, began + fault.at_s - time.monotonic()))
        say(f"{fault.at_s:7.1f} s  {fault.kind} {fault.server}")
        if fault.kind in SIGNALS:
            pid = (await asyncio.to_thread(lab.row_of, fault.server)).get("pid")
            if isinstance(pid, int):
                with suppress(ProcessLookupError):
                    os.kill(pid, SIGNALS[fault.kind])
            continue
        doing = misbehave(fault.kind, lab.endpoint, fault.server) if fault.kind in CLIENTS else _ask_for(lab, fault)
        task = asyncio.create_task(doing)
        background.add(task)
        task.add_done_callback(background.discard)
    if background:
        await asyncio.wait(background, timeout=LIMIT_MS / 1000 + 10)


async def _ask_for(lab: _Lab, fault: Fault) -> None:
    """Ask a server to misbehave. It may not answer that."""
    client = Client(lab.endpoint, 1000, Tally(), 0)
    with suppress(Exception):
        async with asyncio.timeout(LIMIT_MS / 1000 + 5):
            await client.call_tool(f"{fault.server}__{fault.kind}", {"text": "please"})
    client.connection.close()


async def _watch(lab: _Lab, until: float, tally: Tally, say: Callable[[str], None]) -> list[Sample]:
    assert lab.gateway is not None
    samples, pid = [], lab.gateway.pid  # of the gateway alone: its servers are told to misbehave
    while time.monotonic() < until:
        await asyncio.sleep(min(_SAMPLE_S, max(0.1, until - time.monotonic())))
        if lab.gateway.returncode is not None:
            tally.problem(f"the gateway ended with exit code {lab.gateway.returncode}:\n{lab.log()[-2000:]}")
            break
        samples.append(Sample(rss_bytes=own_rss_bytes(pid), descriptors=own_descriptors(pid)))
        if len(samples) % 5 == 0:
            say(
                f"           {tally.calls} calls, {len(tally.problems)} problems, "
                f"{samples[-1].rss_bytes / 2**20:.0f} MiB, {samples[-1].descriptors} descriptors"
            )
    return samples


async def _recovered(lab: _Lab, tally: Tally) -> None:
    """After the faults every server answers again."""
    if lab.gateway is None or lab.gateway.returncode is not None:
        return
    client = Client(lab.endpoint, 1001, Tally(), 0)
    for server in (*STEADY, *FRAGILE):
        deadline = time.monotonic() + 30
        answer: dict[str, Any] = {}
        while "result" not in answer or answer["result"].get("isError"):
            if time.monotonic() > deadline:
                tally.problem(f"{server} did not come back within 30 s: {json.dumps(answer)[:300]}")
                break
            with suppress(Exception):
                async with asyncio.timeout(10):
                    answer = await client.call_tool(f"{server}__echo", {"text": "again"})
            await asyncio.sleep(0.3)
    client.connection.close()


def _judge(
    seed: int, seconds: float, faults: Sequence[Fault], tally: Tally, samples: list[Sample], lab: _Lab
) -> Outcome:
    problems = list(tally.problems)
    steady = sorted(tally.steady_s) or [0.0]
    p99_s = steady[min(len(steady) - 1, int(len(steady) * 0.99))]
    if p99_s > P99_S:
        problems.append(f"p99 of the steady servers is {p99_s * 1000:.0f} ms, more than {P99_S * 1000:.0f} ms")
    first, last = _medians(samples)
    if last.rss_bytes - first.rss_bytes > GROWTH_BYTES:
        problems.append(f"memory grew from {first.rss_bytes / 2**20:.0f} to {last.rss_bytes / 2**20:.0f} MiB")
    if last.descriptors - first.descriptors > FURTHER_DESCRIPTORS:
        problems.append(f"descriptors grew from {first.descriptors} to {last.descriptors}")
    verdict = verify(files_of(lab.audit))
    problems += [f"audit log, {one.file}:{one.line}: {one.why}" for one in verdict.breaks[:5]]
    lost = tally.request_ids - _audited(lab.audit)
    if lost:
        problems.append(f"{len(lost)} answered calls are not in the audit log, as {next(iter(lost))}")
    if not tally.calls:
        problems.append("no call was answered")
    return Outcome(
        seed=seed,
        seconds=seconds,
        calls=tally.calls,
        faults=len(faults),
        outcomes=dict(sorted(tally.outcomes.items())),
        steady_p50_ms=statistics.median(steady) * 1000,
        steady_p99_ms=p99_s * 1000,
        first_rss_bytes=first.rss_bytes,
        last_rss_bytes=last.rss_bytes,
        further_descriptors=last.descriptors - first.descriptors,
        audit_records=verdict.records,
        problems=tuple(problems),
    )


def _medians(samples: list[Sample]) -> tuple[Sample, Sample]:
    """The second and the last quarter of the run: at first caches and pools fill."""
    quarter = max(1, len(samples) // 4)
    return _median(samples[quarter : 2 * quarter] or samples), _median(samples[-quarter:])


def _median(samples: list[Sample]) -> Sample:
    if not samples:
        return Sample(rss_bytes=0, descriptors=0)
    return Sample(
        rss_bytes=int(statistics.median(one.rss_bytes for one in samples)),
        descriptors=int(statistics.median(one.descriptors for one in samples)),
    )


def _audited(log: Path) -> set[str]:
    found = set()
    for path in files_of(log):
        for _, line in lines_of(path):
            with suppress(ValueError):
                found.add(json.loads(line).get("requestId"))
    return found


def _marked(mark: str) -> list[int]:
    """Living processes with the mark of this run in their environment."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def _wait_for_end(mark: str) -> None:
    """Give the processes of a run a moment to end."""
    deadline = time.monotonic() + _ORPHAN_S
    while _marked(mark) and time.monotonic() < deadline:
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
