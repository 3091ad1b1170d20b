"""What the gateway leaves behind: nothing. Processes, descriptors, tasks, objects and memory, counted from outside.

`tests/interop/test_steady_state.py` counts after calls alone; here servers are killed and callers and servers come and go.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvloop

from bench.cpu import rss_bytes, tree
from bench.load import Load, LoadError, measure
from tests.cli.program import PROGRAM, WAIT_S, Served, environment, write_config
from tests.interop.processes import PYTHON, Program, free_port, listens
from tests.interop.raw import RawCaller
from tests.support.children import Witness
from tests.support.processes import children_of, descendants_of

HERE = Path(__file__).parent
UNLIMITED = {"rateLimits": {"enabled": False}}
PIPES = ("first", "second", "third")
WARM_UP_ROUNDS = 2
WARM_UP_CALLS = 130
ROUNDS = 4
CALLS_PER_SERVER = 630
GRACE_S = 5.0
LADDER_S = 5.0

pytestmark = pytest.mark.timeout(120)


def light(manner: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-I", "-S", str(HERE / "light_server.py"), manner]}


class Counts(NamedTuple):
    children: int
    descriptors: int
    tasks: int
    objects: int
    resident_bytes: int


class Web:
    """A server over HTTP that can be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "web.log"
        self.port = free_port()
        self.start()

    def start(self) -> None:
        words = ["--port", str(self.port), "--tools", "3"]
        self.program = Program([PYTHON, "-m", "bench.upstream_http", *words], self._log)
        self.program.wait_until(lambda: listens(self.port), "it listens")

    def kill(self) -> None:
        self.program.process.kill()
        self.program.process.wait()


class Counted:
    """A gateway whose insides can be counted."""

    def __init__(self, folder: Path, web: Web) -> None:
        self._folder = folder
        self._file = folder / "counts.jsonl"
        self._file.touch()
        self._servers = {
            "web": {"url": f"http://127.0.0.1:{web.port}/mcp"},
            **{name: light("healthy") for name in PIPES},
        }
        config = write_config(folder, self._servers, **UNLIMITED)
        port = free_port()
        command: list[str | Path] = [
            PYTHON,
            HERE / "counted_gateway.py",
            self._file,
            "serve",
            "--config",
            config,
            "--port",
            str(port),
        ]
        self.program = Program(command, folder / "gateway.log")
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.program.wait_until(lambda: listens(port), "the gateway listens")

    def call(self, server: str, *, calls: int, era: str) -> None:
        """So many calls over new connections, none of which may fail."""
        load = Load(self.url, f"{server}__echo", era=era, connections=8, calls=calls, seconds=30, warmup=0)
        measured = uvloop.run(measure(load))
        assert (measured.calls, measured.failed) == (calls, 0), measured.last_failure

    def wait_for(self, server: str) -> None:
        self.program.wait_until(lambda: self._is_callable(server), f"{server} can be called")

    def _is_callable(self, server: str) -> bool:
        try:
            load = Load(self.url, f"{server}__echo", era="modern", calls=1, warmup=0)
            return uvloop.run(measure(load)).failed == 0
        except LoadError:
            return False

    def kill_servers(self) -> None:
        for pid in children_of(self.program.pid):
            if b"light_server" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)

    def reload(self, **more: Any) -> None:
        """Take over these servers beside the others; who leaves is gone when this returns."""
        write_config(self._folder, {**self._servers, **more}, **UNLIMITED)
        os.kill(self.program.pid, signal.SIGHUP)
        child_reaper, wanted = 1, len(PIPES) + len(more)
        self.program.wait_until(lambda: len(children_of(self.program.pid)) == wanted + child_reaper, "it has reloaded")

    def counts(self) -> Counts:
        """Once nothing moves: a connection that its caller has closed is there for another moment."""
        seen = self._count()
        for _ in range(100):
            now = self._count()
            if now[:3] == seen[:3]:
                return now
            seen = now
        raise AssertionError(f"still moving: {seen}")

    def _count(self) -> Counts:
        before = len(self._file.read_text().splitlines())
        os.kill(self.program.pid, signal.SIGUSR1)
        self.program.wait_until(lambda: len(self._file.read_text().splitlines()) > before, "it has counted")
        inside = json.loads(self._file.read_text().splitlines()[-1])
        pid = self.program.pid
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        own_bytes = rss_bytes(pid) - sum(rss_bytes(child) for child in children_of(pid))
        return Counts(len(tree(pid)) - 1, descriptors, inside["tasks"], inside["objects"], own_bytes)


@contextmanager
def counted(folder: Path) -> Iterator[tuple[Counted, Web]]:
    web = Web(folder)
    gateway = Counted(folder, web)
    try:
        yield gateway, web
    finally:
        gateway.program.stop()
        web.program.stop()


