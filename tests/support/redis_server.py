"""A real Redis on loopback, of the Debian package `redis-server`; it can be stopped, emptied, suspended and slowed down."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import elapsed, eventually_blocking

PROGRAM = shutil.which("redis-server")
needs_redis = pytest.mark.skipif(
    PROGRAM is None, reason="NOT RUN: redis-server is not installed: apt-get install redis-server"
)


class RedisServer:
    """One server, without persistence: after a restart it is empty."""

    def __init__(self, folder: Path, port: int | None = None, arguments: tuple[str, ...] = ()) -> None:
        self._arguments = arguments
        self._folder = folder
        self.port = port or _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> RedisServer:
        assert PROGRAM is not None
        words = [PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(
            [*words, "--dir", str(self._folder), *self._arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        eventually_blocking(self._answers)
        return self

    def suspend(self) -> None:
        """From now on it hangs."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
            process.kill()
            process.wait()

    def command(self, *words: str) -> Any:
        import redis

        with redis.Redis(port=self.port) as client:
            return client.execute_command(*words)

    def keys(self) -> dict[str, int]:
        """Every key, and its time to live in milliseconds (-1: for ever)."""
        import redis

        with redis.Redis(port=self.port) as client:
            return {key.decode(): int(client.pttl(key)) for key in client.scan_iter()}

    def dump(self) -> bytes:
        """Everything that is stored, as one string."""
        import redis

        with redis.Redis(port=self.port) as client:
            return b"\n".join(b"%b %b" % (key, client.dump(key) or b"") for key in client.scan_iter())

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def _answers(self) -> bool:
        with socket.socket() as probe, suppress(OSError):
            probe.settimeout(1)
            probe.connect(("127.0.0.1", self.port))
            probe.sendall(b"PING\r\n")
            return probe.recv(16).startswith(b"+PONG")
        return False


@asynccontextmanager
async def slowed(port: int, delay_s: float) -> AsyncIterator[int]:
    """A port that leads to another one, where every piece arrives this much later in one direction, however many are on their way."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pause_s: float) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(65536):
            loop.call_later(pause_s, writer.write, data)
        loop.call_later(pause_s, writer.close)

    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, back))
        tasks.add(asyncio.create_task(carry(reader, back, delay_s)))
        tasks.add(asyncio.create_task(carry(there, writer, 0)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        for writer in writers:
            writer.transport.abort()
        if tasks:
            await asyncio.wait(tasks)


@asynccontextmanager
async def pretending(answer: Callable[[bytes], bytes | None]) -> AsyncIterator[str]:
    """The URL of a store that answers whatever the test says; None closes the connection."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while data := await reader.read(65536):
            found = answer(data)
            if found is None:
                break
            writer.write(found)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await elapsed(0.01)  # the loop has to run once for each of them


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
