from __future__ import annotations

import gc
from contextlib import suppress
from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.inbound.http_grammar import BadRequestError, RequestHead
from pactgate.inbound.request_reader import Ready, RequestHeadCache, RequestReader
from pactgate.inbound.server_limits import ServerLimits

LIMITS = ServerLimits(max_connections=1, max_head_bytes=1024, max_request_bytes=1000)
WITH_LENGTH = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
WITH_CHUNKS = b"POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
WITHOUT_BODY = b"GET /c HTTP/1.1\r\nHost: x\r\n\r\n"


def read_all(wire: bytes, cuts: list[int]) -> list[tuple[str, bytes]]:
    """Every request of a wire that is cut into pieces, in order."""
    reader = RequestReader(LIMITS, RequestHeadCache())
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
    with suppress(BadRequestError):
        assert RequestReader(LIMITS, RequestHeadCache()).feed(noise) is None


def test_one_empty_line_before_a_request_is_passed_over() -> None:
    assert read_all(b"\r\n" + WITH_LENGTH + b"\r\n" + WITHOUT_BODY, []) == [("/a", b"hello"), ("/c", b"")]


def status_of(*pieces: bytes) -> int:
    reader = RequestReader(LIMITS, RequestHeadCache())
    *firsts, last = pieces
    for piece in firsts:
        assert reader.feed(piece) is None
    with pytest.raises(BadRequestError) as caught:
        reader.feed(last)
    return caught.value.status


def test_a_head_over_the_limit_is_refused_before_and_at_its_end() -> None:
    start = b"GET / HTTP/1.1\r\n"
    assert status_of(start, b"X: " + b"a" * 2000) == 431
    assert status_of(start + b"X: " + b"a" * 2000 + b"\r\n\r\n") == 431


def test_bare_line_feeds_are_refused_wherever_the_pieces_end() -> None:
    assert status_of(b"GET / HTTP/1.1\nHost: x\n\n") == 400
    assert status_of(b"GET / HTTP/1.1\r\nHost: x", b"\n") == 400
    reader = RequestReader(LIMITS, RequestHeadCache())
    assert reader.feed(b"GET / HTTP/1.1\r\nHost: x\r") is None
    assert reader.feed(b"\n") is None
    assert reader.feed(b"\r\n") is not None


