"""What a listen grants, and what it covers."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.capture.format import RecordedExchange
from pactgate.conformance.message import ExchangeView, RecordedMessage, messages_of
from pactgate.conformance.subscriptions import RecordedSubscription, around
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


def test_a_resource_lies_in_itself_and_in_what_encloses_it() -> None:
    enclosing = set(around("file:///a/b?c#d"))
    assert {"file:///a/b?c#d", "file:///a/b?c", "file:///a/b", "file:///a", "file:///a/"} <= enclosing
    assert "file:///a/bb" not in enclosing
    assert "" not in enclosing


def test_a_name_that_only_begins_alike_is_another_resource() -> None:
    assert "file:///a" not in set(around("file:///ab"))


def test_an_endless_uri_is_only_itself() -> None:
    uri = "a:" + "/" * 10_000
    assert list(around(uri)) == [uri]
