"""A head without the value of its first Content-Length is the same for every length, and nothing else of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.protocol.http_head import RepeatedHeads, split_length

START = b"HTTP/1.1 200 OK"
END = b"\r\n\r\n"
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
    rest = b"".join(b"\r\n" + line for line in after) + END
    assert split_length(b"%b%d%b" % (start, length, rest)) == (start, length, rest)


@given(st.lists(lines, max_size=6))
def test_a_head_without_a_length_in_a_usual_spelling_is_not_split(held: list[bytes]) -> None:
    assert split_length(b"\r\n".join((START, *held)) + END) is None


def test_of_two_lengths_only_the_first_is_taken_out() -> None:
    head = START + b"\r\nContent-Length: 12\r\nContent-Length: 34" + END
    assert split_length(head) == (START + b"\r\nContent-Length: ", 12, b"\r\nContent-Length: 34" + END)


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.lists(lines, max_size=3))
def test_a_head_that_differs_from_a_known_one_in_its_length_alone_is_found(
    one: int, other: int, held: list[bytes]
) -> None:
    rest = b"".join(b"\r\n" + line for line in held) + END
    heads: RepeatedHeads[str] = RepeatedHeads(4)
    first, second = (b"%b\r\nContent-Length: %d%b" % (START, length, rest) for length in (one, other))
    before, _, after = split_length(first) or (b"", 0, b"")
    heads.note(before, after, "said")
    assert heads.find(second + b"body") == ("said", b"%d" % other, len(second))
    assert heads.find(second[:-1]) is None


@pytest.mark.parametrize("digits", [b"", b"-5", b"+5", b"5 ", b" 5", b"5, 5", b"0x5", b"1234567890", "\u0665".encode()])
def test_a_known_head_with_a_doubtful_length_is_not_found(digits: bytes) -> None:
    heads: RepeatedHeads[str] = RepeatedHeads(4)
    heads.note(START + b"\r\nContent-Length: ", END, "said")
    assert heads.find(START + b"\r\nContent-Length: " + digits + END) is None


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
    assert split_length(head + END) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(head: bytes) -> None:
    split = split_length(head)
    assert split is None or len(split[0] + split[2]) < len(head)
