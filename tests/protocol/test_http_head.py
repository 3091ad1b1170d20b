"""A head without the value of its first Content-Length is the same for every length, and nothing else of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.protocol.http_head import split_length

START = b"HTTP/1.1 200 OK"
lines = st.sampled_from(
    [
        b"Content-Type: application/json",
        b"X-Content-Length: 7",
        b"X: Content-Length: 7",
        b"Content-Lengths: 7",
        b"content-length:7",
        b"CONTENT-LENGTH: 7",
        b"Content-Length: 07x",
        b"Content-Length: ",
        b"Content-Length: +7",
        b"Content-Length : 7",
        b"Server: \xff",
        b"",
    ]
)
names = st.sampled_from([b"Content-Length", b"content-length", b"Content-length", b"content-Length"])


@given(st.lists(lines, max_size=4), names, st.integers(0, 10**9 - 1), st.lists(lines, max_size=4))
def test_exactly_the_value_of_the_first_content_length_is_taken_out(
    before: list[bytes], name: bytes, length: int, after: list[bytes]
) -> None:
    start = b"\r\n".join((START, *before, name + b": "))
    rest = b"".join(b"\r\n" + line for line in after)
    assert split_length(b"%b%d%b" % (start, length, rest)) == (start + rest, length)


@given(st.lists(lines, max_size=6))
def test_a_head_without_a_length_in_a_usual_spelling_is_not_split(held: list[bytes]) -> None:
    assert split_length(b"\r\n".join((START, *held))) is None


def test_of_two_lengths_only_the_first_is_taken_out() -> None:
    head = START + b"\r\nContent-Length: 12\r\nContent-Length: 34"
    assert split_length(head) == (START + b"\r\nContent-Length: \r\nContent-Length: 34", 12)


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.lists(lines, max_size=3))
def test_heads_that_differ_in_their_length_alone_are_the_same_without_it(
    one: int, other: int, held: list[bytes]
) -> None:
    rest = b"".join(b"\r\n" + line for line in held)
    first, second = (split_length(b"%b\r\nContent-Length: %d%b" % (START, length, rest)) for length in (one, other))
    assert first is not None
    assert second is not None
    assert first[0] == second[0]
    assert (first[1], second[1]) == (one, other)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"Content-Length: 5",
        START + b"\nContent-Length: 5",
        START + b"\r\nContent-Length: 5\nX: 1",
        START + b"\r\nContent-Length: 1234567890",
        START + b"\r\nContent-Length: -5",
        START + b"\r\nContent-Length: 5 ",
        START + b"\r\nContent-Length: 5, 5",
        START + b"\r\nContent-Length: 0x5",
        START + b"\r\nContent-Length:\t5",
        START + b"\r\n Content-Length: 5",
        START + "\r\nContent-Length: \u0665".encode(),
    ],
)
def test_a_length_in_any_doubtful_spelling_is_left_to_the_parser(head: bytes) -> None:
    assert split_length(head) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(head: bytes) -> None:
    split = split_length(head)
    assert split is None or len(split[0]) < len(head)
