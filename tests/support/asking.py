"""Callers that answer what they are asked, and servers that ask."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pactgate.config.server_settings import ServerConfig
from pactgate.core.principal import Principal
from pactgate.core.unanswered import UnansweredError
from pactgate.core.values import Caller
from pactgate.protocol.messages import ErrorReply, encode_json
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era

UPSTREAM = Path(__file__).with_name("asking_upstream.py")
ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {"listChanged": True}}
SAID = {"action": "accept", "content": {"name": "Ada"}}

Answer = Callable[[str, Any], Any]


async def person_thinks(seconds: float) -> None:
    """Time passes on the caller's side; that it does is what the test is about."""
    done = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, done.set_result, None)
    await asyncio.wait_for(done, 5)


class Client:
    """The channel of a legacy client: it answers with what `answer` gives, which may be an error reply or something to wait for."""

    can_ask = True

    def __init__(self, answer: Answer = lambda method, params: SAID) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.notes: list[tuple[str, bytes]] = []
        self.was_asked = asyncio.Event()
        self._answer = answer

    def notify(self, method: str, params: bytes) -> None:
        self.notes.append((method, params))

    async def ask(self, method: str, params: bytes) -> bytes:
        said = json.loads(params)
        self.asked.append((method, said))
        self.was_asked.set()
        answer = self._answer(method, said)
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, ErrorReply):
            raise UnansweredError("refused", answer)
        return encode_json(answer)


def asker(
    era: Era = Era.LEGACY,
    answer: Answer | None = None,
    *,
    key: str = "tester",
    session: str | None = None,
    capabilities: dict[str, Any] | None = None,
    version: str | None = None,
    scope: str | None = None,
) -> Caller:
    """A caller that can be asked; a legacy one through its channel, a modern one by rounds."""
    known = LATEST_MODERN if era is Era.MODERN else LATEST_LEGACY
    channel = Client(answer) if answer else Client()
    channel.can_ask = era is Era.LEGACY
    return Caller(
        principal=Principal(key),
        era=era,
        version=version or known,
        channel=channel,
        scope=scope,
        session=session,
        capabilities=ALL if capabilities is None else capabilities,
    )


def asking(server: str = "asking", *, era: str = "legacy", log: Path | None = None, **settings: Any) -> ServerConfig:
    """A server that runs `asking_upstream.py`, in a process of its own for each caller unless the settings say otherwise."""
    options = {"era": era, **({"log": str(log)} if log else {})}
    given = {"isolation": "session", "era": era, **settings}
    return ServerConfig(id=server, command=sys.executable, args=(str(UPSTREAM), json.dumps(options)), **given)


def logged(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
