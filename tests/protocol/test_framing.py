"""Frames come out whole and in order however the bytes were cut, and none larger than the bound is ever kept."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.protocol.framing import KEEPALIVE, EventDecoder, LineDecoder, OversizedError, ServerEvent, encode_event
from tests.support.each import each

LIMIT = 1000


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(marks)]


def lines_of(pieces: list[bytes], limit: int = LIMIT) -> list[bytes]:
    decoder = LineDecoder(limit)
    return [line for piece in pieces for line in decoder.feed(piece)]


def events_of(pieces: list[bytes], limit: int = LIMIT) -> list[ServerEvent]:
    decoder = EventDecoder(limit)
    return [event for piece in pieces for event in decoder.feed(piece)]


def message(data: bytes, id_: str | None = None, event: str = "message", retry_ms: int | None = None) -> ServerEvent:
    return ServerEvent(event, data, id_, retry_ms)


places = st.lists(st.integers(0, 10_000), max_size=30)

# Lines

lines = st.lists(st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b"")), max_size=8)


@given(lines, places, st.sampled_from([b"\n", b"\r\n"]))
def test_lines_come_out_whole_wherever_the_stream_is_cut(sent: list[bytes], places: list[int], ending: bytes) -> None:
    stream = b"".join(line + ending for line in sent)
    expected = [line.strip(b" \t\r") for line in sent if line.strip(b" \t\r")]
    assert lines_of(cut(stream, places)) == expected
    assert lines_of([stream]) == expected
    assert lines_of([bytes([byte]) for byte in stream]) == expected


def test_blank_lines_are_skipped_and_an_unfinished_line_waits() -> None:
    decoder = LineDecoder(LIMIT)
    assert decoder.feed(b"\n\r\n  \t\n") == []
    assert decoder.feed(b"") == []
    assert decoder.feed(b'{"a"') == []
    assert decoder.feed(b":1}\r") == []
    assert decoder.feed(b"\n[]\n{") == [b'{"a":1}', b"[]"]
    assert decoder.feed(b"}\n") == [b"{}"]


def test_a_line_of_exactly_the_bound_passes_and_one_byte_more_does_not() -> None:
    assert lines_of([b"a" * 10 + b"\n"], 10) == [b"a" * 10]
    assert lines_of([b"a" * 5, b"a" * 5, b"\n"], 10) == [b"a" * 10]
    for pieces in ([b"a" * 11 + b"\n"], [b"a" * 11], [b"a" * 10, b"a"], [b"a" * 10, b"a\n"], [b"b\n" + b"a" * 11]):
        with pytest.raises(OversizedError) as refused:
            lines_of(pieces, 10)
        assert refused.value.limit_bytes == 10


@pytest.mark.parametrize("decoder", [LineDecoder(1_000_000), EventDecoder(1_000_000)])
def test_a_decoder_that_refused_a_frame_holds_nothing_of_it(decoder: LineDecoder | EventDecoder) -> None:
    """Its holder may wait for the garbage collector."""
    tracemalloc.start()
    try:
        with pytest.raises(OversizedError):
            list(map(decoder.feed, [b"data: " + b"x" * 100_000] * 20))
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()


def test_an_endless_line_is_refused_before_it_is_kept() -> None:
    decoder = LineDecoder(LIMIT)
    for _ in range(LIMIT // 100):
        assert decoder.feed(b"x" * 100) == []
    with pytest.raises(OversizedError):
        decoder.feed(b"x")


# Events


@each(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [message(b"a")]),
        (b"data:a\n\n", [message(b"a")]),
        (b"data:  a\n\n", [message(b" a")]),
        (b"data\n\n", [message(b"")]),
        (b"data:\n\n", [message(b"")]),
        (b"data: a\ndata: b\ndata\n\n", [message(b"a\nb\n")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [message(b"a", event="x"), message(b"b")]),
        (b"event:\ndata: a\n\n", [message(b"a")]),
        (b"id: 1\ndata: a\n\ndata: b\n\n", [message(b"a", "1"), message(b"b")]),
        (b"id: 1\ndata:\n\n", [message(b"", "1")]),
        (b"id: 1\n\n", [message(b"", "1")]),
        (b"id\ndata: a\n\n", [message(b"a", "")]),
        (b"id: a\x00b\ndata: a\n\n", [message(b"a")]),
        (b"retry: 1500\n\n", [message(b"", retry_ms=1500)]),
        (b"retry: 1500\ndata: a\n\n", [message(b"a", retry_ms=1500)]),
        (b"retry: soon\ndata: a\n\n", [message(b"a")]),
        (b"retry: -1\ndata: a\n\n", [message(b"a")]),
        (b"retry: " + b"9" * 13 + b"\ndata: a\n\n", [message(b"a")]),
        (b": comment\n\n:\n:data: x\n\n", []),
        (b": comment\ndata: a\n: more\n\n", [message(b"a")]),
        (b"event: x\n\n", []),
        (b"\n\n\n", []),
        (b"unknown: x\ndata : x\nDATA: x\n\n", []),
        (b" data: x\n\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", [message(b"a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [message(b"a")]),
        (b"id: \xff\nevent: \xff\ndata: \xff\n\n", [message(b"\xff", "\ufffd", "\ufffd")]),
        (b"data: a:b: c\n\n", [message(b"a:b: c")]),
        (b"data: unfinished\n", []),
        (KEEPALIVE, []),
    ],
)
def test_a_stream_is_read_alike_with_every_line_ending_at_every_cut(stream: bytes, expected: list[ServerEvent]) -> None:
    for ending in (b"\n", b"\r", b"\r\n"):
        text = stream.replace(b"\n", ending)
        assert events_of([text]) == expected
        assert events_of([bytes([byte]) for byte in text]) == expected
        assert events_of([piece for byte in text for piece in (bytes([byte]), b"")]) == expected
        for place in range(len(text)):
            assert events_of([text[:place], text[place:]]) == expected


def test_line_endings_may_be_mixed() -> None:
    assert events_of([b"data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\r"]) == [message(b"a\nb\nc"), message(b"d")]


def test_an_event_is_told_as_soon_as_its_last_line_ends_even_with_a_lone_return() -> None:
    decoder = EventDecoder(LIMIT)
    assert decoder.feed(b"data: a\r\n\r") == [message(b"a")]
    assert decoder.feed(b"\ndata: b\n\n") == [message(b"b")]


words = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x00"), max_size=8)
sent_events = st.lists(
    st.tuples(
        st.binary(max_size=40),
        st.none() | words,
        st.none() | words.filter(bool),
        st.none() | st.integers(0, 10**12 - 1),
    ),
    max_size=5,
)


@given(sent_events, places)
def test_events_come_out_as_they_were_encoded_wherever_the_stream_is_cut(
    sent: list[tuple[bytes, str | None, str | None, int | None]], places: list[int]
) -> None:
    stream = KEEPALIVE.join(
        encode_event(data, id=id_, event=event, retry_ms=retry_ms) for data, id_, event, retry_ms in sent
    )
    expected = [
        message(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), id_, event or "message", retry_ms)
        for data, id_, event, retry_ms in sent
    ]
    assert events_of(cut(stream, places)) == expected
    assert events_of([bytes([byte]) for byte in stream]) == expected


@given(
    st.lists(st.sampled_from([b"data", b"id", b":", b" ", b"\r", b"\n", b"x", b"\xef\xbb\xbf", b"retry", b"7"])), places
)
def test_where_a_stream_is_cut_never_changes_what_it_says(parts: list[bytes], places: list[int]) -> None:
    stream = b"".join(parts)
    assert events_of(cut(stream, places)) == events_of([stream])


def test_an_event_of_json_is_one_line_and_json_on_several_lines_stays_json() -> None:
    assert encode_event(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert encode_event(b"{}", id="7", event="message", retry_ms=50) == (
        b"id: 7\nevent: message\nretry: 50\ndata: {}\n\n"
    )
    assert encode_event(b"{\r\n}\r") == b"data: {\ndata: }\ndata: \n\n"


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\x00b"])
def test_an_id_or_name_can_not_smuggle_a_line(text: str) -> None:
    with pytest.raises(ValueError):
        encode_event(b"", id=text)
    with pytest.raises(ValueError):
        encode_event(b"", event=text)


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: " + b"a" * 100],
        [b"data: " + b"a" * 100 + b"\n\n"],
        [b"data: " + b"a" * 60 + b"\ndata: " + b"a" * 60 + b"\n\n"],
        [b"data: " + b"a" * 60 + b"\n", b"data: ", b"a" * 60],
        [b"data:\n" * 101],
        [b":" * 101],
        [b"x"] * 101,
        [b"\xef\xbb\xbf" + b"x" * 101 + b"\n"],
    ],
)
def test_an_event_beyond_the_bound_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(OversizedError) as refused:
        events_of(pieces, 100)
    assert refused.value.limit_bytes == 100


def test_any_number_of_events_and_comments_within_the_bound_pass() -> None:
    assert len(events_of([b": still here\ndata: " + b"a" * 90 + b"\n\n"] * 50, 100)) == 50
    assert events_of([b": still here\n"] * 50, 100) == []


# Time


@pytest.mark.parametrize("kind", [LineDecoder, EventDecoder])
@pytest.mark.timing
def test_one_huge_frame_in_small_pieces_takes_linear_time(kind: type[LineDecoder | EventDecoder]) -> None:
    decoder = kind(16 << 20)
    started = time.process_time()
    decoder.feed(b"data: ")
    for _ in range(50_000):
        decoder.feed(b"x" * 100)
    assert len(decoder.feed(b"\n\n")) == 1
    assert time.process_time() - started < 10


@pytest.mark.parametrize("ending", [b"\n", b"\r"])
@pytest.mark.timing
def test_many_short_lines_before_a_long_one_take_linear_time(ending: bytes) -> None:
    stream = (b"data:" + ending) * 50_000 + b"x" * (15 << 20)
    started = time.process_time()
    EventDecoder(16 << 20).feed(stream)
    LineDecoder(16 << 20).feed(stream)
    assert time.process_time() - started < 2
