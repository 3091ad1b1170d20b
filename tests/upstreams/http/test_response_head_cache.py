"""A head is known again by its bytes but for its length, and says with every length what the parser would say."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.client_connection import ClientConnection
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse, PendingResponse
from pactgate.upstreams.http.response_head_cache import ResponseHeadCache, keep_alive_s

BODY = b'{"jsonrpc":"2.0","id":1,"result":{}}'
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nKeep-Alive: timeout=7\r\n\r\n"
    % len(BODY)
)
HEADERS = {b"content-type": b"application/json", b"content-length": b"%d" % len(BODY), b"keep-alive": b"timeout=7"}


def known(data: bytes = HEAD + BODY, response: HttpResponse | None = None) -> ResponseHeadCache:
    heads = ResponseHeadCache()
    heads.note(data, response or HttpResponse(200, HEADERS, BODY))
    return heads


def test_the_same_head_says_the_same_again_with_another_body() -> None:
    other = BODY.replace(b"1", b"2")
    found = known().find(HEAD + other)
    assert found is not None
    assert (HEAD + other)[found.end :] == other
    assert found.length == len(other)
    assert (found.headers, found.keep_alive_s) == (HEADERS, 7.0)


@pytest.mark.parametrize("length", [0, 1, 7, 123_456, 999_999_999])
def test_the_same_head_with_another_length_says_that_length(length: int) -> None:
    head = HEAD.replace(b"%d" % len(BODY), b"%d" % length)
    found = known().find(head)
    assert found is not None
    assert (found.end, found.length) == (len(head), length)
    assert found.headers == {**HEADERS, b"content-length": b"%d" % length}


def test_what_a_reader_does_to_the_headers_it_was_given_is_not_remembered() -> None:
    heads = known()
    found = heads.find(HEAD + BODY)
    assert found is not None
    found.headers.clear()
    again = heads.find(HEAD + BODY)
    assert again is not None
    assert again.headers == HEADERS


@pytest.mark.parametrize("count", [0, 1, len(BODY) - 1])
def test_a_known_head_is_found_before_all_of_its_body_is_there(count: int) -> None:
    assert known().find(HEAD + BODY[:count]) is not None


@pytest.mark.parametrize(
    "data",
    [
        HEAD + BODY + b"x",
        HEAD[:-1],
        HEAD[:-3],
        b"",
        HEAD.replace(b"200 OK", b"200 Ok") + BODY,
        HEAD.replace(b"json", b"xml") + BODY,
        HEAD.replace(b"Content-Length", b"Content-length") + BODY,
        HEAD.replace(b"Content-Length: ", b"Content-Length:") + BODY,
        HEAD.replace(b"Keep-Alive", b"Content-Length: 36\r\nKeep-Alive") + BODY,
        HEAD.replace(b"Keep-Alive", b"Transfer-Encoding: chunked\r\nKeep-Alive") + BODY,
        HEAD.replace(b"timeout=7", b"timeout=8") + BODY,
        HEAD.replace(b"Content-Length: 36", b"Content-Length: ") + BODY,
        HEAD.replace(b"Content-Length: 36", b"Content-Length: -36") + BODY,
    ],
    ids=[
        *("too long", "part of a head", "less of it", "nothing", "other words", "other type", "other case"),
        *("no space", "two lengths", "chunks", "other header", "empty length", "negative length"),
    ],
)
def test_anything_else_is_left_to_the_parser(data: bytes) -> None:
    assert known().find(data) is None


@pytest.mark.parametrize(
    ("data", "response"),
    [
        (HEAD + BODY, HttpResponse(201, HEADERS, BODY)),
        (HEAD + BODY, HttpResponse(200, {**HEADERS, b"transfer-encoding": b"chunked"}, BODY)),
        (HEAD + BODY, HttpResponse(200, {**HEADERS, b"content-encoding": b"gzip"}, BODY)),
        (HEAD + BODY, HttpResponse(200, {**HEADERS, b"content-type": b"text/event-stream"}, BODY)),
        (HEAD + BODY, HttpResponse(200, {b"content-type": b"application/json"}, BODY)),
        (HEAD + BODY, HttpResponse(200, {**HEADERS, b"content-length": b"+36"}, BODY)),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + BODY, HttpResponse(200, HEADERS, BODY)),
        (HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + BODY, HttpResponse(200, HEADERS, BODY)),
        (BODY, HttpResponse(200, HEADERS, BODY)),
        (HEAD.replace(b"\r\n\r\n", b"\r\nX: %b\r\n\r\n" % (b"x" * 2000)) + BODY, HttpResponse(200, HEADERS, BODY)),
    ],
    ids=[
        "other status",
        "chunks",
        "encoded",
        "events",
        "no length",
        "odd length",
        "interim answer",
        "HTTP/1.0",
        "a part only",
        "long",
    ],
)
def test_only_whole_plain_answers_are_noted(data: bytes, response: HttpResponse) -> None:
    heads = known(data, response)
    assert heads.find(data) is None


def test_the_head_of_an_answer_in_pieces_is_noted_by_its_first() -> None:
    assert known(HEAD + BODY[:5]).find(HEAD + BODY) is not None
    assert known(HEAD).find(HEAD + BODY) is not None
    assert known(HEAD + b"other").find(HEAD + BODY) is None


def test_a_server_that_never_says_the_same_twice_does_not_fill_the_memory() -> None:
    heads = ResponseHeadCache()
    for number in range(2000):
        head = HEAD.replace(b"timeout=7", b"timeout=%d" % number)
        heads.note(head + BODY, HttpResponse(200, HEADERS, BODY))
    assert len(heads) <= 256


@pytest.mark.parametrize(("said", "hint_s"), [(b"timeout=5, max=100", 5.0), (b"max=3", None), (b"TIMEOUT = 12", 12.0)])
def test_how_long_a_connection_is_kept_is_read_where_it_is_said(said: bytes, hint_s: float | None) -> None:
    assert keep_alive_s({b"keep-alive": said}) == hint_s
    assert keep_alive_s({}) is None


# A memoised head and the parser


class Wire:
    """The transport of a connection that has no socket."""

    def __init__(self) -> None:
        self.is_aborted = False

    def get_extra_info(self, name: str) -> None:
        return None

    def write(self, data: bytes) -> None:
        return

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


async def outcome(heads: ResponseHeadCache, pieces: list[bytes], max_body_bytes: int = 1000) -> dict[str, Any]:
    """All that can be seen of one exchange whose answer comes in these pieces, after which the connection ends."""
    freed: list[ClientConnection] = []
    connection = ClientConnection(HttpTarget("s", "http://h/"), freed.append, lambda _: None, heads)
    wire = Wire()
    connection.connection_made(wire)  # type: ignore[arg-type]
    pending = PendingResponse(loop=asyncio.get_running_loop())
    connection.begin(pending, connection.target, b"", max_body_bytes)
    for piece in pieces:
        if not wire.is_aborted:
            connection.data_received(piece)
    seen: dict[str, Any] = {
        "free": len(freed),
        "aborted": wire.is_aborted,
        "hint_s": connection.hint_s if freed else None,
    }
    connection.connection_lost(None)
    try:
        response = pending.result()
    except GatewayFailure as failure:
        return seen | {"failure": (failure.kind, failure.message)}
    return seen | {"response": (response.status, response.headers, response.body, response.stream)}


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(data) + 1) for place in places} - {0, len(data)}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


EXTRA = [
    *(b"Keep-Alive: timeout=7", b"Server: x", b"X-Content-Length: 9", b"connection: keep-alive", b"Connection: close"),
    *(b"Set-Cookie: a", b"Content-Encoding: identity", b"Content-Encoding: gzip", b"Transfer-Encoding: chunked"),
    *(b"Content-Length: 3", b"CONTENT-LENGTH: 3", b"X: \xff"),
]
STARTS = [b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK", b"HTTP/1.1 200 ", b"HTTP/1.0 200 OK", b"HTTP/1.1 201 Created"]
KINDS = [b"Content-Type: application/json", b"Content-Type: application/json; charset=utf-8", b"Content-Type: text/x"]


@given(
    start=st.sampled_from(STARTS),
    kind=st.sampled_from(KINDS),
    name=st.sampled_from([b"Content-Length", b"content-length"]),
    extra=st.lists(st.sampled_from(EXTRA), max_size=3),
    is_last=st.booleans(),
    bodies=st.tuples(st.binary(max_size=40), st.binary(max_size=40)),
    short_by=st.sampled_from([0, 0, 0, 1, -1, -5]),
    places=st.lists(st.integers(0, 400), max_size=4),
    is_cut_in_the_body=st.booleans(),
    max_body_bytes=st.sampled_from([1000, 1000, 20]),
)
def test_a_memoised_head_says_what_the_parser_says_for_any_length_in_any_cut(
    start: bytes,
    kind: bytes,
    name: bytes,
    extra: list[bytes],
    is_last: bool,
    bodies: tuple[bytes, bytes],
    short_by: int,
    places: list[int],
    is_cut_in_the_body: bool,
    max_body_bytes: int,
) -> None:
    def text(body: bytes, length: int) -> tuple[bytes, bytes]:
        stated = b"%b: %d" % (name, length)
        lines = [start, kind, *extra, stated] if is_last else [start, stated, kind, *extra]
        return b"\r\n".join(lines) + b"\r\n\r\n", body

    async def play() -> None:
        first, second = bodies
        heads = ResponseHeadCache()
        await outcome(heads, [b"".join(text(first, len(first)))])
        head, body = text(second, max(0, len(second) + short_by))
        pieces = [head, *cut(body, places)] if is_cut_in_the_body else cut(head + body, places)
        expected = await outcome(ResponseHeadCache(), [piece for piece in pieces if piece], max_body_bytes)
        assert await outcome(heads, [piece for piece in pieces if piece], max_body_bytes) == expected

    asyncio.run(play())


def test_the_usual_head_is_memoised_and_then_not_parsed() -> None:
    """So that the test above shows something."""

    async def play() -> None:
        heads = ResponseHeadCache()
        await outcome(heads, [HEAD + BODY])
        assert len(heads) == 1
        again = await outcome(heads, [HEAD.replace(b"36", b"2"), b"{", b"}"])
        assert again["response"] == (200, {**HEADERS, b"content-length": b"2"}, b"{}", None)
        assert (again["free"], again["aborted"], again["hint_s"]) == (1, False, 7.0)
        assert len(heads) == 1

    asyncio.run(play())