def test_a_body_that_is_announced_too_long_is_refused_before_it_comes() -> None:
    assert status_of(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n") == 413


def test_what_has_come_of_a_body_is_counted() -> None:
    reader = RequestReader(LIMITS, RequestHeadCache())
    reader.feed(WITH_CHUNKS[:-10])
    assert reader.head is not None
    assert reader.received_bytes == len(b"he"), "chunk lines are no progress"


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
        ours = RequestReader(LIMITS, RequestHeadCache()).feed(wire)
    except BadRequestError:
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
        assert isinstance(head, h11.Request)
        assert (ours.body, ours.rest, ours.head.path.encode()) == (read, other.trailing_data[0], head.target)


# -- heads that were read before


def head_with(*lines: bytes) -> bytes:
    return b"\r\n".join((b"POST /a HTTP/1.1", b"Host: x", *lines, b"", b""))


def read(heads: RequestHeadCache, wire: bytes) -> Ready:
    ready = RequestReader(LIMITS, heads).feed(wire)
    assert ready is not None
    return ready


def test_a_known_head_with_another_length_gives_the_body_of_that_length() -> None:
    heads = RequestHeadCache()
    first = read(heads, head_with(b"Content-Length: 5", b"X: y") + b"hello")
    for body in (b"", b"hi", b"hello", b"longer than the first"):
        ready = read(heads, head_with(b"Content-Length: %d" % len(body), b"X: y") + body + WITHOUT_BODY)
        assert ready.head is first.head
        assert (ready.body, ready.rest) == (body, WITHOUT_BODY)


def test_the_body_behind_a_known_head_may_come_in_pieces() -> None:
    heads = RequestHeadCache()
    read(heads, WITH_LENGTH)
    reader = RequestReader(LIMITS, heads)
    for piece in (b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Le", b"ngth: 7\r\n\r\nsev", b"en"):
        assert reader.feed(piece) is None
    ready = reader.feed(b"th")
    assert ready is not None
    assert (ready.body, ready.rest) == (b"seventh", b"")


def test_a_known_head_does_not_lift_the_limit_on_bodies() -> None:
    heads = RequestHeadCache()
    read(heads, WITH_LENGTH)
    with pytest.raises(BadRequestError) as caught:
        RequestReader(LIMITS, heads).feed(WITH_LENGTH.replace(b": 5", b": 1001"))
    assert caught.value.status == 413


@pytest.mark.parametrize(
    "lengths",
    [
        (b"Content-Length: 5", b"Content-Length: 5"),
        (b"Content-Length: 5", b"Content-Length: 0"),
        (b"Content-Length: 0", b"content-length: 5"),
        (b"CONTENT-LENGTH: 0", b"Content-Length: 5"),
        (b"Content-Length: ", b"Content-Length: 5"),
        (b"Content-Length: 5", b"Content-Length: "),
        (b"Content-Length: 5", b"Transfer-Encoding: chunked"),
        (b"Content-Length: 5, 5",),
        (b"Content-Length: +5",),
        (b"Content-Length: 5 5",),
        (b"Content-Length: ",),
        (b" Content-Length: 5",),
    ],
)
def test_a_length_that_is_not_one_number_is_refused_whatever_was_read_before(lengths: tuple[bytes, ...]) -> None:
    heads = RequestHeadCache()
    wire = head_with(*lengths) + b"hello"
    for _ in range(2):
        for known in (b"Content-Length: 5", b"content-length: 5", b"CONTENT-LENGTH: 5"):
            assert read(heads, head_with(known) + b"hello").body == b"hello"
        with pytest.raises(BadRequestError) as caught:
            RequestReader(LIMITS, heads).feed(wire)
        assert caught.value.status == 400


@pytest.mark.parametrize(
    "changed",
    [
        WITH_LENGTH.replace(b"/a", b"/b"),
        WITH_LENGTH.replace(b"POST", b"PUT"),
        WITH_LENGTH.replace(b"HTTP/1.1", b"HTTP/1.0"),
        WITH_LENGTH.replace(b"Host: x", b"Host: y"),
        WITH_LENGTH.replace(b"Host: x", b"Host: x\r\nHost: x"),
        WITH_LENGTH.replace(b"Host: x", b"Host: x\r\nConnection: close"),
        WITH_LENGTH.replace(b"Host: x", b"Host: x\r\nExpect: 100-continue"),
        WITH_LENGTH.replace(b"Host: x", b"Host: x\r\nAuthorization: Bearer b"),
    ],
)
def test_a_head_with_anything_else_changed_is_read_anew(changed: bytes) -> None:
    heads = RequestHeadCache()
    known = read(heads, WITH_LENGTH).head
    warm, cold = read(heads, changed).head, read(RequestHeadCache(), changed).head
    assert warm is not known
    assert facts_of(warm) == facts_of(cold) != facts_of(known)


def facts_of(head: RequestHead) -> tuple[object, ...]:
    """What a head says beside the length of its body."""
    headers = {name: values for name, values in head.headers.items() if name != "content-length"}
    return head.method, head.path, headers, head.is_http10, head.keep_alive, head.expects_continue


def outcome(heads: RequestHeadCache, wire: bytes) -> object:
    reader = RequestReader(LIMITS, heads)
    try:
        ready = reader.feed(wire)
    except BadRequestError as problem:
        return problem.status, problem.reason
    if ready is None:
        return None if reader.head is None else facts_of(reader.head)
    return facts_of(ready.head), ready.body, ready.rest


@given(st.lists(st.tuples(st.lists(tricky_lines, max_size=3), tricky_bodies), max_size=6))
def test_what_was_read_before_never_changes_what_a_request_says(requests: list[tuple[list[bytes], bytes]]) -> None:
    heads = RequestHeadCache()
    for lines, body in requests:
        wire = head_with(*lines) + body
        assert outcome(heads, wire) == outcome(RequestHeadCache(), wire)


def count_of_heads() -> int:
    gc.collect()
    return sum(isinstance(each, RequestHead) for each in gc.get_objects())


def test_the_heads_that_are_kept_are_bounded_in_number_and_size() -> None:
    heads, before = RequestHeadCache(), count_of_heads()
    for number in range(2000):
        read(heads, head_with(b"X: %d" % number, b"Content-Length: 5") + b"hello")
    assert 0 < count_of_heads() - before <= 512
    limits = ServerLimits(max_connections=1)
    long = head_with(b"X: " + b"x" * 4096, b"Content-Length: 5") + b"hello"
    first, second = RequestReader(limits, heads).feed(long), RequestReader(limits, heads).feed(long)
    assert first is not None
    assert second is not None
    assert first.head is not second.head


def test_a_head_that_is_refused_is_not_kept() -> None:
    heads, before = RequestHeadCache(), count_of_heads()
    for number in range(10):
        with pytest.raises(BadRequestError):
            RequestReader(LIMITS, heads).feed(head_with(b"X: %d" % number, b"Content-Length: 5", b"Expect: x"))
    assert count_of_heads() == before
