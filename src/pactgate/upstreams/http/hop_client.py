"""Sends requests to other replicas of the gateway, over kept connections of the gateway's own HTTP client.

Directly, never through a proxy of the environment. Only the owner of a request knows how long it may take, so what is bounded here is how
long a replica may be silent: one that hangs, or whose machine is gone, is noticed also while the store does not answer.
Must not: know what is in a message, or send one twice.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.pool import PoolLimits
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse

_LIMITS: Final = PoolLimits(max_open=2048, max_idle=64, connect_timeout_s=1.0)
"""Each stream of a client takes one connection for as long as it is open."""
_HEADERS: Final = b"Content-Type: application/octet-stream\r\nAccept: application/json, text/event-stream\r\n"
_MAX_TARGETS: Final = 1024
_MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Lists of many servers are one answer; the owner has bounded what is in them."""
LOOK_S: Final = 5.0
"""So often each replica is asked whether it still answers, and so long it has to do so."""


class HopClient:
    def __init__(self, path: str, look_s: float = LOOK_S) -> None:
        self._path = path
        self._look_s = look_s
        self._client = HttpClient(_LIMITS)
        # Connections of their own: a question must not wait for a place behind the streams of clients.
        self._looks = HttpClient(PoolLimits(max_open=2, max_idle=1, connect_timeout_s=2 * look_s))
        self._targets: dict[str, HttpTarget] = {}
        self._watching: asyncio.Task[None] | None = None

    async def send(self, address: str, message: bytes) -> HttpResponse:
        target = self._targets.get(address)
        if target is None:
            if len(self._targets) >= _MAX_TARGETS:
                self.forget(next(iter(self._targets)))
            target = self._targets[address] = HttpTarget("replica", f"http://{address}{self._path}")
            if self._watching is None or self._watching.done():
                self._watching = asyncio.create_task(self._watch(), name="hops")
        return await self._client.request(b"POST", target, _HEADERS, message, max_body_bytes=_MAX_ANSWER_BYTES)

    def forget(self, address: str) -> None:
        """A replica has gone: end what waits for it."""
        target = self._targets.pop(address, None)
        if target is not None:
            self._client.abandon(target)

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await self._client.close()
        await self._looks.close()

    async def _watch(self) -> None:
        while self._targets:
            await asyncio.sleep(self._look_s)
            await asyncio.gather(*map(self._look, tuple(self._targets)))

    async def _look(self, address: str) -> None:
        target = self._targets.get(address)
        if target is None:
            return
        try:
            async with asyncio.timeout(self._look_s):
                await self._looks.request(b"GET", target, b"", takes_any=True)
        except TimeoutError:
            if self._targets.get(address) is target:
                self.forget(address)
        except GatewayFailure:
            return  # it is there and has no place, or has ended: then its connections have ended, too
