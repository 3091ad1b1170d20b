"""The lines of `serve` about servers: one for each change, none twice while a server stays down."""

from __future__ import annotations

from pathlib import Path

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
