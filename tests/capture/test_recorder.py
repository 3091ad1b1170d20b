"""Recording without holding anybody up."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pactgate.capture import transcript
from pactgate.capture.capture_files import CaptureFolder
from pactgate.capture.message_kind import ClassifiedMessage, Mask, classify
from pactgate.capture.recorder import Recorder, WriterThread
from pactgate.capture.redaction import Redaction
from pactgate.core.events import Event, InternalFailure


def recorder(folder: Path, **bounds: Any) -> Recorder:
    return Recorder(CaptureFolder(folder, 100), Redaction(), max_file_bytes=10**8, emit=print, **bounds)


def captures(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted(folder.iterdir())]


def test_a_connection_is_one_session_and_closing_finishes_it(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    first, second = (made.connection(name, "servers", "stdio") for name in "ab")
    first.passed(b'{"id":1,"method":"x"}', from_client=True)
    second.passed(b'{"id":1,"method":"y"}', from_client=True)
    first.passed(b'{"id":1,"result":{}}', from_client=False)
    first.closed()
    made.close()
    assert [(each["server_label"], len(each["exchanges"])) for each in captures(tmp_path)] == [("a", 1), ("b", 1)]
    assert "response" in captures(tmp_path)[0]["exchanges"][0]


def test_a_connection_nothing_passed_on_leaves_no_file(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    made.connection("a", "servers", "stdio").closed()
    made.close()
    assert captures(tmp_path) == []


def test_closing_twice_and_talking_after_the_end_do_no_harm(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    tap = made.connection("a", "servers", "stdio")
    tap.passed(b'{"method":"x"}', from_client=True)
    tap.closed()
    tap.closed()
    made.close()
    made.close()
    tap.passed(b'{"method":"x"}', from_client=True)
    assert len(captures(tmp_path)) == 1


def stall(made: Recorder) -> threading.Event:
    """Make the recorder's thread wait until the event is set."""
    go, waits = threading.Event(), threading.Event()

    def wait() -> None:
        waits.set()
        go.wait(5)

    made.must_put(wait)
    assert waits.wait(5)
    return go


def test_when_the_disk_is_too_slow_the_recording_ends_and_says_what_is_missing(tmp_path: Path) -> None:
    made = recorder(tmp_path, max_queued_bytes=10_000)
    tap = made.connection("a", "servers", "stdio")
    tap.passed(b'{"id":0,"method":"x"}', from_client=True)
    go = stall(made)
    for number in range(100):
        tap.passed(b'{"id":%d,"method":"x","pad":"%b"}' % (number + 1, b"y" * 1000), from_client=True)
    assert made.backlog_bytes <= 10_000
    go.set()
    tap.closed()
    made.close()
    (capture,) = captures(tmp_path)
    recorded = len(capture["exchanges"])
    assert 1 < recorded < 15
    assert capture["missing"] == 101 - recorded


def test_an_address_begins_anew_after_a_loss(tmp_path: Path) -> None:
    made = recorder(tmp_path, max_queued_bytes=5_000)
    tap = made.address("gateway", "callers", is_shared=True)
    body = b'{"id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}'
    tap.requested("POST", "/mcp", {}, body).answered(200, b"", b"")
    go = stall(made)
    for _ in range(50):
        tap.requested("POST", "/mcp", {}, body).answered(200, b"", b"")
    go.set()
    idle = threading.Event()
    made.must_put(idle.set)
    assert idle.wait(5)
    tap.requested("POST", "/mcp", {}, body).answered(200, b"", b"")
    made.close()
    first, second = captures(tmp_path)
    assert first["missing"] > 50
    assert len(second["exchanges"]) == 1
    assert "missing" not in second


