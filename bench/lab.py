"""Starts the gateway, nginx, peers and servers of a benchmark, each in its own process, and ends all of them.

On a machine with two cores, gateways and nginx run on the second core, servers and the load generator on the first; direct
calls are sent from the second core, so that they cross cores too. All processes listen on 127.0.0.1 and keep their files in one
temporary folder.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

import uvloop
from msgspec import Struct

from bench.load import Load, LoadError, measure
from bench.peers.kinds import Peer, PeerOptions
from bench.sign_ins import sign_in
from bench.tokens import NO_TOKENS, Tokens

_ROOT: Final = Path(__file__).resolve().parent.parent
_PORTS: Final = (20_000, 32_000)
_START_S: Final = 20.0
_PEER_START_S: Final = 60.0
_STOP_S: Final = 5.0
_REST_ECHO: Final = {
    "name": "echo",
    "description": "Gives the text back.",
    "method": "GET",
    "path": "/echo/{text}",
    "parameters": [{"name": "text", "in": "path", "required": True, "schema": {"type": "string"}}],
}


class Row(Struct, frozen=True):
    """A row of a workload: what answers the calls (`direct`, `nginx`, `pactgate` or a peer), and which servers stand behind it."""

    label: str
    via: str
    tools: int = 23
    upstreams: int = 1
    transport: str = "http"
    is_cached: bool = False
    is_audited: bool = False
    is_recorded: bool = False
    answers: str = "json"
    order: str = "both"
    """The member order of the server's responses: `python`, `typescript` or `both`."""
    tokens: Tokens = NO_TOKENS
    who: str = ""
    """Whose sign-in at its servers a gateway calls with: `shared`, or `user` for one of each client; empty: none."""


class Target(Struct, frozen=True):
    """A running process that answers calls: its URL, its prefix for tool names, and the process whose CPU time counts."""

    url: str
    prefix: str
    pid: int
    client_core: int
    tools: int
    tokens: Tokens = NO_TOKENS


class LabError(Exception):
    """A process could not be started; the message has its output."""


