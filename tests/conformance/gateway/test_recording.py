"""A recording is kept in a file and read again as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.conformance.gateway.recording import (
    CheckRecording,
    ClientRoute,
    Frame,
    RunRecording,
    ScriptedSide,
    UnreadableRecordingError,
    load,
    save,
)


def test_a_recording_survives_its_file_bytes_that_are_no_text_included(tmp_path: Path) -> None:
    frame = Frame(
        1.5, ScriptedSide.CLIENT, "c", is_sent=True, data="\udcff é \\ud83d", route=ClientRoute("legacy", "lh")
    )
    run = RunRecording("0.1", "some 1.0", (CheckRecording("GWP-001", (frame,)),))
    save(run, tmp_path / "run.json")
    assert load(tmp_path / "run.json") == run


@pytest.mark.parametrize("text", ["", "[]", '{"profile":1}', "\xff"])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text, encoding="latin-1")
    with pytest.raises(UnreadableRecordingError):
        load(tmp_path / "run.json")


def test_an_exchange_is_a_request_with_all_that_came_in_answer() -> None:
    def frame(who: str, exchange: str, *, is_sent: bool, data: str = "") -> Frame:
        return Frame(0.0, ScriptedSide.CLIENT, who, is_sent, data, "x", exchange, ClientRoute("legacy", "lh"))

    recording = CheckRecording(
        "GWP-001",
        (
            frame("a", "1", is_sent=True),
            frame("b", "2", is_sent=True),
            frame("b", "2", is_sent=False, data="notice"),
            frame("a", "1", is_sent=False, data="first"),
            frame("b", "2", is_sent=False, data="second"),
        ),
    )
    found = [(exchange.index, [f.data for f in exchange.received]) for exchange in recording.exchanges("x")]
    assert found == [(3, ["first"]), (4, ["notice", "second"])]
