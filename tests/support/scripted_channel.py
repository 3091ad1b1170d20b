"""A channel without a wire: what a session sends is written down, what the test says arrives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from pactgate.core.failures import GatewayFailure
from pactgate.protocol.versions import Era
from pactgate.upstreams.channel import Outgoing, Receiver

Script = Callable[[dict[str, Any]], Any]
"""Given a sent message, the message(s) to answer with, or None."""


class ScriptedChannel:
    def __init__(
        self, script: Script | None = None, *, closing_cancels: bool = False, answers_in_send: bool = False
    ) -> None:
        self.closing_cancels = closing_cancels
        self.answers_in_send = answers_in_send
        self.sent: list[dict[str, Any]] = []
        self.frames: list[Outgoing] = []
        self.settled: tuple[Era, str] | None = None
        self.is_closed = False
        self.refuses: Exception | None = None
        self._script = script
        self._receiver: Receiver | None = None
        self._news = asyncio.Event()

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def settle(self, era: Era, version: str) -> None:
        self.settled = (era, version)

    async def send(self, frame: Outgoing) -> None:
        if self.refuses is not None:
            raise self.refuses
        message = json.loads(frame.data)
        self.sent.append(message)
        self.frames.append(frame)
        self._news.set()
        answer = self._script(message) if self._script else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            self.say(answer)

    async def close(self) -> None:
        self.is_closed = True

    def say(self, message: Any) -> None:
        assert self._receiver is not None
        self._receiver.receive(
            message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        )

    def lose(self, failure: GatewayFailure) -> None:
        assert self._receiver is not None
        self._receiver.lost(failure)

    async def until_sent(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.sent) < count:
                self._news.clear()
                await self._news.wait()