class Lab:
    """All processes of one run of the benchmark. Leaving the context ends them and removes their files."""

    def __init__(self, peers: Sequence[Peer] = ()) -> None:
        self._peers = {peer.name: peer for peer in peers}
        self._folder = Path(tempfile.mkdtemp(prefix="pactgate-bench-"))
        self._running: list[subprocess.Popen[bytes]] = []
        self._logs: dict[int, Path] = {}
        self._upstreams: dict[tuple[int, str, str, int], tuple[int, int]] = {}
        self._targets: dict[Row, Target] = {}
        self._cores = os.sched_getaffinity(0)
        self.is_pinned = len(self._cores) >= 2
        self._near_core, self._gateway_core = sorted(self._cores)[:2] if self.is_pinned else (0, 0)
        self.nginx = shutil.which("nginx")

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._running):
            _end(process)
        if self.is_pinned:
            os.sched_setaffinity(0, self._cores)
        shutil.rmtree(self._folder, ignore_errors=True)

    def target(self, row: Row) -> Target:
        """The process that answers the calls of this row; it is started on first use."""
        if row not in self._targets:
            self._targets[row] = self._start_target(row)
        return self._targets[row]

    def pin(self, core: int) -> None:
        """Pin this process, the load generator, to one core."""
        if self.is_pinned:
            os.sched_setaffinity(0, {core})

    def start_gateway(self, row: Row) -> tuple[Target, float]:
        """Start a gateway; also return the seconds from its start to its first answered call."""
        first_id, servers = self._servers(row)
        port = _free_port()
        config = self._folder / f"gateway-{port}.json"
        settings: dict[str, object] = {"mcpServers": servers, "rateLimits": {"enabled": False}}
        if row.is_cached:
            settings |= {"categories": {"*.*": "query"}, "cache": {"tools": {"*.*": {"ttlMs": 600_000}}}}
        if row.is_audited:
            settings["audit"] = {"file": str(self._folder / f"audit-{port}.jsonl")}
        if row.is_recorded:
            settings["capture"] = {"dir": f"captures-{port}", "maxFiles": 20}
        if row.tokens.kind == "key":
            config.with_suffix(".keys").write_bytes(row.tokens.key_file())
        elif row.tokens.count:
            settings["auth"] = row.tokens.settings()
        if row.who:
            sign_in(servers, row, str(config.with_suffix(".credentials")))
        config.write_text(json.dumps(settings))
        config.chmod(0o600)
        command = [*_gateway_command(), "serve", "--config", str(config), "--port", str(port)]
        began = time.perf_counter()
        process = self._spawn(command, self._gateway_core)
        tools = row.tools * row.upstreams
        url = f"http://127.0.0.1:{port}/mcp"
        target = Target(url, f"{first_id}__", process.pid, self._near_core, tools, row.tokens)
        self._await_call(target, process)
        return target, time.perf_counter() - began

    def stop(self, target: Target) -> None:
        process = next(process for process in self._running if process.pid == target.pid)
        self._running.remove(process)
        _end(process)

    def _start_target(self, row: Row) -> Target:
        if row.via == "pactgate":
            return self.start_gateway(row)[0]
        if row.via in self._peers:
            return self._start_peer(self._peers[row.via], row)
        port, pid = self._upstream(row)
        if row.via == "direct":
            return Target(f"http://127.0.0.1:{port}/mcp", "", pid, self._gateway_core, row.tools, row.tokens)
        proxy_port = _free_port()
        command = [self.nginx or "nginx", "-c", str(self._nginx_config(proxy_port, port))]
        process = self._spawn(command, self._gateway_core)
        target = Target(f"http://127.0.0.1:{proxy_port}/mcp", "", process.pid, self._near_core, row.tools, row.tokens)
        self._await_call(target, process)
        return target

    def _start_peer(self, peer: Peer, row: Row) -> Target:
        port = _free_port()
        upstream_port, _ = self._upstream(row) if peer.transport == "http" else (0, 0)
        options = PeerOptions(port, f"http://127.0.0.1:{upstream_port}/mcp", (sys.executable, *_stdio_arguments(row)))
        process = self._spawn(peer.command(options), self._gateway_core)
        target = Target(f"http://127.0.0.1:{port}{peer.path}", "", process.pid, self._near_core, row.tools, row.tokens)
        self._await_call(target, process, era="legacy", start_s=_PEER_START_S)
        return target

    def _servers(self, row: Row) -> tuple[str, dict[str, dict[str, object]]]:
        if row.transport == "stdio":
            arguments = _stdio_arguments(row)
            return "up", {"up": {"command": sys.executable, "args": arguments, "cwd": str(_ROOT)}}
        port, _ = self._upstream(row)
        if row.transport == "rest":
            return "up", {"up": {"baseUrl": f"http://127.0.0.1:{port}", "endpoints": [_REST_ECHO]}}
        ids = [f"up{n:02d}" for n in range(row.upstreams)]
        urls: dict[str, dict[str, object]] = {
            name: {"url": f"http://127.0.0.1:{port + n}/mcp"} for n, name in enumerate(ids)
        }
        return ids[row.upstreams // 2], urls

    def _upstream(self, row: Row) -> tuple[int, int]:
        """First port and process id of a server with the tools of this row, on at least as many ports."""
        tools, ports, answers, order = row.tools, row.upstreams, row.answers, row.order
        for (*known, known_ports), found in self._upstreams.items():
            if known == [tools, answers, order] and known_ports >= ports:
                return found
        port = _free_port(ports)
        command = [sys.executable, "-m", "bench.upstream_http", "--port", str(port), "--ports", str(ports)]
        command += ["--tools", str(tools), "--answers", answers, "--order", order]
        process = self._spawn(command, self._near_core)
        last = Target(f"http://127.0.0.1:{port + ports - 1}/mcp", "", process.pid, self._near_core, tools)
        self._await_call(last, process)
        self._upstreams[tools, answers, order, ports] = port, process.pid
        return port, process.pid

    def _spawn(self, command: list[str], core: int) -> subprocess.Popen[bytes]:
        """Start a process on one core. It inherits the core, because a child that it forks at once must have it too."""
        log = self._folder / f"{len(self._logs)}.log"
        before = os.sched_getaffinity(0)
        self.pin(core)
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command, cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
                )
        except OSError as problem:
            hint = "; if this folder was moved or copied, remove .tools/peers to install the peers again"
            raise LabError(f"{command[0]} can't be started: {problem.strerror}{hint}") from problem
        finally:
            os.sched_setaffinity(0, before)
        self._running.append(process)
        self._logs[process.pid] = log
        return process

    def _await_call(
        self, target: Target, process: subprocess.Popen[bytes], era: str = "modern", start_s: float = _START_S
    ) -> None:
        tool, tokens = f"{target.prefix}echo", target.tokens
        load = Load(target.url, tool, era=era, calls=1, warmup=0, seconds=5, tokens=tokens)
        until = time.perf_counter() + start_s
        while True:
            try:
                if uvloop.run(measure(load)).calls == 1:
                    return
            except LoadError as problem:
                if process.poll() is not None or time.perf_counter() > until:
                    raise LabError(f"{self._diagnosis(process)}\nlast attempt: {problem}") from problem
                time.sleep(0.002)

    def _diagnosis(self, process: subprocess.Popen[bytes]) -> str:
        state = "did not answer" if process.poll() is None else f"ended with exit code {process.returncode}"
        said = self._logs[process.pid].read_text(errors="replace")[-1500:]
        return f"{process.args!r} {state} in time; its output:\n{said}"

    def _nginx_config(self, port: int, upstream_port: int) -> Path:
        folder = self._folder / f"nginx-{port}"
        folder.mkdir()
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"  {kind}_temp_path {folder}/{kind};\n" for kind in kinds if _nginx_has(self.nginx, kind))
        config = folder / "nginx.conf"
        config.write_text(
            f"daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
            "events { worker_connections 512; }\n"
            f"http {{\n  access_log off;\n{temporary}"
            f"  upstream mcp {{ server 127.0.0.1:{upstream_port}; keepalive 64; keepalive_requests 10000000; }}\n"
            f"  server {{\n    listen 127.0.0.1:{port};\n    keepalive_requests 10000000;\n"
            "    location / {\n      proxy_pass http://mcp;\n      proxy_http_version 1.1;\n"
            '      proxy_set_header Connection "";\n      proxy_buffer_size 16k;\n      proxy_buffers 64 16k;\n'
            "      proxy_busy_buffers_size 64k;\n      proxy_max_temp_file_size 0;\n    }\n  }\n}\n"
        )
        return config


def _stdio_arguments(row: Row) -> list[str]:
    return ["-m", "bench.upstream_stdio", "--tools", str(row.tools), "--order", row.order]


def _nginx_has(nginx: str | None, kind: str) -> bool:
    """Whether this nginx was built with the module that uses this temporary folder."""
    if kind in ("client_body", "proxy"):
        return True
    built = subprocess.run([nginx or "nginx", "-V"], capture_output=True, text=True, check=False, timeout=10).stderr
    return f"--without-http_{kind}_module" not in built


def _gateway_command() -> list[str]:
    script = Path(sys.executable).with_name("pactgate")
    return [str(script)] if script.exists() else [sys.executable, "-c", "from pactgate.cli.main import main; main()"]


def _free_port(consecutive: int = 1) -> int:
    """The first of so many consecutive free ports, below the range that the system uses for outgoing connections."""
    for _ in range(200):
        first = random.randrange(*_PORTS)
        if all(_is_free(first + n) for n in range(consecutive)):
            return first
    raise LabError(f"no {consecutive} consecutive free ports on 127.0.0.1")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the process; kill its process group when it does not end in time."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_STOP_S)