@pytest.mark.requirement("S1/XC-003")
def test_calls_crashes_reconnects_and_reloads_leave_nothing_behind(tmp_path: Path) -> None:
    with counted(tmp_path) as (gateway, web):
        for number in range(WARM_UP_ROUNDS):
            one_round(gateway, web, number, calls=WARM_UP_CALLS)
        before = gateway.counts()
        for number in range(ROUNDS):
            one_round(gateway, web, number, calls=CALLS_PER_SERVER)
        assert (len(PIPES) + 1) * CALLS_PER_SERVER * ROUNDS >= 10_000
        after = gateway.counts()
    assert after.children == before.children
    assert after.descriptors <= before.descriptors
    assert after.tasks <= before.tasks
    assert after.objects - before.objects < 500
    assert after.resident_bytes - before.resident_bytes < 4 * 1024 * 1024


def one_round(gateway: Counted, web: Web, number: int, *, calls: int) -> None:
    """Every server is called often, killed, and called again; one comes and goes; and all callers are new each time."""
    for server in (*PIPES, "web"):
        gateway.call(server, calls=calls, era="legacy" if number % 2 else "modern")
    gateway.kill_servers()
    web.kill()
    web.start()
    for server in (*PIPES, "web"):
        gateway.wait_for(server)
    gateway.reload(guest=light("healthy"))
    gateway.wait_for("guest")
    gateway.reload()


# -- the end


@contextmanager
def serving(folder: Path, *manners: str) -> Iterator[Served]:
    """A gateway with a server of each manner. Afterwards none of them may be left, nor anybody they started."""
    write_config(folder, {manner: light(manner) for manner in manners})
    with Served(folder) as gateway:
        for manner in manners:
            gateway.wait_for(f"ok +{manner}")
        pids = descendants_of(gateway.process.pid)
        child_reaper, grandchildren = 1, manners.count("stubborn")
        assert len(pids) == len(manners) + child_reaper + grandchildren
        with Witness(pids) as witness:
            yield gateway
            assert gateway.process.poll() is not None
            assert witness.living_after(WAIT_S) == set()


@contextmanager
def call_under_way(gateway: Served, ms: int) -> Iterator[Future[str]]:
    """A call that its server has begun and that takes this long."""
    begun = gateway.folder / "begun"
    os.mkfifo(begun)
    mark = os.open(begun, os.O_RDONLY | os.O_NONBLOCK)
    arguments = json.dumps({"ms": ms, "text": "done", "mark": str(begun)})
    caller = RawCaller(f"{gateway.url}/mcp", "modern")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(caller.call, "healthy__slow", arguments)
        try:
            assert select.select([mark], [], [], WAIT_S)[0], "the call never began"
            yield answer
        finally:
            answer.exception(timeout=GRACE_S + LADDER_S)
            caller.close()
            os.close(mark)


@pytest.mark.requirement("S1/XC-003")
def test_asked_to_stop_it_ends_in_time_and_leaves_nobody(tmp_path: Path) -> None:
    with serving(tmp_path, "healthy", "stubborn", "flooding") as gateway:
        assert gateway.stop() == 0


def test_asked_to_stop_it_lets_a_call_finish(tmp_path: Path) -> None:
    with serving(tmp_path, "healthy") as gateway, call_under_way(gateway, 500) as answer:
        assert gateway.stop() == 0
        assert json.loads(answer.result(WAIT_S))["content"] == [{"type": "text", "text": "done"}]


def test_asked_to_stop_it_does_not_wait_for_a_call_that_never_ends_but_answers_it(tmp_path: Path) -> None:
    with serving(tmp_path, "healthy") as gateway, call_under_way(gateway, 60_000) as answer:
        assert gateway.stop() == 0
        with pytest.raises(AssertionError, match="The gateway is stopping") as refused:
            answer.result(WAIT_S)
        assert "may_have_run" in str(refused.value)
        assert "'party': 'gateway'" in str(refused.value) or '"party":"gateway"' in str(refused.value)


@pytest.mark.requirement("S1/XC-003")
def test_after_sigkill_of_the_gateway_nobody_is_left(tmp_path: Path) -> None:
    with serving(tmp_path, "healthy", "stubborn", "flooding") as gateway:
        assert gateway.stop(signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.parametrize("end", ["SIGKILL", "its caller goes away"])
def test_started_by_a_client_it_leaves_nobody_either(end: str, tmp_path: Path) -> None:
    write_config(tmp_path, {"healthy": light("healthy"), "stubborn": light("stubborn")})
    with subprocess.Popen(
        [*PROGRAM, "serve", "--stdio"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as gateway:
        listed = ask_over_stdio(gateway)
        assert {tool["name"] for tool in listed} >= {"healthy__echo", "stubborn__echo"}
        with Witness(descendants_of(gateway.pid)) as witness:
            if end == "SIGKILL":
                gateway.kill()
            else:
                assert gateway.stdin is not None
                gateway.stdin.close()
            gateway.wait(GRACE_S + LADDER_S)
            assert witness.living_after(WAIT_S) == set()


def ask_over_stdio(gateway: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    assert gateway.stdin
    assert gateway.stdout
    gateway.stdin.write(json.dumps(request).encode() + b"\n")
    gateway.stdin.flush()
    listed: list[dict[str, Any]] = json.loads(gateway.stdout.readline())["result"]["tools"]
    return listed
