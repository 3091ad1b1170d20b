"""A head is known again only by its exact bytes, and only for an answer that is exactly as long as it says."""

from __future__ import annotations

import pytest

from pactgate.upstreams.http.response import HttpResponse
from pactgate.upstreams.http.response_head_cache import Heads

BODY = b'{"jsonrpc":"2.0","id":1,"result":{}}'
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nKeep-Alive: timeout=7\r\n\r\n"
    % len(BODY)
)
HEADERS = {b"content-type": b"application/json", b"content-length": b"%d" % len(BODY), b"keep-alive": b"timeout=7"}


def known(data: bytes = HEAD + BODY, response: HttpResponse | None = None) -> Heads:
    heads = Heads()
    heads.note(data, response or HttpResponse(200, HEADERS, BODY))
    return heads


def test_the_same_head_says_the_same_again_with_another_body() -> None:
    other = BODY.replace(b"1", b"2")
    found = known().find(HEAD + other)
    assert found is not None
    assert (HEAD + other)[found.end :] == other
    assert (found.headers, found.hint_s) == (HEADERS, 7.0)


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
    ],
    ids=["too long", "part of a head", "less of it", "nothing", "other words", "other type"],
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
    heads = Heads()
    for number in range(2000):
        head = HEAD.replace(b"timeout=7", b"timeout=%d" % number)
        heads.note(head + BODY, HttpResponse(200, HEADERS, BODY))
    assert len(heads) <= 256


@pytest.mark.parametrize(("said", "hint_s"), [(b"timeout=5, max=100", 5.0), (b"max=3", None), (b"TIMEOUT = 12", 12.0)])
def test_how_long_a_connection_is_kept_is_read_where_it_is_said(said: bytes, hint_s: float | None) -> None:
    assert Heads.hint({b"keep-alive": said}) == hint_s
    assert Heads.hint({}) is None