def test_what_waits_long_enough_is_on_disk_before_the_session_ends(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    tap = made.connection("a", "servers", "stdio")
    tap.passed(b'{"id":1,"method":"x"}', from_client=True)
    tick = threading.Event()
    for _ in range(100):
        parts = list(tmp_path.glob("*.part"))
        if parts and json.loads(parts[0].read_text())["exchanges"]:
            break
        tick.wait(0.05)
    else:
        raise AssertionError("nothing was written")
    made.close()


class Turn:
    """Stands for an event loop: what is for later is done when the test says so."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def later(self, _: float, act: Callable[[], None]) -> None:
        self.due.append(act)

    def run(self) -> int:
        turns = 0
        while self.due and turns < 1000:
            self.due.pop(0)()
            turns += 1
        return turns


def test_on_a_loop_many_notes_cost_one_turn_and_nothing_is_read_before_it(tmp_path: Path) -> None:
    turn = Turn()
    made = Recorder(CaptureFolder(tmp_path, 100), Redaction(), max_file_bytes=10**8, emit=print, later=turn.later)
    tap = made.connection("a", "servers", "stdio")
    for number in range(50):
        tap.passed(b'{"id":%d,"method":"x"}' % number, from_client=True)
    assert len(turn.due) == 1
    assert made.backlog_bytes > 0
    turn.due.pop()()
    assert made.backlog_bytes == 0
    made.close()
    assert len(captures(tmp_path)[0]["exchanges"]) == 50


def test_on_a_loop_many_notes_are_read_in_several_turns(tmp_path: Path) -> None:
    turn = Turn()
    made = Recorder(CaptureFolder(tmp_path, 100), Redaction(), max_file_bytes=10**8, emit=print, later=turn.later)
    tap = made.connection("a", "servers", "stdio")
    for number in range(1000):
        tap.passed(b'{"id":%d,"method":"x"}' % number, from_client=True)
    first = made.backlog_bytes
    turn.due.pop()()
    assert first * 0.8 < made.backlog_bytes < first
    made.close()
    assert len(captures(tmp_path)[0]["exchanges"]) == 1000


def test_a_secret_that_was_learned_between_two_notes_of_one_turn_is_not_written(tmp_path: Path) -> None:
    turn = Turn()
    made = Recorder(CaptureFolder(tmp_path, 100), Redaction(), max_file_bytes=10**8, emit=print, later=turn.later)
    tap = made.address("gateway", "callers", is_shared=True)
    hop = tap.requested("POST", "/mcp", {"authorization": ["Bearer a-long-token"]}, b'{"id":1,"method":"x"}')
    hop.answered(200, b"Content-Type: application/json\r\n", b'{"id":1,"result":"you are a-long-token"}')
    made.close()
    (file,) = tmp_path.iterdir()
    assert "***" in file.read_text()
    assert "a-long-token" not in file.read_text()


def test_a_secret_cut_in_two_by_a_stream_is_not_written(tmp_path: Path) -> None:
    made = Recorder(
        CaptureFolder(tmp_path, 100), Redaction(["a-long-secret"]), max_file_bytes=10**8, emit=print, later=Turn().later
    )
    tap = made.address("gateway", "callers", is_shared=True)
    hop = tap.requested("POST", "/mcp", {}, b'{"id":1,"method":"x"}')
    hop.streaming(200, b"Content-Type: text/event-stream\r\n")
    hop.events(b'data: {"id":1,"result":"a-long-')
    hop.events(b'secret"}\n\n')
    hop.ended(by_client=False)
    made.close()
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text())["exchanges"][0]["response"]["result"] == "***"


def test_when_the_disk_hangs_memory_is_bounded_and_the_recording_ends(tmp_path: Path) -> None:
    turn, go = Turn(), threading.Event()
    made = Recorder(
        CaptureFolder(tmp_path, 100),
        Redaction(),
        max_file_bytes=10**8,
        emit=print,
        max_queued_bytes=50_000,
        later=turn.later,
    )
    made._writer.put(0, lambda: (go.wait(5), None)[1])
    tap = made.connection("a", "servers", "stdio")
    for number in range(400):
        tap.passed(b'{"method":"x%d","pad":"%b"}' % (number, b"y" * 1000), from_client=True)
        made._synced_at = 0.0  # as if the time had come to write
        turn.due.pop()() if turn.due else None
    assert made._writer.backlog_bytes < 60_000
    go.set()
    tap.closed()
    made.close()
    (capture,) = captures(tmp_path)
    assert 0 < len(capture["exchanges"]) < 100
    assert capture["missing"] == 400 - len(capture["exchanges"])


def test_jobs_are_done_in_their_order_and_all_of_them_before_it_ends() -> None:
    done: list[int] = []
    writer = WriterThread()
    for number in range(100):
        writer.put(10, done.append, number)
    writer.close(5)
    assert done == list(range(100))
    assert writer.backlog_bytes == 0


def test_what_waits_is_counted_and_nobody_waits_for_it() -> None:
    writer = WriterThread()
    go = threading.Event()
    writer.put(5, lambda: (go.wait(5), None)[1])
    writer.put(7, lambda: None)
    assert writer.backlog_bytes == 12
    go.set()
    writer.close(5)
    assert writer.backlog_bytes == 0


def test_closing_does_not_wait_for_a_disk_that_hangs() -> None:
    writer = WriterThread()
    go = threading.Event()
    writer.put(0, lambda: (go.wait(5), None)[1])
    writer.close(0.01)
    go.set()
    writer.close(5)


def test_what_is_for_later_is_done_at_once_when_it_closes() -> None:
    writer = WriterThread()
    done = threading.Event()
    writer.later(60, done.set)
    writer.close(5)
    assert done.is_set()


def test_without_a_job_there_is_no_thread() -> None:
    before = threading.active_count()
    writer = WriterThread()
    assert threading.active_count() == before
    writer.close(5)


def test_a_note_that_can_not_be_read_ends_its_recording_alone_and_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(data: bytes, mask: Mask | None) -> ClassifiedMessage | None:
        if b"breaks" in data:
            raise ZeroDivisionError("a recorder")
        return classify(data, mask)

    monkeypatch.setattr(transcript, "classify", breaks)
    turn, events = Turn(), list[Event]()
    made = Recorder(
        CaptureFolder(tmp_path, 100), Redaction(), max_file_bytes=10**8, emit=events.append, later=turn.later
    )
    broken, sound = (made.connection(name, "servers", "stdio") for name in "ab")
    for tap in (broken, sound):
        tap.passed(b'{"id":1,"method":"x"}', from_client=True)
    broken.passed(b"breaks", from_client=True)
    for tap in (broken, sound):
        tap.passed(b'{"id":2,"method":"x"}', from_client=True)
    turn.run()
    broken.passed(b"{}", from_client=True)
    made.close()
    assert [event.where for event in events if isinstance(event, InternalFailure)] == ["recorder"]
    first, second = captures(tmp_path)
    assert (len(first["exchanges"]), first["missing"]) == (1, 3)
    assert (len(second["exchanges"]), "missing" in second) == (2, False)


def test_times_count_from_the_beginning_of_the_recording_however_late_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter(("2026-11-19T20:00:00.000+00:00", "2026-11-19T20:00:01.000+00:00"))
    monkeypatch.setattr("pactgate.capture.recorder._now", lambda: next(moments))
    made = recorder(tmp_path, later=lambda delay_s, act: None)
    address = made.address("pactgate", "callers", is_shared=True)
    connection = made.connection("files", "servers", "stdio")
    address.requested("POST", "/mcp", {}, b'{"id":1,"method":"x"}').answered(200, {}, b"")
    connection.passed(b'{"id":1,"method":"x"}', from_client=True)
    made.close()  # only now they are read
    assert [session["started_at"][17:19] for session in captures(tmp_path)] == ["00", "01"]
