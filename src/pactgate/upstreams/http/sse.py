"""The HTTP+SSE transport of revision 2024-11-05 as a `Channel`: one stream carries all server messages, client messages are posted.

The stream is the session: when it ends, the channel is lost. Must not: send a message twice (D6), or post to another origin, whatever the
stream's `endpoint` event says: a server could otherwise send our credentials elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.recording import ConnectionRecorder
from pactgate.protocol.versions import Era
from pactgate.upstreams.channel import Outgoing, Receiver, TokenSource
from pactgate.upstreams.http.client import MAX_BODY_BYTES, HttpClient
from pactgate.upstreams.http.event_stream import EventStreamReader
from pactgate.upstreams.http.pool import connection_closed
from pactgate.upstreams.http.proxy import DIRECT, NetworkSettings
from pactgate.upstreams.http.refusals import (
    ACCEPT_BOTH,
    ACCEPT_EVENTS,
    JSON_CONTENT,
    ConfiguredHeaders,
    invalid_response,
    status_failure,
)
from pactgate.upstreams.http.request_message import HttpTarget, header_line
from pactgate.upstreams.http.response import HttpResponse

_VERSION_HEADER_SINCE: Final = "2025-06-18"


class HttpSseChannel:
    """One server behind the URL of its event stream."""

    closing_cancels = False
    answers_in_send = False

    def __init__(
        self,
        server: str,
        url: str,
        headers: Mapping[str, str],
        client: HttpClient,
        emit: Emit,
        *,
        max_frame_bytes: int = MAX_BODY_BYTES,
        tap: ConnectionRecorder | None = None,
        network: NetworkSettings = DIRECT,
        grant: TokenSource | None = None,
    ) -> None:
        """`emit` is unused: all channels have the same parameters."""
        self._target = HttpTarget(server, url, network=network)
        self._endpoint: HttpTarget | None = None
        self._own = ConfiguredHeaders(server, headers)
        self._grant = grant
        self._client = client
        self._max_bytes = max_frame_bytes
        self._tap = tap
        self._receiver: Receiver | None = None
        self._is_lost = False
        self._sign_in("" if grant is None else grant.token)
        self._reader: asyncio.Task[None] | None = None

    async def open(self, receiver: Receiver) -> None:
        """Open the stream and wait for its first event, which has the address for messages."""
        response = await self._get_stream()
        grant = self._grant
        if response.status == 401 and grant and grant.answers(self._token, response.header(b"www-authenticate")):
            await grant.renew(self._token)
            self._sign_in(grant.token)
            response = await self._get_stream()
        if response.stream is None:
            raise self._not_offered(response)
        with ExitStack() as ending:
            events = ending.enter_context(EventStreamReader(response.stream, self._target, self._max_bytes))
            self._endpoint = await self._read_endpoint(events)
            ending.pop_all()
        self._receiver = receiver
        self._reader = asyncio.get_running_loop().create_task(self._read(events))

    async def _get_stream(self) -> HttpResponse:
        head = ACCEPT_EVENTS + self._own.block
        return await self._client.request(b"GET", self._target, head, max_body_bytes=self._max_bytes)

    def _sign_in(self, token: str) -> None:
        self._token = token
        self._own.sign_in(token)
        self._head = JSON_CONTENT + ACCEPT_BOTH + self._own.block

    def settle(self, era: Era, version: str) -> None:
        if version >= _VERSION_HEADER_SINCE:
            self._head = JSON_CONTENT + ACCEPT_BOTH + self._own.block + header_line("MCP-Protocol-Version", version)

    async def send(self, frame: Outgoing) -> None:
        """Post one frame. The response comes on the stream."""
        if self._receiver is None or self._endpoint is None:
            raise connection_closed(self._target, Verdict.DID_NOT_RUN)
        if self._tap is not None:
            self._tap.passed(frame.data, from_client=True)
        response = await self._client.request(
            b"POST", self._endpoint, self._head, frame.data, max_body_bytes=self._max_bytes
        )
        if response.stream is not None:
            response.stream.close()
        elif response.status >= 300:
            if response.status == 404:
                self._lose("no longer knows our session (HTTP 404)")
            elif response.status == 401 and self._token:
                self._lose("wants another token (HTTP 401)")  # opened again, it gets one
            raise status_failure(self._target, response, self._own)

    async def close(self) -> None:
        if self._receiver is None:
            return
        self._receiver = None
        if self._tap is not None:
            self._tap.closed()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.wait({reader})
        for target in (self._target, self._endpoint):
            if target is not None:
                self._client.abandon(target)

    async def _read_endpoint(self, events: EventStreamReader) -> HttpTarget:
        event = await events.next()
        if event is None or event.event != "endpoint":
            raise invalid_response(self._target, "did not begin its stream with an `endpoint` event")
        endpoint = self._target.resolve(event.data.decode("utf-8", "replace").strip())
        if endpoint is None:
            raise invalid_response(self._target, "named an endpoint that is not on its own origin")
        return endpoint

    async def _read(self, events: EventStreamReader) -> None:
        what = "ended its event stream"
        with events:
            try:
                while (event := await events.next()) is not None:
                    if event.event == "message" and event.data and self._receiver is not None:
                        if self._tap is not None:
                            self._tap.passed(event.data, from_client=False)
                        self._receiver.receive(event.data)
            except GatewayFailure as failure:
                what = f"broke its event stream: {failure.message}"
        self._lose(what)

    def _lose(self, what: str) -> None:
        if self._receiver is not None and not self._is_lost:
            self._is_lost = True
            self._receiver.lost(
                GatewayFailure(Kind.CONNECTION_LOST, f"{self._target} {what}.", server=self._target.server)
            )

    def _not_offered(self, response: HttpResponse) -> GatewayFailure:
        if response.status == 200:
            said = self._own.quote(response.body)
            return invalid_response(self._target, "answered HTTP 200, but not with events", said)
        return status_failure(self._target, response, self._own)
