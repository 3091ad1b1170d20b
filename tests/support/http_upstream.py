"""The server of `stdio_upstream.py` behind an HTTP endpoint on a real socket, in the loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from tests.support.eventually import elapsed
from tests.support.scripted_http import LAST_CHUNK, Peer, ReceivedRequest, ScriptedHttp, answer, event, stream_head
from tests.support.stdio_upstream import Server

_NOTIFICATION = '"method": "notifications/'


class _Exchange(Server):
    """One POST. What the server writes before its response becomes events; None says that it died."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()

    def go(self, id_: Any, steps: Iterator[float]) -> None:
        async def take_steps() -> None:
            for pause_s in steps:
                await elapsed(pause_s)

        self.call_task = asyncio.create_task(take_steps())

    def write(self, text: str) -> None:
        self.lines.put_nowait(text)

    def die(self) -> None:
        self.lines.put_nowait(None)


def upstream(**options: Any) -> ScriptedHttp:
    """A server with the options of `stdio_upstream.py`."""

    async def play(peer: Peer) -> None:
        while True:
            received = await peer.request()
            if received.method != "POST":
                await peer.send(answer(b"", "405 Method Not Allowed"))
            else:
                await _answer(peer, received, _Exchange(options))

    return ScriptedHttp(play)


async def _answer(peer: Peer, received: ReceivedRequest, exchange: _Exchange) -> None:
    exchange.take(received.body.decode())
    if not {"id", "method"} <= received.message.keys():
        await peer.send(answer(b"", "202 Accepted", None))
        return
    is_streaming = False
    while (line := await exchange.lines.get()) is not None and _NOTIFICATION in line:
        await peer.send(b"" if is_streaming else stream_head(), event(line))
        is_streaming = True
    if line is None:
        peer.reset()
    else:
        await peer.send(*((event(line), LAST_CHUNK) if is_streaming else (answer(line),)))
