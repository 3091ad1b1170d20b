"""The lines of `serve` about servers: one for each change, none twice while a server stays down."""

from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.cli.announce import Announcer
from pactgate.core import events
from pactgate.core.masking import Mask


def test_a_server_that_stays_down_is_announced_once_and_again_after_it_was_available(tmp_path: Path) -> None:
    round_ = (
        events.ServerConnecting("files", 2),
        events.ServerFailed("files", 2, "refused", "MCP_ECO_CONNECTION_FAILED"),
    )
    available = (
        events.ServerConnected("files", "legacy", "2025-11-25", 1, 5.0),
        events.ServerDiscovered("files", 3, 1.0),
    )
    with (tmp_path / "output").open("w") as stream:
        announcer = Announcer(stream, lambda _server: "refused", Mask([]))
        for event in (*round_ * 5, *available * 2, *round_ * 5):
            announcer.emit(event)
    words = [line.split()[0] for line in (tmp_path / "output").read_text().splitlines()]
    assert words == ["wait", "down", "ok", "wait", "down"]


def test_a_reason_names_its_server_once_is_indented_and_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the first attempt is the last one, because another would change nothing."""
    reason = "files could not be started: " + "a long explanation of it " * 4
    monkeypatch.setattr("pactgate.cli.terminal.is_terminal", lambda _stream: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    with (tmp_path / "output").open("w") as stream:
        announcer = Announcer(stream, lambda _server: reason, Mask([]))
        for _ in range(3):
            announcer.emit(events.ServerFailed("files", 1, reason, "CONNECTION_FAILED"))
    lines = (tmp_path / "output").read_text().splitlines()
    assert lines[0].startswith("  down  files        could not be started: a long")
    assert max(map(len, lines)) <= 80
    assert all(line.startswith(" " * 21) for line in lines[1:])
    assert " ".join(" ".join(lines).split()).count("the gateway goes on trying") == 1
