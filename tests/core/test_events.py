"""Events are flat facts with their own name."""

from __future__ import annotations

from pactgate.core import events
from pactgate.core.events import ServerFailed, describe


def test_an_event_is_described_by_its_name_and_its_fields() -> None:
    assert describe(ServerFailed("files", 4, "refused", "MCP_ECO_CONNECTION_FAILED")) == {
        "event": "ServerFailed",
        "server": "files",
        "attempts": 4,
        "reason": "refused",
        "code": "MCP_ECO_CONNECTION_FAILED",
    }


def test_every_event_is_named_in_the_past_tense_or_for_what_was_met() -> None:
    names = [name for name, item in vars(events).items() if isinstance(item, type) and issubclass(item, events.Event)]
    endings = ("ed", "ing", "Noise", "Failure", "Hazard", "Hung")
    assert [name for name in names if name != "Event" and not name.endswith(endings)] == []
