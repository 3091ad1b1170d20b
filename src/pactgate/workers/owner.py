"""The process that owns what workers share: the listening sockets, the children, the configuration in force. It serves nobody itself.

Starts the workers, starts again what dies, carries what one worker asks of the others, and has one of them change the configuration at
a time; a worker that does not take over a change is replaced by one that begins with it. Ends with all of them. Must not: look at calls.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Emit, WorkerEnded
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.pipeline.live_configuration import Standing
from pactgate.workers import listening, packets
from pactgate.workers.crew import AGREE_S, TURN_S, Hello
from pactgate.workers.epochs import size_bytes
from pactgate.workers.homes import Place
from pactgate.workers.lending import Lending
from pactgate.workers.link import Fds
from pactgate.workers.parcels import pack, unpack
from pactgate.workers.post import Post, descriptors_of

STOP_S: Final = 25.0
RELOAD_S: Final = 60.0
MAX_FIRST_STARTS: Final = 3
"""A gateway of which a worker never served anybody has not started."""
_NO_TURN_S: Final = TURN_S - 1.0
_TOLD: Final = frozenset({"event", "failed"})


class Owner:
    """`command` starts a worker when the number of a descriptor is added to it; `on_told` takes what workers tell the owner's user."""

    def __init__(
        self,
        config: Config,
        sockets: Sequence[socket.socket],
        count: int,
        *,
        command: Sequence[str],
        token: str | None,
        emit: Emit,
        on_told: Callable[[str, int, Any], None],
    ) -> None:
        self._standing = Standing(config, config)
        self._sockets = sockets
        self._token = token
        self._emit = emit
        self._on_told = on_told
        self._lending = Lending(emit, config.limits)
        self._inboxes = [packets.pair() for _ in range(count)]
        self._epochs_file = os.memfd_create("pactgate epochs", os.MFD_CLOEXEC)
        os.ftruncate(self._epochs_file, size_bytes(count))
        self._turn = asyncio.Lock()
        self._turn_of: Post | None = None
        self._is_stopping = False
        self._all_ready = asyncio.Event()
        self._restarting: dict[int, asyncio.Task[None]] = {}
        self._posts = [
            Post(
                index,
                command,
                on_notice=self._on_notice,
                on_question=self._on_question,
                on_end=self._ended,
            )
            for index in range(count)
        ]

    @property
    def restarts(self) -> int:
        return sum(max(0, post.starts - 1) for post in self._posts)

    @property
    def pids(self) -> list[int]:
        return [post.pid for post in self._posts]

    def start(self) -> None:
        for post in self._posts:
            self._start(post)

    async def ready(self) -> None:
        """Waits until every worker serves."""
        await self._all_ready.wait()

    async def stop(self) -> None:
        """Have every worker finish what it does, then end; what has not ended in time is killed."""
        self._is_stopping = True
        for task in self._restarting.values():
            task.cancel()
        for post in self._posts:
            post.ask_to_stop()
        reaping = [asyncio.create_task(self._gone(post), name=f"end worker {post.index + 1}") for post in self._posts]
        await asyncio.wait(reaping)
        await self._lending.close()
        for post in self._posts:
            post.close()
        for pair in self._inboxes:
            listening.close(pair)
        listening.close(self._sockets)
        os.close(self._epochs_file)

    def kill(self) -> None:
        for post in self._posts:
            post.signal(signal.SIGKILL)

    async def reload(self, config: Config, *, only_if_news: bool = False) -> None:
        """Have one worker take over the file; it sees to it that all do."""
        body = (pack(config), only_if_news)
        for post in self._posts:
            if post.is_ready and post.link is not None:
                try:
                    await post.link.ask("reload", body, timeout_s=RELOAD_S)
                except GatewayFailure:
                    continue  # it ended meanwhile: the next one does it
                return

    # Starting.

    def _start(self, post: Post) -> None:
        count = len(self._posts)
        host, port = self._sockets[0].getsockname()[:2]
        hello = Hello(
            Place(post.index, count), self._standing, host, port, self._token, away=sorted(self._restarting.keys())
        )
        outboxes = [writing for _, writing in self._inboxes]
        descriptors = (
            *descriptors_of(self._inboxes[post.index][0], *outboxes),
            self._epochs_file,
            *descriptors_of(*self._sockets),
        )
        post.start(pack(hello), descriptors)

    def _ended(self, post: Post) -> None:
        if self._turn_of is post:
            self._turn_over()
        if self._is_stopping or post.index in self._restarting:
            return
        task = asyncio.get_running_loop().create_task(self._restart(post), name=f"restart worker {post.index + 1}")
        self._restarting[post.index] = task

    async def _restart(self, post: Post) -> None:
        self._tell_others(post, "away", post.index)
        pid, how = post.pid, await post.reap()
        while True:
            if not self._all_ready.is_set() and post.starts >= MAX_FIRST_STARTS:
                self._on_told("failed", post.index, f"Worker {post.index + 1} can't be started: it {how}.")
                return
            pause_s = post.pause_s()
            self._emit(WorkerEnded(post.index + 1, pid, how, round(pause_s * 1000)))
            await asyncio.sleep(pause_s)
            try:
                self._start(post)
            except OSError as problem:
                how = f"could not be started: {problem.strerror}"
                continue
            del self._restarting[post.index]
            return

    async def _gone(self, post: Post) -> None:
        """The process at a post has ended, by itself or not."""
        if post.pid == 0:
            return
        try:
            async with asyncio.timeout(STOP_S):
                await post.gone.wait()
        except TimeoutError:
            post.signal(signal.SIGKILL)
        await post.reap()

    # What workers tell and ask.

    def _on_notice(self, post: Post, name: str, body: Any, descriptors: Fds) -> None:
        packets.Packet(b"", descriptors).close()
        if name == "ready":
            post.is_ready = True
            self._tell_others(post, "back", post.index)
            if all(one.is_ready for one in self._posts):
                self._all_ready.set()
        elif name == "turn_over" and self._turn_of is post:
            self._turn_over()
        elif name == "failed" and self._all_ready.is_set():
            post.last_words = body
        elif name in _TOLD:
            self._on_told(name, post.index, body)

    async def _on_question(self, post: Post, name: str, body: Any) -> tuple[Any, Fds]:
        if name == "lend":
            return await self._lending.lend(unpack(body, ServerConfig))
        if name == "turn":
            await self._give_turn(post)
            return True, ()
        if name == "agree":
            await self._agree(post, body)
            return True, ()
        asked, about, timeout_s = body
        return await self._ask_others(post, asked, about, timeout_s), ()

    async def _ask_others(self, asker: Post, name: str, body: Any, timeout_s: float) -> list[tuple[int, Any]]:
        others = [post for post in self._posts if post is not asker]
        answers = await asyncio.gather(*(self._ask(post, name, body, timeout_s) for post in others))
        said: list[tuple[int, Any]] = [(post.index, answer) for post, answer in zip(others, answers, strict=True)]
        return [*said, (-1, self._own_facts())] if name == "facts" else said

    async def _ask(self, post: Post, name: str, body: Any, timeout_s: float) -> Any:
        """What one worker answers, or None."""
        if post.link is None or not post.link.is_open:
            return None
        try:
            return (await post.link.ask(name, body, timeout_s=timeout_s))[0]
        except GatewayFailure:
            return None

    async def _agree(self, changer: Post, standing: bytes) -> None:
        self._standing = unpack(standing, Standing)
        others = [post for post in self._posts if post is not changer and post.link is not None and post.link.is_open]
        taken = await asyncio.gather(*(self._ask(post, "take_over", standing, AGREE_S) for post in others))
        for post, is_taken in zip(others, taken, strict=True):
            if not is_taken:
                post.signal(signal.SIGKILL)  # the next one begins with what is in force

    async def _give_turn(self, post: Post) -> None:
        try:
            async with asyncio.timeout(_NO_TURN_S):
                await self._turn.acquire()
        except TimeoutError:
            text = "Another change of the configuration is under way; try again in a moment."
            raise GatewayFailure(Kind.CONFLICT, text) from None
        self._turn_of = post
        if post.link is None or not post.link.is_open:
            self._turn_over()

    def _turn_over(self) -> None:
        self._turn_of = None
        self._turn.release()

    def _tell_others(self, post: Post, name: str, body: Any) -> None:
        for other in self._posts:
            if other is not post and other.link is not None and other.link.is_open:
                other.link.tell(name, body)

    def _own_facts(self) -> dict[str, Any]:
        rows = (
            ("pactgate_worker_restarts_total", "counter", self.restarts),
            ("pactgate_children_shared", "gauge", len(self._lending)),
            ("pactgate_child_logs_unattributed_total", "counter", self._lending.unattributed_count),
        )
        text = "".join(f"# TYPE {name} {kind}\n{name} {number}\n" for name, kind, number in rows)
        return {"metrics": text.encode(), "uptimeMs": 0, "calls": {}, "cache": {}, "servers": []}
