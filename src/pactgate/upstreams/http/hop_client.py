"""Sends requests to other replicas of the gateway, over kept connections of the gateway's own HTTP client.

Directly, never through a proxy of the environment. Must not: know what is in a message, or send one twice.
"""

from __future__ import annotations

from typing import Final

from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.pool import PoolLimits
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse

_LIMITS: Final = PoolLimits(max_open=2048, max_idle=64, connect_timeout_s=1.0)
"""Each stream of a client takes one connection for as long as it is open."""
_HEADERS: Final = b"Content-Type: application/octet-stream\r\nAccept: application/json, text/event-stream\r\n"
_MAX_TARGETS: Final = 1024


class HopClient:
    def __init__(self, path: str, max_body_bytes: int) -> None:
        self._path = path
        self._max_body_bytes = max_body_bytes
        self._client = HttpClient(_LIMITS)
        self._targets: dict[str, HttpTarget] = {}

    async def send(self, address: str, message: bytes) -> HttpResponse:
        target = self._targets.get(address)
        if target is None:
            if len(self._targets) >= _MAX_TARGETS:
                self.forget(next(iter(self._targets)))
            target = self._targets[address] = HttpTarget("replica", f"http://{address}{self._path}")
        return await self._client.request(b"POST", target, _HEADERS, message, max_body_bytes=self._max_body_bytes)

    def forget(self, address: str) -> None:
        """A replica has gone: end what waits for it."""
        target = self._targets.pop(address, None)
        if target is not None:
            self._client.abandon(target)

    async def close(self) -> None:
        await self._client.close()
