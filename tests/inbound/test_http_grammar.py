from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.inbound import http_grammar
from pactgate.inbound.http_grammar import (
    MAX_CHUNKS,
    BadRequestError,
    ChunkedBody,
    RequestHead,
    check_request_line,
    parse_head,
)


def read(raw: bytes, *, max_headers: int = 100, max_target_bytes: int = 8192) -> RequestHead:
    return parse_head(raw, max_headers=max_headers, max_target_bytes=max_target_bytes)


def head(*lines: bytes, first: bytes = b"POST /mcp HTTP/1.1") -> RequestHead:
    return read(b"\r\n".join((first, b"Host: gateway", *lines, b"", b"")))


def refusal(*lines: bytes, first: bytes = b"POST /mcp HTTP/1.1") -> int:
    with pytest.raises(BadRequestError) as caught:
        head(*lines, first=first)
    return caught.value.status


def test_a_head_is_read_with_lower_case_names_and_every_value() -> None:
    found = head(b"X-One: a", b"x-one:  b \t", b"Content-Length: 12")
    assert (found.method, found.path, found.length, found.keep_alive) == ("POST", "/mcp", 12, True)
    assert found.headers == {"host": ["gateway"], "x-one": ["a", "b"], "content-length": ["12"]}


def test_the_path_is_what_stands_before_the_query_and_is_not_decoded() -> None:
    assert head(first=b"GET /%6dcp/../x?token=1 HTTP/1.1").path == "/%6dcp/../x"


@pytest.mark.parametrize(
    ("lines", "keeps"),
    [
        ((b"POST / HTTP/1.1",), True),
        ((b"POST / HTTP/1.1", b"Connection: close"), False),
        ((b"POST / HTTP/1.1", b"Connection: x, Close"), False),
        ((b"POST / HTTP/1.0",), False),
        ((b"POST / HTTP/1.0", b"Connection: keep-alive"), True),
    ],
)
def test_a_connection_is_kept_as_the_version_and_the_client_say(lines: tuple[bytes, ...], keeps: bool) -> None:
    assert head(*lines[1:], first=lines[0]).keep_alive is keeps


