"""Event streams: bounds, positions, and the stream that is listened to for good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol.framing import ServerEvent
from pactgate.upstreams.http.event_stream import EventStreamReader, ResumePosition, StreamedRequest, answered_id, listen
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse, ResponseStream

TARGET = HttpTarget("s", "http://h/")


class Source:
    is_closed = False

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def drain(self) -> None: ...

    def abort(self) -> None:
        self.is_closed = True


def an_event(id_: str | None = None, retry_ms: int | None = None) -> ServerEvent:
    return ServerEvent("message", b"{}", id_, retry_ms)


async def test_events_come_one_by_one_and_leaving_ends_the_stream() -> None:
    source = Source()
    stream = ResponseStream(source)
    with EventStreamReader(stream, TARGET, 100) as events:
        stream.take(b"data: 1\n\ndata: 2\n\nda")
        assert [(await _event(events)).data, (await _event(events)).data] == [b"1", b"2"]
    assert source.is_closed


async def _event(events: EventStreamReader) -> ServerEvent:
    event = await events.next()
    assert event is not None
    return event


async def test_an_event_over_the_bound_is_an_invalid_frame() -> None:
    stream = ResponseStream(Source())
    stream.take(b"data: " + b"x" * 200)
    with EventStreamReader(stream, TARGET, 100) as events, pytest.raises(GatewayFailure) as caught:
        await events.next()
    assert caught.value.kind is Kind.INVALID_FRAME


@pytest.mark.parametrize(("retry_ms", "wait_s"), [(None, 1.0), (0, 0.05), (300, 0.3), (10**12, 5.0)])
def test_the_wait_before_resuming_is_the_servers_within_bounds(retry_ms: int | None, wait_s: float) -> None:
    position = ResumePosition()
    position.note(an_event("a", retry_ms))
    position.note(an_event("b"))
    assert position.wait_s == wait_s


@given(st.text(max_size=30))
def test_an_event_id_is_sent_back_exactly_or_not_at_all(event_id: str) -> None:
    position = ResumePosition()
    position.note(an_event(event_id))
    assert position.line in (b"", f"Last-Event-ID: {event_id}\r\n".encode())
    assert position.line.count(b"\n") <= 1


def test_the_last_id_counts_and_a_long_one_is_not_sent() -> None:
    position = ResumePosition()
    assert position.line == b""
    position.note(an_event("a"))
    position.note(an_event("b"))
    position.note(an_event())
    assert position.line == b"Last-Event-ID: b\r\n"
    position.note(an_event("x" * 1025))
    assert position.line == b""


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{}}', b"7"),
        (b'{"error":{"code":1,"message":""},"id": 7 }', b"7"),
        (b'{"id":"7","result":{}}', b'"7"'),
        (b'{"id":null,"error":{}}', b"null"),
        (b'{"id":7,"method":"ping"}', None),
        (b'{"method":"notifications/message","params":{"id":7}}', None),
        (b'{"result":{"id":7}}', None),
        (b"[]", None),
        (b"{", None),
        (b"\xff", None),
    ],
)
def test_an_answer_is_told_from_everything_else(text: bytes, id_: bytes | None) -> None:
    assert answered_id(text) == id_


async def test_an_answer_from_elsewhere_ends_the_pause_and_the_stream_of_its_exchange() -> None:
    exchange, stream = StreamedRequest(1), ResponseStream(Source())
    with exchange.read(EventStreamReader(stream, TARGET, 100)) as events:
        reading = asyncio.ensure_future(events.next())
        await asyncio.sleep(0)
        stream.end(None)
        pausing = asyncio.ensure_future(exchange.pause())
        await asyncio.sleep(0)
        exchange.finish()
        async with asyncio.timeout(5):
            assert await reading is None
            await pausing
    assert exchange.is_answered


class Script:
    """What each attempt to open the stream finds; the waits between them are written down instead of waited."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found: Callable[[], EventStreamReader | HttpResponse]) -> None:
        self.found = list(found)
        self.waits: list[float] = []
        self.lines: list[bytes] = []
        self.reports: list[str] = []
        self.taken: list[bytes] = []
        monkeypatch.setattr(asyncio, "sleep", self._wait)

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def _fetch(self, position: ResumePosition) -> EventStreamReader | HttpResponse:
        self.lines.append(position.line)
        return self.found.pop(0)() if self.found else HttpResponse(405, {})

    async def run(self) -> None:
        await listen(
            self._fetch,
            lambda event: self.taken.append(event.data),
            lambda response: response.status != 405,
            lambda what, sample: self.reports.append(f"{what}: {sample}"),
        )


def stream_of(text: bytes) -> Callable[[], EventStreamReader]:
    def made() -> EventStreamReader:
        stream = ResponseStream(Source())
        stream.take(text)
        stream.end(None)
        return EventStreamReader(stream, TARGET, 1000)

    return made


def broken() -> EventStreamReader:
    raise GatewayFailure(Kind.CONNECTION_FAILED, "nobody there")


async def test_a_server_without_a_stream_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch)
    await script.run()
    assert (len(script.lines), script.waits) == (1, [])


async def test_a_stream_that_ends_is_opened_again_where_it_ended_when_the_server_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script(monkeypatch, stream_of(b"id: a\nretry: 2000\ndata: 1\n\n"), stream_of(b"id: b\ndata: 2\n\n"))
    await script.run()
    assert script.lines == [b"", b"Last-Event-ID: a\r\n", b"Last-Event-ID: b\r\n"]
    assert script.taken == [b"1", b"2"]
    assert script.waits == [2.0, 2.0]


async def test_a_server_can_not_make_us_come_back_in_a_tight_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch, *[stream_of(b"retry: 0\ndata: 1\n\n")] * 3)
    await script.run()
    assert script.waits == [1.0, 1.0, 1.0]


async def test_pauses_grow_while_nothing_comes_and_begin_anew_after_something_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing = stream_of(b"")
    script = Script(
        monkeypatch, broken, nothing, lambda: HttpResponse(503, {}), *[broken] * 5, stream_of(b"data: 1\n\n"), nothing
    )
    await script.run()
    floors = [1, 2, 4, 8, 16, 30, 30, 30, 1, 2]
    assert len(script.waits) == len(floors)
    assert all(floor <= wait <= floor * 1.5 for floor, wait in zip(floors, script.waits, strict=True))
    assert len(script.reports) == 6
    assert "nobody there" in script.reports[0]


async def test_listening_ends_when_it_is_cancelled() -> None:
    source = Source()

    async def fetch(_: ResumePosition) -> EventStreamReader:
        return EventStreamReader(ResponseStream(source), TARGET, 100)

    listening = asyncio.ensure_future(listen(fetch, lambda _: None, lambda _: False, lambda *_: None))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    listening.cancel()
    await asyncio.wait({listening})
    assert listening.cancelled()
    assert source.is_closed
