"""What a listen grants, and what it covers."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.capture.format import RecordedExchange
from pactgate.conformance.message import ExchangeView, RecordedMessage, messages_of
from pactgate.conformance.subscriptions import RecordedSubscription
from pactgate.protocol.versions import Era


def notice(method: str, **params: Any) -> RecordedMessage:
    view = ExchangeView(
        RecordedExchange(0, {"method": f"notifications/{method}", "params": params}), Era.MODERN, "2026-07-28"
    )
    return messages_of(view)[0]


def test_no_more_may_be_granted_than_was_requested() -> None:
    listen = RecordedSubscription({"toolsListChanged": True, "resourceSubscriptions": ["a://b"]})
    assert listen.grant({"toolsListChanged": True, "resourceSubscriptions": []}) == []
    assert listen.grant({"promptsListChanged": True, "resourceSubscriptions": ["c://d"]}) == [
        "promptsListChanged",
        "resourceSubscriptions",
    ]
    assert RecordedSubscription(None).grant({"toolsListChanged": False}) == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (notice("tools/list_changed"), True),
        (notice("prompts/list_changed"), False),
        (notice("resources/updated", uri="a://b/c"), True),
        (notice("resources/updated", uri="a://bc"), False),
        (notice("resources/updated", uri=7), False),
        (notice("tasks", taskId="t"), True),
        (notice("cancelled"), True),
        (notice("message"), False),
        (notice("progress"), False),
    ],
)
def test_a_listen_covers_what_was_granted(message: RecordedMessage, expected: bool) -> None:
    listen = RecordedSubscription({})
    listen.grant({"toolsListChanged": True, "resourceSubscriptions": ["a://b"], "taskIds": ["t"]})
    assert listen.covers(message) is expected