@pytest.mark.parametrize(
    "lines",
    [
        (b"Content-Length: 5", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b"Content-Length: 5"),
        (b"Content-Length: 5", b"Content-Length: 5"),
        (b"Content-Length: 5, 5",),
        (b"Content-Length: +5",),
        (b"Content-Length: -5",),
        (b"Content-Length: 0x5",),
        (b"Content-Length: 5_0",),
        ("Content-Length: \u0665".encode(),),
        (b"Content-Length: ",),
        (b"Content-Length: 99999999999999999999",),
        (b"Content-Length : 5",),
        (b"Transfer-Encoding: x",),
        (b"Transfer-Encoding: x, chunked",),
        (b"Transfer-Encoding: chunked, chunked",),
        (b"Transfer-Encoding: identity",),
        (b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: \x0bchunked",),
        (b"Transfer-Encoding : chunked",),
        (b"X: a\r\n folded",),
        (b"X: a\rb",),
        (b"X: a\nY: b",),
        (b"X: a\x00b",),
        (b"X Y: a",),
        (b": a",),
        (b"no colon",),
        (b" X: a",),
    ],
)
def test_a_head_that_could_be_read_in_two_ways_is_refused(lines: tuple[bytes, ...]) -> None:
    assert refusal(*lines) == 400


def test_chunks_do_not_exist_in_http_1_0() -> None:
    assert refusal(b"Transfer-Encoding: chunked", first=b"POST /mcp HTTP/1.0") == 400


def test_a_chunked_body_has_no_length() -> None:
    assert head(b"Transfer-Encoding: Chunked").length is None


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (b"GET /", 400),
        (b"GET / HTTP/9.9", 505),
        (b"GET / HTTP/2.0", 505),
        (b"PRI * HTTP/2.0", 400),
        (b"GET  / HTTP/1.1", 400),
        (b"GET / HTTP/1.1 ", 400),
        (b"GET /a b HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"GET /\x01 HTTP/1.1", 400),
        (b"GET / http/1.1", 400),
        (b"FOO / HTTP/1.1", 405),
        (b"get / HTTP/1.1", 405),
        (b"TRACE / HTTP/1.1", 405),
        (b"CONNECT gateway:80 HTTP/1.1", 405),
        (b"OPTIONS * HTTP/1.1", 400),
        (b"GET mcp HTTP/1.1", 400),
        (b"GET http://evil.example/mcp HTTP/1.1", 400),
        (b"GET http://user@gateway/mcp HTTP/1.1", 400),
        (b"GET https://gateway/mcp HTTP/1.1", 400),
        (b"GET //gateway/mcp HTTP/1.1", 0),
        (b"GET /mcp#x HTTP/1.1", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1", 414),
    ],
)
def test_a_request_line_is_taken_in_one_spelling_only(first: bytes, status: int) -> None:
    if status:
        assert refusal(first=first) == status
    else:
        assert head(first=first).path == "//gateway/mcp"


def test_the_absolute_form_is_taken_for_the_host_that_is_named() -> None:
    assert head(first=b"GET http://Gateway/mcp?x HTTP/1.1").path == "/mcp"


def test_more_headers_than_allowed_are_refused() -> None:
    many = [b"X-%d: a" % number for number in range(99)]
    assert len(head(*many).headers) == 100
    assert refusal(*many, b"One-Too-Many: a") == 431


def test_an_offer_to_switch_protocols_is_passed_over() -> None:
    found = head(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: x", b"Content-Length: 3")
    assert found.length == 3


def test_only_the_expectation_of_a_go_ahead_is_met() -> None:
    assert head(b"Expect: 100-Continue").expects_continue
    assert refusal(b"Expect: a miracle") == 417
    assert not head(b"Expect: whatever", first=b"POST / HTTP/1.0").expects_continue


@pytest.mark.parametrize("start", [b"\x16\x03\x01\x02\x00", b"GET /\nHost", b"\x00", b"\xff\xff", b"GET /x\r\n"])
def test_a_peer_that_does_not_speak_http_is_told_before_it_has_finished(start: bytes) -> None:
    with pytest.raises(BadRequestError) as caught:
        check_request_line(bytearray(start), start, 8192)
    assert caught.value.status == 400


def test_an_unfinished_request_line_may_still_become_good() -> None:
    assert not check_request_line(bytearray(b"GET / HT"), b"GET / HT", 8192)
    assert not check_request_line(bytearray(b"GET / HTTP/1.1\r"), b"1.1\r", 8192)
    assert check_request_line(bytearray(b"GET / HTTP/1.1\r\nHo"), b"\nHo", 8192)
    with pytest.raises(BadRequestError) as caught:
        check_request_line(bytearray(b"GET /" + b"a" * 200), b"a", 100)
    assert caught.value.status == 414


def test_names_that_are_seen_for_the_first_time_are_not_remembered_without_end() -> None:
    for number in range(0, 1000, 50):
        head(*(b"X-Name-%d: a" % each for each in range(number, number + 50)))
    assert len(http_grammar._KNOWN_NAMES) <= 256
    assert head(b"X-Never-Seen: a").headers["x-never-seen"] == ["a"]


# -- chunks


def take(wire: bytes, cuts: list[int]) -> tuple[bytes, bytes] | None:
    """The body and what stood behind it, from a wire cut into pieces."""
    body = ChunkedBody(1 << 20)
    for start, end in pairwise([0, *sorted(cut % (len(wire) + 1) for cut in cuts), len(wire)]):
        rest = body.feed(wire[start:end])
        if rest is not None:
            return bytes(body.body), rest + wire[end:]
    return None


chunked = st.lists(st.binary(min_size=1, max_size=40), max_size=8)


@given(chunks=chunked, behind=st.binary(max_size=20), cuts=st.lists(st.integers(0, 1000), max_size=12))
def test_a_chunked_body_is_the_same_however_it_is_cut(chunks: list[bytes], behind: bytes, cuts: list[int]) -> None:
    wire = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n" + behind
    assert take(wire, cuts) == (b"".join(chunks), behind)


@given(wire=st.binary(max_size=60), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_the_verdict_on_chunks_does_not_depend_on_the_cuts(wire: bytes, cuts: list[int]) -> None:
    def verdict(places: list[int]) -> object:
        try:
            return take(wire, places)
        except BadRequestError:
            return "refused"

    assert verdict(cuts) == verdict([])


@pytest.mark.parametrize(
    "wire",
    [
        b"-1\r\n",
        b"0x1\r\na\r\n",
        b"1z\r\na\r\n",
        b"00000000000000000001\r\na\r\n",
        b"\r\n",
        b"1\na\n0\n\n",
        b"1 \r\na\r\n",
        b" 1\r\na\r\n",
        b"1\t;x\r\na\r\n",
        b"1;\x00\r\na\r\n",
        b"1;" + b"x" * 300 + b"\r\na\r\n",
        b"1;" + b"x" * 300,
        b"1\r\nab\r\n",
        b"1\r\na0\r\n\r\n",
        b"0\r\nTrailer: x\r\n\r\n",
        b"0\r\nx",
        b"zz",
    ],
)
def test_chunks_are_taken_in_one_spelling_only(wire: bytes) -> None:
    with pytest.raises(BadRequestError) as caught:
        ChunkedBody(1000).feed(wire)
    assert caught.value.status == 400


def test_short_chunk_extensions_are_passed_over() -> None:
    assert take(b"1;name=value\r\na\r\n0;x\r\n\r\n", []) == (b"a", b"")


def test_a_body_over_the_limit_is_refused_when_its_chunk_is_announced() -> None:
    body = ChunkedBody(10)
    assert body.feed(b"a\r\n0123456789\r\n") is None
    with pytest.raises(BadRequestError) as caught:
        body.feed(b"1\r\n")
    assert caught.value.status == 413


def test_a_body_in_too_many_chunks_is_refused() -> None:
    body = ChunkedBody(10_000_000)
    piece = b"1\r\na\r\n" * 10_000
    for _ in range(MAX_CHUNKS // 10_000):
        assert body.feed(piece) is None
    with pytest.raises(BadRequestError) as caught:
        body.feed(piece)
    assert caught.value.status == 413
