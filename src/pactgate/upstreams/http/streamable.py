"""Streamable HTTP of both eras as a `Channel`: each frame its own POST, answered by JSON or by an event stream.

Legacy adds a session id, resumption of broken streams and one listening GET; modern mirrors the request into headers, and
closing the stream cancels. Must not: send a request twice (D6; but for one that was refused with 401 or 403 before anything of an answer
came, which proves that it did not run, once with another token), follow redirects, or pass on any header of a caller,
whose credentials are for the gateway alone (D18). What a server says reaches headers only after it was checked, so that it can't inject
others.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from msgspec import Raw

from pactgate.core.events import Emit, UpstreamNoise
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.recording import ConnectionRecorder
from pactgate.protocol import messages
from pactgate.protocol.framing import ServerEvent
from pactgate.protocol.headers import encode_value
from pactgate.protocol.messages import ErrorReply
from pactgate.protocol.versions import LATEST_MODERN, LEGACY, MODERN, Era
from pactgate.upstreams.channel import Outgoing, Receiver, TokenSource
from pactgate.upstreams.http.client import MAX_BODY_BYTES, HttpClient
from pactgate.upstreams.http.event_stream import EventStreamReader, ResumePosition, StreamedRequest, answered_id, listen
from pactgate.upstreams.http.pool import connection_closed
from pactgate.upstreams.http.proxy import DIRECT, NetworkSettings
from pactgate.upstreams.http.recording_client import RecordingClient
from pactgate.upstreams.http.refusals import (
    ACCEPT_BOTH,
    ACCEPT_EVENTS,
    JSON_CONTENT,
    ConfiguredHeaders,
    invalid_response,
    status_failure,
)
from pactgate.upstreams.http.request_message import HttpTarget, UnsafeHeaderError, header_block, header_line
from pactgate.upstreams.http.response import JSON_TYPE, HttpResponse, ResponseStream
from pactgate.upstreams.pending import in_task

_VERSION_HEADER_SINCE: Final = "2025-06-18"
_SESSION_ID: Final = re.compile(r"[\x21-\x7e]{1,1024}")
_NOT_MCP: Final = frozenset({400, 404, 405})
_KEEPS_ITS_STATUS: Final = frozenset({401, 403, 429})
"""Here the status says more than a JSON-RPC error that does not name our request."""
_WANTS_SIGN_IN: Final = frozenset({401, 403})
_RESUME_TRIES: Final = 5
_WORTH_ANOTHER_TRY: Final = frozenset({Kind.CONNECTION_FAILED, Kind.CONNECTION_LOST, Kind.CONNECT_TIMEOUT})
_MAX_KEPT_HEADS: Final = 1024
_MAX_KEPT_BYTES: Final = 512
_DELETE_S: Final = 1.0


class NotStreamableHttpError(GatewayFailure):
    """Before the era is settled: a status that says there is no such endpoint, without a JSON-RPC answer."""

    def __init__(self, target: HttpTarget, status: int) -> None:
        super().__init__(
            Kind.HTTP_STATUS,
            f"{target} answered HTTP {status}: no Streamable HTTP endpoint at that address. Check `url`.",
            server=target.server,
            verdict=Verdict.DID_NOT_RUN,
            details={"status": status},
        )
        self.status = status


class HttpChannel:
    """One server behind one URL. Nothing is dialled before the first frame; a session begins with `initialize`."""

    answers_in_send = True

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
        self.closing_cancels = False
        self._target = HttpTarget(server, url, network=network)
        self._own = ConfiguredHeaders(server, headers)
        self._client = client
        self._tap = tap
        self._requests: HttpClient | RecordingClient = client if tap is None else RecordingClient(client, tap)
        self._emit = emit
        self._max_bytes = max_frame_bytes
        self._receiver: Receiver | None = None
        self._era: Era | None = None
        self._grant = grant
        self._version_line = b""
        self._session_line = b""
        self._mirrored: dict[tuple[str, str | None], bytes] = {}
        self._sign_in("" if grant is None else grant.token)
        self._exchanges: dict[bytes, StreamedRequest] = {}
        self._is_initialized = False
        self._is_expired = False
        self._listener: asyncio.Task[None] | None = None

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def settle(self, era: Era, version: str) -> None:
        self._era = era
        self._mirrored.clear()
        self.closing_cancels = era is MODERN
        if era is MODERN or version >= _VERSION_HEADER_SINCE:
            self._version_line = header_line("MCP-Protocol-Version", version)
        self._listen_when_ready()

    async def send(self, frame: Outgoing) -> int | None:
        attempts = None
        if self._receiver is None:
            raise connection_closed(self._target, Verdict.DID_NOT_RUN)
        if self._grant is not None and self._token is not self._grant.token:
            await self._follow_grant(self._grant)
        used = self._token  # by the time of a refusal, another request may have got another one
        is_modern = self._era is MODERN or (self._era is None and frame.method == "server/discover")
        head = self._head(frame) if is_modern else self._post + self._session_line + self._version_line
        pending = self._requests.begin(b"POST", self._target, head, frame.data, self._max_bytes)
        if pending is None:
            response = await self._requests.request(
                b"POST", self._target, head, frame.data, max_body_bytes=self._max_bytes
            )
        else:
            try:
                response = await pending
            except asyncio.CancelledError:
                pending.abandon()
                raise
        if (
            response.status in _WANTS_SIGN_IN
            and self._grant is not None
            and await self._renew(self._grant, used, response)
        ):
            head = self._head(frame) if is_modern else self._post + self._session_line + self._version_line
            response, attempts = await self._send_again(self._grant, head, frame), 2
        if response.status == 200 and frame.method == "initialize":
            self._begin_session(response)
        if frame.id is None:
            self._expect_acceptance(frame, response)
        elif response.stream is not None:
            await self._follow(frame.id, self._events(response.stream), can_resume=not is_modern)
        else:
            self._take_whole(frame.id, response)
        return attempts

    async def _renew(self, grant: TokenSource, used: str, response: HttpResponse) -> bool:
        """After a 401 or 403 to a request with the token `used`: whether another one can be sent. Such a response proves that the
        request did not run."""
        await in_task()
        challenge = response.header(b"www-authenticate")
        if response.status == 401:
            if not grant.answers(used, challenge):
                return False
            await grant.renew(used)
        elif not await grant.widen(used, challenge):
            return False
        self._sign_in(grant.token)
        return True

    async def _follow_grant(self, grant: TokenSource) -> None:
        """Another token, or none any more: then nothing is sent while the server waits for a sign-in."""
        if not grant.token:
            await in_task()
            await grant.prepare()
        self._sign_in(grant.token)

    def _sign_in(self, token: str) -> None:
        """The heads of requests have the token in them, so that a call makes nothing anew."""
        self._token = token
        self._own.sign_in(token)
        self._post = JSON_CONTENT + ACCEPT_BOTH + self._own.block
        self._mirrored.clear()

    async def _send_again(self, grant: TokenSource, head: bytes, frame: Outgoing) -> HttpResponse:
        """Once more, with another token: the first time the server refused the request unread. There is no third time."""
        try:
            response = await self._requests.request(
                b"POST", self._target, head, frame.data, max_body_bytes=self._max_bytes
            )
            if response.status == 401:
                raise grant.refused()
        except GatewayFailure as failure:
            failure.attempts = 2
            raise
        return response

    async def close(self) -> None:
        if self._receiver is None:
            return
        self._receiver = None
        self._client.abandon(self._target)
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.cancel()
            await asyncio.wait({listener})
        if self._session_line and not self._is_expired:
            await self._end_session()
        if self._tap is not None:
            self._tap.closed()

    # What a request carries.

    def _head(self, frame: Outgoing) -> bytes:
        """The head of a modern request."""
        head = self._mirrored.get((frame.method, frame.name))
        if head is None:
            head = self._mirror(frame)
        if not frame.headers:
            return head
        try:
            return head + header_block(frame.headers)
        except UnsafeHeaderError as problem:
            raise self._unsendable(problem) from problem

    def _mirror(self, frame: Outgoing) -> bytes:
        """The head of a modern request but for its parameters; kept, because few tools are called often."""
        pairs = [("Mcp-Method", frame.method)] if frame.method else []
        if frame.name is not None:
            pairs.append(("Mcp-Name", encode_value(frame.name)))
        try:
            lines = header_block(pairs)
        except UnsafeHeaderError as problem:
            raise self._unsendable(problem) from problem
        if self._era is None:
            return self._post + header_line("MCP-Protocol-Version", LATEST_MODERN) + lines
        head = self._post + self._version_line + lines
        if len(lines) <= _MAX_KEPT_BYTES:
            if len(self._mirrored) >= _MAX_KEPT_HEADS:
                self._mirrored.clear()
            self._mirrored[frame.method, frame.name] = head
        return head

    def _unsendable(self, problem: UnsafeHeaderError) -> GatewayFailure:
        return GatewayFailure(
            Kind.INVALID_REQUEST, f"This can't be sent to {self._target}: {problem}.", server=self._target.server
        )

    # What an exchange brings.

    def _deliver(self, text: bytes, for_request: int | None = None) -> None:
        if self._receiver is not None:
            self._receiver.receive(text, for_request)

    def _expect_acceptance(self, frame: Outgoing, response: HttpResponse) -> None:
        if response.stream is not None:
            response.stream.let_finish()
        elif response.status >= 300:
            raise self._refused(response)
        if frame.method == "notifications/initialized":
            self._is_initialized = True
            self._listen_when_ready()

    def _take_whole(self, id_: int, response: HttpResponse) -> None:
        """An answer that is no stream."""
        if response.status == 200:
            if response.headers.get(b"content-type") != JSON_TYPE and not response.is_json:
                said = self._own.quote(response.body)
                raise invalid_response(self._target, "answered HTTP 200, but not with JSON", said)
            if not response.body:
                raise invalid_response(self._target, "answered HTTP 200 with nothing in it")
            if self._receiver is not None:
                self._receiver.receive(response.body)
        elif response.status < 300:
            raise invalid_response(self._target, f"accepted a request without answering it (HTTP {response.status})")
        else:
            self._take_refusal(id_, response)

    def _take_refusal(self, id_: int, response: HttpResponse) -> None:
        """A JSON-RPC error is an answer whatever the status; what does not name our request still answers this exchange."""
        status = response.status
        error = messages.decode_from_upstream(response.body) if response.body[:1] == b"{" else None
        if not isinstance(error, ErrorReply):
            if self._era is None and status in _NOT_MCP:
                raise NotStreamableHttpError(self._target, status)
            raise self._refused(response)
        if error.key == id_ and status != 401:
            self._deliver(response.body)
        elif status >= 500 or status in _KEEPS_ITS_STATUS or self._has_expired(status):
            raise self._refused(response)
        else:
            data = None if error.data is None else Raw(error.data)
            self._deliver(messages.encode_error(b"%d" % id_, error.code, error.message, data))

    def _has_expired(self, status: int) -> bool:
        return status == 404 and bool(self._session_line) and self._era is LEGACY

    def _refused(self, response: HttpResponse) -> GatewayFailure:
        if not self._has_expired(response.status):
            return status_failure(self._target, response, self._own)
        if self._receiver is not None and not self._is_expired:
            self._is_expired = True
            self._receiver.lost(self._expired(None))
        return self._expired(Verdict.DID_NOT_RUN)

    def _expired(self, verdict: Verdict | None) -> GatewayFailure:
        return GatewayFailure(
            Kind.CONNECTION_LOST,
            f"{self._target} no longer knows our session (HTTP 404); it is opened again.",
            server=self._target.server,
            verdict=verdict,
            details={"status": 404},
        )

    # Event streams.

    async def _follow(self, id_: int, events: EventStreamReader, *, can_resume: bool) -> None:
        """Pass on what the stream brings until the answer has come; take a broken legacy stream up again."""
        key = b"%d" % id_
        exchange = self._exchanges[key] = StreamedRequest(id_)
        try:
            await self._read(exchange, events)
            while not exchange.is_answered:
                if not can_resume or not exchange.position.line:
                    raise self._cut_off("ended its stream before the answer")
                await self._resume(exchange)
        finally:
            self._exchanges.pop(key, None)

    async def _read(self, exchange: StreamedRequest, events: EventStreamReader) -> None:
        with exchange.read(events):
            while not exchange.is_answered and (event := await self._next_or_broken(events)) is not None:
                exchange.position.note(event)
                self._pass_on(event, exchange.id)

    async def _next_or_broken(self, events: EventStreamReader) -> ServerEvent | None:
        """A reset ends a stream as an orderly end does: what matters is whether the answer came."""
        try:
            return await events.next()
        except GatewayFailure as failure:
            if failure.kind is Kind.CONNECTION_LOST and self._receiver is not None:
                return None
            raise

    def _pass_on(self, event: ServerEvent, for_request: int | None = None) -> None:
        if not event.data or event.event != "message":
            return
        self._deliver(event.data, for_request)
        if self._exchanges:
            answered = self._exchanges.get(answered_id(event.data) or b"")
            if answered is not None:
                answered.finish()

    async def _resume(self, exchange: StreamedRequest) -> None:
        """One more try; it counts until an event comes."""
        what = "ended its stream before the answer"
        if exchange.position.tries >= _RESUME_TRIES:
            raise self._cut_off(f"{what} and did not resume it in {_RESUME_TRIES} tries")
        exchange.position.tries += 1
        await exchange.pause()
        if exchange.is_answered:
            return
        try:
            found = await self._fetch_events(exchange.position)
        except GatewayFailure as failure:
            if failure.kind not in _WORTH_ANOTHER_TRY:
                raise
            return
        if isinstance(found, EventStreamReader):
            await self._read(exchange, found)
        elif found.status < 500:
            raise self._cut_off(f"{what} and does not resume it (HTTP {found.status})")

    async def _fetch_events(self, position: ResumePosition) -> EventStreamReader | HttpResponse:
        head = ACCEPT_EVENTS + self._own.block + self._session_line + self._version_line + position.line
        response = await self._requests.request(b"GET", self._target, head, max_body_bytes=self._max_bytes)
        return response if response.stream is None else self._events(response.stream)

    def _events(self, stream: ResponseStream) -> EventStreamReader:
        return EventStreamReader(stream, self._target, self._max_bytes)

    def _cut_off(self, what: str) -> GatewayFailure:
        return GatewayFailure(Kind.CONNECTION_LOST, f"{self._target} {what}.", server=self._target.server)

    # Legacy sessions.

    def _begin_session(self, response: HttpResponse) -> None:
        session_id = response.header(b"mcp-session-id")
        if not session_id:
            return
        if not _SESSION_ID.fullmatch(session_id):
            if response.stream is not None:
                response.stream.close()
            raise invalid_response(
                self._target, "gave a session id that can't be sent back; it must be visible ASCII, at most 1024"
            )
        self._session_line = f"Mcp-Session-Id: {session_id}\r\n".encode("ascii")

    async def _end_session(self) -> None:
        """A courtesy on a target of its own, since everything else of this channel is already ended."""
        target = HttpTarget(self._target.server, self._target.url, network=self._target.network)
        try:
            async with asyncio.timeout(_DELETE_S):
                head = self._own.block + self._session_line + self._version_line
                response = await self._requests.request(b"DELETE", target, head)
            if response.stream is not None:
                response.stream.close()
            elif response.status >= 300 and response.status not in (404, 405):
                self._noise("refused the end of its session", f"HTTP {response.status}")
        except GatewayFailure as failure:
            self._noise("could not be told the end of its session", failure.message)
        except TimeoutError:
            self._noise("could not be told the end of its session", f"no answer within {_DELETE_S:g} s")

    def _listen_when_ready(self) -> None:
        if self._era is LEGACY and self._is_initialized and self._listener is None and self._receiver is not None:
            listening = listen(self._fetch_events, self._pass_on, self._may_listen_later, self._noise)
            self._listener = asyncio.get_running_loop().create_task(listening)

    @property
    def is_listening(self) -> bool:
        """Whether the stream for what belongs to no request is open, or being opened."""
        return self._listener is not None and not self._listener.done()

    def _may_listen_later(self, response: HttpResponse) -> bool:
        """The listener got no stream: may it ask again later?"""
        status = response.status
        if self._has_expired(status):
            self._refused(response)
        elif status != 405 and status != 429 and status < 500:
            self._noise("offers no stream for its own messages", f"HTTP {status}")
        return status >= 500 or status == 429

    def _noise(self, what: str, sample: str) -> None:
        self._emit(UpstreamNoise(self._target.server, what, sample))
