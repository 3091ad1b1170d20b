"""The HTTP client of a channel that is recorded: every request, answer and piece of a stream is told to a tap as it passes.

Stands in for `HttpClient` where there is a tap, so that a channel without one pays nothing. Must not: change anything that passes.
"""

from __future__ import annotations

import asyncio

from pactgate.core.failures import GatewayFailure
from pactgate.core.recording import ConnectionRecorder, HttpExchangeRecorder
from pactgate.upstreams.http.client import MAX_BODY_BYTES, HttpClient
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse, ResponseStream


class RecordingClient:
    """As `HttpClient.request`, seen by a tap."""

    def __init__(self, client: HttpClient, tap: ConnectionRecorder) -> None:
        self.tap = tap
        self._client = client

    def begin(self, *_: object) -> None:
        """Every request is awaited here, to see its response."""

    async def request(
        self,
        method: bytes,
        target: HttpTarget,
        headers: bytes,
        body: bytes = b"",
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> HttpResponse:
        hop = self.tap.requested(method.decode("ascii"), "", headers, body)
        try:
            response = await self._client.request(method, target, headers, body, max_body_bytes=max_body_bytes)
        except asyncio.CancelledError:
            hop.ended(by_client=True)
            raise
        except GatewayFailure:
            hop.ended(by_client=False)
            raise
        return _seen(response, hop)


def _seen(response: HttpResponse, hop: HttpExchangeRecorder) -> HttpResponse:
    if response.stream is None:
        hop.answered(response.status, response.headers, response.body)
    else:
        hop.streaming(response.status, response.headers)
        response.stream = RecordedStream(response.stream, hop)
    return response


class RecordedStream(ResponseStream):
    """A stream whose reader is watched. Its end is told once."""

    __slots__ = ("_hop", "_inner")

    def __init__(self, inner: ResponseStream, hop: HttpExchangeRecorder) -> None:
        self._inner = inner
        self._hop: HttpExchangeRecorder | None = hop

    async def read(self) -> bytes:
        try:
            data = await self._inner.read()
        except GatewayFailure:
            self._ended(by_client=False)
            raise
        if not data:
            self._ended(by_client=False)
        elif self._hop is not None:
            self._hop.events(data)
        return data

    def close(self) -> None:
        self._inner.close()
        self._ended(by_client=True)

    def let_finish(self) -> None:
        self._inner.let_finish()
        self._ended(by_client=True)

    def _ended(self, *, by_client: bool) -> None:
        hop, self._hop = self._hop, None
        if hop is not None:
            hop.ended(by_client=by_client)
