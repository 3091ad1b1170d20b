"""What tests of child processes share: a receiver that can be waited on, channels to scripted servers, and who is still there."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from pactgate.core.events import Event
from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.channel import Outgoing
from pactgate.upstreams.process.child import ShutdownSteps
from pactgate.upstreams.process.child_reaper import ChildReaper
from pactgate.upstreams.process.stdio import StdioChannel
from tests.support.eventually import eventually

SCRIPT = str(Path(__file__).with_name("scripted_stdio.py"))
QUICK = ShutdownSteps(eof_s=0.1, term_s=0.1, kill_s=5.0)
PATIENT = ShutdownSteps(eof_s=5.0, term_s=5.0, kill_s=5.0)


def scripted(*words: str) -> list[str]:
    """The arguments for `sys.executable` that give a child this manner."""
    return ["-I", "-S", SCRIPT, *words]


class Inbox:
    """A `Receiver` that keeps what came and can be waited on, each wait bounded."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.failures: list[GatewayFailure] = []
        self.events: list[Event] = []
        self._news = asyncio.Event()

    def receive(self, frame: bytes, for_request: int | None = None) -> bool:
        self.frames.append(frame)
        self._news.set()
        return True

    def lost(self, failure: GatewayFailure) -> None:
        self.failures.append(failure)
        self._news.set()

    async def wait_frames(self, count: int, timeout_s: float = 10) -> list[bytes]:
        async with asyncio.timeout(timeout_s):
            while len(self.frames) < count:
                self._news.clear()
                await self._news.wait()
        return self.frames

    async def wait_lost(self, timeout_s: float = 5) -> GatewayFailure:
        async with asyncio.timeout(timeout_s):
            while not self.failures:
                self._news.clear()
                await self._news.wait()
        return self.failures[0]

    async def child_pid(self) -> int:
        """The grandchild that the scripted manners `parent` and `parent_that_dies` tell of first."""
        frames = await self.wait_frames(1)
        said: dict[str, Any] = msgspec.json.decode(frames[0])
        return int(said["params"]["pid"])


def frame(text: str | bytes) -> Outgoing:
    return Outgoing(text.encode() if isinstance(text, str) else text)


@asynccontextmanager
async def guarded(**options: Any) -> AsyncIterator[ChildReaper]:
    child_reaper = ChildReaper(**options)
    try:
        yield child_reaper
    finally:
        await child_reaper.close()


@asynccontextmanager
async def opened(
    *words: str, shutdown_steps: ShutdownSteps = QUICK, **options: Any
) -> AsyncIterator[tuple[StdioChannel, Inbox]]:
    """An open channel to a child of this manner, and what it brings; both are ended afterwards."""
    async with guarded() as child_reaper:
        inbox = Inbox()
        channel = StdioChannel(
            "crooked",
            sys.executable,
            scripted(*words),
            {},
            None,
            inbox.events.append,
            child_reaper,
            shutdown_steps=shutdown_steps,
            **options,
        )
        await channel.open(inbox)
        try:
            yield channel, inbox
        finally:
            await channel.close()


async def until(is_so: Callable[[], bool], timeout_s: float = 5) -> None:
    """Waits for what tells nobody when it happens."""
    await eventually(is_so, within_s=timeout_s)


class Witness:
    """Sees processes die, also those that are no children of ours. Make it while they live."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._descriptors = {pid: os.pidfd_open(pid) for pid in pids}

    def __enter__(self) -> Witness:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)

    def living_after(self, timeout_s: float) -> set[int]:
        """Who is still alive when all have died or the time is up."""
        poll = select.poll()
        living = {descriptor: pid for pid, descriptor in self._descriptors.items()}
        for descriptor in living:
            poll.register(descriptor, select.POLLIN)
        deadline = time.monotonic() + timeout_s
        while living and time.monotonic() < deadline:
            for descriptor, _ in poll.poll((deadline - time.monotonic()) * 1000):
                poll.unregister(descriptor)
                del living[descriptor]
        return set(living.values())


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> set[int]:
    """Children of this process, zombies included."""
    ours = f" {os.getpid()} "
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (folder / "stat").read_text().rpartition(")")[2]  # " state parent group ..."
        except (FileNotFoundError, ProcessLookupError):
            continue
        if after_name[2:].startswith(ours):
            found.add(int(folder.name))
    return found


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
