from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.inbound.http_grammar import BadRequest
from pactgate.inbound.request_reader import RequestReader
from pactgate.inbound.server_limits import ServerLimits

LIMITS = ServerLimits(max_connections=1, max_head_bytes=1024, max_request_bytes=1000)
WITH_LENGTH = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
WITH_CHUNKS = b"POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
WITHOUT_BODY = b"GET /c HTTP/1.1\r\nHost: x\r\n\r\n"


def read_all(wire: bytes, cuts: list[int]) -> list[tuple[str, bytes]]:
    """Every request of a wire that is cut into pieces, in order."""
    reader = RequestReader(LIMITS)
    edges = [0, *sorted(cut % (len(wire) + 1) for cut in cuts), len(wire)]
    found: list[tuple[str, bytes]] = []
    for start, end in pairwise(edges):
        piece = wire[start:end]
        while piece and (ready := reader.feed(piece)):
            found.append((ready.head.path, ready.body))
            piece = ready.rest
    assert reader.is_empty
    return found


@given(
    order=st.lists(st.sampled_from([WITH_LENGTH, WITH_CHUNKS, WITHOUT_BODY]), max_size=4),
    cuts=st.lists(st.integers(0, 600), max_size=20),
)
def test_requests_are_the_same_however_their_bytes_are_cut(order: list[bytes], cuts: list[int]) -> None:
    expected = {WITH_LENGTH: ("/a", b"hello"), WITH_CHUNKS: ("/b", b"hello"), WITHOUT_BODY: ("/c", b"")}
    assert read_all(b"".join(order), cuts) == [expected[each] for each in order]


@given(st.binary(max_size=200))
def test_noise_is_refused_or_waits_for_more_but_nothing_else(noise: bytes) -> None:
    with suppress(BadRequest):
        assert RequestReader(LIMITS).feed(noise) is None


def test_one_empty_line_before_a_request_is_passed_over() -> None:
    assert read_all(b"\r\n" + WITH_LENGTH + b"\r\n" + WITHOUT_BODY, []) == [("/a", b"hello"), ("/c", b"")]


def status_of(*pieces: bytes) -> int:
    reader = RequestReader(LIMITS)
    *firsts, last = pieces
    for piece in firsts:
        assert reader.feed(piece) is None
    with pytest.raises(BadRequest) as caught:
        reader.feed(last)
    return caught.value.status


def test_a_head_over_the_limit_is_refused_before_and_at_its_end() -> None:
    start = b"GET / HTTP/1.1\r\n"
    assert status_of(start, b"X: " + b"a" * 2000) == 431
    assert status_of(start + b"X: " + b"a" * 2000 + b"\r\n\r\n") == 431


def test_bare_line_feeds_are_refused_wherever_the_pieces_end() -> None:
    assert status_of(b"GET / HTTP/1.1\nHost: x\n\n") == 400
    assert status_of(b"GET / HTTP/1.1\r\nHost: x", b"\n") == 400
    reader = RequestReader(LIMITS)
    assert reader.feed(b"GET / HTTP/1.1\r\nHost: x\r") is None
    assert reader.feed(b"\n") is None
    assert reader.feed(b"\r\n") is not None


def test_a_body_that_is_announced_too_long_is_refused_before_it_comes() -> None:
    assert status_of(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n") == 413


def test_what_has_come_of_a_body_is_counted() -> None:
    reader = RequestReader(LIMITS)
    reader.feed(WITH_CHUNKS[:-10])
    assert reader.head is not None
    assert reader.received_bytes == len(WITH_CHUNKS) - 10 - WITH_CHUNKS.index(b"\r\n\r\n") - 4


tricky_lines = st.sampled_from(
    [
        b"Content-Length: 5",
        b"Content-Length: 05",
        b"content-length:5 ",
        b"Content-Length: 0",
        b"Content-Length:\t5",
        b"Content-Length: 5\x0c",
        b"Content_Length: 9",
        b"Transfer-Encoding: chunked",
        b"transfer-encoding:\tCHUNKED ",
        b"Transfer-Encoding:\x0bchunked",
        b"Transfer-Encoding: identity",
        b"X: a",
        b"X:",
        b"X: \xff",
        b"X : a",
        b"\tX: a",
    ]
)
tricky_bodies = st.sampled_from(
    [
        b"hello",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"05;x=y\r\nhello\r\n000\r\n\r\n",
        b"0\r\n\r\n",
        b"",
        b"hellohello",
        b"5\nhello\n0\n\n",
    ]
)


@given(lines=st.lists(tricky_lines, max_size=4), body=tricky_bodies, behind=st.sampled_from([b"", WITHOUT_BODY]))
def test_another_reader_sees_the_same_request_end_at_the_same_byte(
    lines: list[bytes], body: bytes, behind: bytes
) -> None:
    wire = b"\r\n".join((b"POST /a HTTP/1.1", b"Host: x", *lines, b"", b"")) + body + behind
    try:
        ours = RequestReader(LIMITS).feed(wire)
    except BadRequest:
        return
    other = h11.Connection(h11.SERVER)
    other.receive_data(wire)
    try:
        head, read = other.next_event(), b""
        while isinstance(event := other.next_event(), h11.Data):
            read += bytes(event.data)
    except h11.RemoteProtocolError:
        return
    if ours is None:
        assert event is h11.NEED_DATA
    else:
        assert isinstance(event, h11.EndOfMessage)
        assert (ours.body, ours.rest, ours.head.path.encode()) == (read, other.trailing_data[0], head.target)
