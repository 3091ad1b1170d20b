"""Streams with back-pressure, without a socket: the source writes down what it was told."""

from __future__ import annotations

import asyncio

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.response import HttpResponse, ResponseStream


class Source:
    def __init__(self) -> None:
        self.told: list[str] = []

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    def drain(self) -> None:
        self.told.append("drain")

    def abort(self) -> None:
        self.told.append("abort")


async def test_what_arrived_since_the_last_read_is_read_at_once_and_the_end_is_empty() -> None:
    stream = ResponseStream(Source())
    stream.take(b"a")
    stream.take(b"b")
    assert await stream.read() == b"ab"
    stream.take(b"c")
    stream.end(None)
    assert await stream.read() == b"c"
    assert await stream.read() == b""


async def test_a_reader_that_waits_is_woken_by_the_first_byte() -> None:
    stream = ResponseStream(Source())
    reading = asyncio.ensure_future(stream.read())
    await asyncio.sleep(0)
    stream.take(b"a")
    assert await reading == b"a"


async def test_what_arrived_before_a_break_is_read_before_the_break_is_raised() -> None:
    stream = ResponseStream(Source())
    stream.take(b"a")
    stream.end(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
    assert await stream.read() == b"a"
    with pytest.raises(GatewayFailure) as caught:
        await stream.read()
    assert caught.value.kind is Kind.CONNECTION_LOST


async def test_a_slow_reader_pauses_the_connection_once_and_resumes_it_by_reading() -> None:
    source = Source()
    stream = ResponseStream(source)
    for _ in range(6):
        stream.take(b"x" * 65536)
    assert source.told == ["pause"]
    assert len(await stream.read()) == 6 * 65536
    assert source.told == ["pause", "resume"]


async def test_a_reader_that_gives_up_leaves_the_stream_readable() -> None:
    stream = ResponseStream(Source())
    reading = asyncio.ensure_future(stream.read())
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait({reading})
    stream.take(b"a")
    assert await stream.read() == b"a"


async def test_ending_tells_the_source_unless_the_stream_has_ended_by_itself() -> None:
    source = Source()
    ResponseStream(source).close()
    ResponseStream(source).let_finish()
    assert source.told == ["abort", "drain"]
    ended = ResponseStream(source)
    ended.end(None)
    ended.close()
    ended.let_finish()
    assert source.told == ["abort", "drain"]


@pytest.mark.parametrize(
    ("said", "is_json"),
    [
        (b"application/json", True),
        (b"Application/JSON; charset=x", True),
        (b"text/html", False),
        (b"application/jsonx", False),
        (b"", False),
    ],
)
def test_json_is_known_by_its_type_without_parameters(said: bytes, is_json: bool) -> None:
    assert HttpResponse(200, {b"content-type": said}).is_json is is_json


def test_headers_are_read_as_text() -> None:
    response = HttpResponse(200, {b"retry-after": b"\xe9"})
    assert response.header(b"retry-after") == "\u00e9"
    assert response.header(b"absent") == ""
