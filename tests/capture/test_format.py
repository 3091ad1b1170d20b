"""The capture file: what is read, what is tolerated, what is refused, and within which memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.capture.format import CaptureError, CaptureErrorKind, RecordedExchange, SessionHead, Side, read
from pactgate.protocol.versions import Era
from tests.conformance.captures import long_capture

ROOT = Path(__file__).parents[2]
PING = {"request": {"jsonrpc": "2.0", "id": 1, "method": "ping"}, "response": {"jsonrpc": "2.0", "id": 1, "result": {}}}


def sessions(capture: Any) -> list[tuple[SessionHead, list[RecordedExchange]]]:
    return [(session.head, list(session.exchanges)) for session in _heads_last(read([json.dumps(capture).encode()]))]


def _heads_last(recorded: Iterator[Any]) -> Iterator[Any]:
    """Heads are complete once the exchanges were read."""
    for session in recorded:
        session.exchanges = iter(list(session.exchanges))
        yield session


def only(exchange: dict[str, Any]) -> RecordedExchange:
    ((_, exchanges),) = sessions({"exchanges": [exchange]})
    return exchanges[0]


@pytest.mark.requirement("S3/CAPTURE")
def test_a_session_is_read_as_the_document_says() -> None:
    capture = {"server_label": "stdio://my-server", "server_capabilities": {"tools": {}}, "exchanges": [PING]}
    ((head, exchanges),) = sessions(capture)
    assert head == SessionHead("stdio://my-server", {"tools": {}})
    assert exchanges == [RecordedExchange(0, PING["request"], PING["response"])]


@pytest.mark.requirement("S3/CAPTURE")
def test_an_array_holds_any_number_of_sessions() -> None:
    one = {"server_label": "a", "exchanges": []}
    for number in (0, 1, 3):
        assert len(sessions([one] * number)) == number


@pytest.mark.requirement("S3/CAPTURE")
def test_absent_capabilities_are_null() -> None:
    ((absent, _),) = sessions({"server_label": "a", "exchanges": []})
    ((null, _),) = sessions({"server_label": "a", "server_capabilities": None, "exchanges": []})
    assert absent == null
    assert absent.capabilities is None


@pytest.mark.requirement("S3/CAPTURE")
def test_a_notification_and_a_lost_answer_are_both_exchanges_without_a_response() -> None:
    assert only({"request": {"method": "notifications/initialized"}}).response is None
    assert only({"request": {"id": 1, "method": "ping"}, "response": None}).response is None


@pytest.mark.requirement("S3/CAPTURE")
def test_members_nobody_knows_are_passed_over_wherever_they_stand() -> None:
    capture = {
        "x": [1],
        "exchanges": [{**PING, "note": {"a": 1}}],
        "server_capabilities": {"tools": {}},
        "y": None,
        "server_label": "late",
    }
    ((head, exchanges),) = sessions(capture)
    assert (head.label, head.capabilities) == ("late", {"tools": {}})
    assert exchanges[0].request == PING["request"]


def test_sessions_without_a_label_are_numbered() -> None:
    assert [head.label for head, _ in sessions([{"exchanges": []}, {"exchanges": [], "server_label": None}])] == [
        "session 1",
        "session 2",
    ]


def test_what_our_recorder_adds_is_read() -> None:
    exchange = only(
        {
            "request": {"id": "s1", "method": "roots/list"},
            "direction": "server_to_client",
            "seq": 4,
            "response_seq": 6,
            "at_ms": 1.5,
            "response_at_ms": 2,
            "stream": "g1",
            "closed_by": "client",
            "auth": "digest",
            "event_id": "9",
            "http": {
                "verb": "get",
                "status": 200,
                "request_headers": {"Accept": "a", "X": ["1", "2"]},
                "response_headers": {"Content-Type": "b"},
                "response_bytes": 0,
            },
            "notifications": [
                {"message": {"method": "n"}, "seq": 5, "event_id": "8", "direction": "client_to_server"},
                {"jsonrpc": "2.0", "method": "bare"},
            ],
        }
    )
    assert (exchange.sender, exchange.seq, exchange.response_seq) == (Side.SERVER, 4, 6)
    assert (exchange.at_ms, exchange.response_at_ms, exchange.stream) == (1.5, 2.0, "g1")
    assert (exchange.closed_by, exchange.auth, exchange.event_id) == (Side.CLIENT, "digest", "9")
    assert exchange.http is not None
    assert exchange.http.verb == "GET"
    assert exchange.http.request_headers == {"accept": ["a"], "x": ["1", "2"]}
    assert [(frame.message["method"], frame.sender.value) for frame in exchange.frames] == [
        ("n", "client"),
        ("bare", "server"),
    ]
    head = {"capture_version": 1, "transport": "stdio", "transport_id": "t", "protocol_version": "v", "era": "modern"}
    ((read_head, _),) = sessions({**head, "closed": True, "exchanges": []})
    assert read_head == SessionHead("session 1", None, 1, "stdio", "t", "v", Era.MODERN, True)


def test_a_get_has_no_request_and_a_late_answer_neither() -> None:
    assert only({"request": None, "http": {"verb": "GET"}}).request is None
    assert only({"seq": 4, "response": {"id": 1, "result": {}}}).request is None


def test_a_batch_stands_where_a_message_stands() -> None:
    assert only({"request": [PING["request"]], "response": []}).request == [PING["request"]]


@given(
    st.dictionaries(
        st.sampled_from(["seq", "at_ms", "direction", "http", "notifications", "closed_by"]),
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()),
    )
)
def test_a_member_of_ours_in_another_shape_counts_as_absent(odd: dict[str, Any]) -> None:
    assert only({**PING, **odd}).request == PING["request"]


def _read_all(text: bytes) -> None:
    for session in read([text]):
        list(session.exchanges)


@pytest.mark.requirement("S3/CAPTURE")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"", CaptureErrorKind.NOT_JSON),
        (b"  \n", CaptureErrorKind.NOT_JSON),
        (b"{", CaptureErrorKind.NOT_JSON),
        (b'{"exchanges": [', CaptureErrorKind.NOT_JSON),
        (b'{"exchanges": []} {}', CaptureErrorKind.NOT_JSON),
        (b'{"exchanges": [{"request": {}},]}', CaptureErrorKind.NOT_JSON),
        (b'{"exchanges": []}\xff', CaptureErrorKind.NOT_JSON),
        (b"7", CaptureErrorKind.NOT_A_CAPTURE),
        (b'"x"', CaptureErrorKind.NOT_A_CAPTURE),
        (b"{}", CaptureErrorKind.NOT_A_CAPTURE),
        (b"[7]", CaptureErrorKind.NOT_A_CAPTURE),
        (b'{"exchanges": null}', CaptureErrorKind.NOT_A_CAPTURE),
        (b'{"exchanges": {}}', CaptureErrorKind.NOT_A_CAPTURE),
        (b'{"exchanges": [7]}', CaptureErrorKind.NOT_A_CAPTURE),
        (b'{"exchanges": [{}]}', CaptureErrorKind.NOT_A_CAPTURE),
        (b'{"exchanges": [{"request": "x"}]}', CaptureErrorKind.NOT_A_CAPTURE),
        (b'{"exchanges": [{"request": [7]}]}', CaptureErrorKind.NOT_A_CAPTURE),
        (b'{"exchanges": [], "exchanges": []}', CaptureErrorKind.NOT_A_CAPTURE),
        (b'{"server_label": 7, "exchanges": []}', CaptureErrorKind.NOT_A_CAPTURE),
        (b'{"exchanges": [], "server_capabilities": []}', CaptureErrorKind.NOT_A_CAPTURE),
    ],
)
def test_what_is_no_capture_is_refused_with_its_kind(text: bytes, kind: CaptureErrorKind) -> None:
    with pytest.raises(CaptureError) as caught:
        _read_all(text)
    assert caught.value.kind is kind
    assert caught.value.message


def test_exchanges_that_nobody_reads_do_not_hide_the_next_session() -> None:
    text = json.dumps([{"server_label": label, "exchanges": [PING]} for label in "ab"]).encode()
    assert [session.head.label for session in read([text])] == ["a", "b"]


MEASURE = """
import sys
from pactgate.conformance.check import check_capture
def peak_mib():
    line = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))
    return int(line.split()[1]) // 1024
check_capture(sys.argv[1])
before = peak_mib()
report = check_capture(sys.argv[2])
print(report.passed, peak_mib() - before)
"""


@pytest.mark.requirement("S3/CAPTURE")
@pytest.mark.parametrize(
    ("exchanges", "more_mib"),
    [(600, 18), pytest.param(6000, 100, marks=pytest.mark.timing)],  # 20 MB; 200 MB take too long for every run
)
def test_a_large_capture_is_judged_in_less_memory_than_it_has_bytes(
    exchanges: int, more_mib: int, tmp_path: Path
) -> None:
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    for path, count in ((small, 30), (large, exchanges)):
        with path.open("wb") as file:
            file.writelines(long_capture(exchanges=count, row_count=750))
    assert large.stat().st_size > 35_000 * exchanges
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, small, large], capture_output=True, text=True, timeout=55, check=True, cwd=ROOT
    )
    passed, megabytes = done.stdout.split()
    assert passed == "True"
    assert int(megabytes) < more_mib
