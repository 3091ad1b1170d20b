"""One session on its way to its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pactgate.capture.capture_files import CaptureFolder, SessionFile
from pactgate.capture.session_writer import RecordedConnection, SessionWriter
from pactgate.core.events import CaptureEnded, CaptureFailed, Event
from tests.capture.inline import inline_context

SUBJECT = RecordedConnection("almanac", "servers", "stdio", "2026-11-19T20:00:00.000+00:00")


def session_writer(folder: Path, max_bytes: int = 1_000_000) -> tuple[SessionWriter, list[Event]]:
    events: list[Event] = []
    context = inline_context(CaptureFolder(folder, 10), max_file_bytes=max_bytes, emit=events.append)
    return SessionWriter(SUBJECT, context), events


def tell(made: SessionWriter, number: int, size: int = 0) -> None:
    made.message(1.0, json.dumps({"id": number, "method": "m", "x": "y" * size}).encode(), True)
    made.message(2.0, json.dumps({"id": number, "result": {}}).encode(), False)
    made.keep()


def only(folder: Path) -> dict[str, Any]:
    (file,) = folder.iterdir()
    capture: dict[str, Any] = json.loads(file.read_text())
    return capture


def test_a_session_says_what_it_is_of(tmp_path: Path) -> None:
    made, events = session_writer(tmp_path)
    tell(made, 1)
    made.close()
    capture = only(tmp_path)
    assert (capture["server_label"], capture["leg"], capture["transport"]) == ("almanac", "servers", "stdio")
    assert capture["capture_version"] == 1
    assert capture["closed"] is True
    assert "missing" not in capture
    (ending,) = events
    assert isinstance(ending, CaptureEnded)
    assert (ending.exchanges, ending.missing) == (1, 0)


def test_every_recording_has_a_transport_of_its_own(tmp_path: Path) -> None:
    ids = set()
    for name in "ab":
        made, _ = session_writer(tmp_path / name)
        tell(made, 1)
        made.close()
        ids.add(only(tmp_path / name)["transport_id"])
    assert len(ids) == 2


def test_a_file_in_the_making_can_be_read_with_what_is_still_open(tmp_path: Path) -> None:
    made, _ = session_writer(tmp_path)
    tell(made, 1)
    made.message(3.0, b'{"id": 2, "method": "open"}', True)
    made.keep()
    made.sync()
    assert [each["request"]["method"] for each in only(tmp_path)["exchanges"]] == ["m", "open"]
    assert only(tmp_path)["closed"] is False
    made.close()


def test_beyond_its_bound_a_session_is_cut_and_says_how_much_is_missing(tmp_path: Path) -> None:
    made, events = session_writer(tmp_path, max_bytes=10_000)
    for number in range(100):
        tell(made, number, 1000)
    made.close(missing=5)
    capture = only(tmp_path)
    recorded = len(capture["exchanges"])
    assert recorded < 12
    assert capture["missing"] == 200 - 2 * recorded + 5
    assert [event.missing for event in events if isinstance(event, CaptureEnded)] == [capture["missing"]]
    assert next(tmp_path.iterdir()).stat().st_size < 12_000


class FullDisk:
    def begin(self, label: str, head: dict[str, Any]) -> SessionFile:
        raise OSError(28, "No space left on device")

    def finished(self, path: Path) -> None:
        raise AssertionError

    def close(self) -> None:
        return


def test_a_disk_that_refuses_ends_the_recording_and_is_told_once() -> None:
    events: list[Event] = []
    made = SessionWriter(SUBJECT, inline_context(FullDisk(), emit=events.append))
    tell(made, 1)
    made.keep()
    made.sync()
    made.close()
    assert events == [CaptureFailed("No space left on device")]


def test_a_session_without_messages_leaves_no_file(tmp_path: Path) -> None:
    made, events = session_writer(tmp_path)
    made.keep()
    made.sync()
    made.close()
    assert (list(tmp_path.iterdir()), events) == ([], [])
