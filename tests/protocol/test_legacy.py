"""What may come when in a legacy session, and what `initialize` must say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.protocol import messages
from pactgate.protocol.legacy import OPEN, InitializeParams, LegacyStep, Phase, read_initialize, step
from pactgate.protocol.messages import Notification, Rejection, Request
from pactgate.protocol.versions import METHODS

NEW, INITIALIZING, READY, CLOSED = Phase.NEW, Phase.INITIALIZING, Phase.READY, Phase.CLOSED


def request(method: str) -> Request:
    return Request(b'"q"', "q", method)


@pytest.mark.parametrize(
    ("before", "message", "after"),
    [
        (NEW, request("initialize"), INITIALIZING),
        (NEW, request("ping"), NEW),
        (INITIALIZING, Notification("notifications/initialized"), READY),
        (INITIALIZING, request("ping"), INITIALIZING),
        (INITIALIZING, request("tools/list"), INITIALIZING),
        (INITIALIZING, Notification("notifications/cancelled"), INITIALIZING),
        (READY, request("tools/call"), READY),
        (READY, request("ping"), READY),
        (READY, Notification("notifications/initialized"), READY),
        (READY, Notification("notifications/progress"), READY),
    ],
)
def test_what_comes_in_order_passes(before: Phase, message: Request | Notification, after: Phase) -> None:
    assert step(before, message) == LegacyStep(after)


@given(st.sampled_from(OPEN), st.sampled_from(sorted(METHODS)) | st.text(min_size=1))
def test_in_an_open_session_every_other_request_is_admitted_and_changes_nothing(phase: Phase, method: str) -> None:
    if method not in ("initialize", "notifications/initialized"):
        assert step(phase, request(method)) == LegacyStep(phase)


@pytest.mark.requirement("S4/F1")
@pytest.mark.parametrize(
    ("phase", "message"),
    [
        (NEW, request("tools/list")),
        (NEW, request("tools/call")),
        (NEW, Notification("notifications/initialized")),
        (NEW, Notification("initialize")),
        (INITIALIZING, request("initialize")),
        (READY, request("initialize")),
        (CLOSED, request("ping")),
        (CLOSED, request("initialize")),
        (CLOSED, Notification("notifications/cancelled")),
    ],
)
def test_what_comes_out_of_order_is_refused_and_moves_nothing(phase: Phase, message: Request | Notification) -> None:
    outcome = step(phase, message)
    assert outcome.phase is phase
    assert outcome.rejection is not None
    assert outcome.rejection.code == messages.INVALID_REQUEST
    assert outcome.rejection.id == (b'"q"' if isinstance(message, Request) else None)


methods = st.sampled_from(["initialize", "ping", "tools/call", "notifications/initialized", "x"])


@given(st.lists(st.builds(request, methods) | st.builds(Notification, methods)))
def test_no_conversation_opens_a_session_without_exactly_one_initialize(talk: list[Request | Notification]) -> None:
    phase, opened = NEW, 0
    for message in talk:
        outcome = step(phase, message)
        opened += isinstance(message, Request) and message.method == "initialize" and outcome.rejection is None
        phase = outcome.phase
        assert (phase is NEW) == (opened == 0)
    assert opened <= 1


OPENING: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"roots": {"listChanged": True}},
    "clientInfo": {"name": "desk", "version": "1.2", "title": "Desk"},
}


def initialize(**changed: Any) -> Request:
    held = {name: value for name, value in (OPENING | changed).items() if value is not ...}
    return Request(b"1", 1, "initialize", json.dumps(held).encode())


def test_initialize_says_version_client_and_capabilities() -> None:
    assert read_initialize(initialize()) == InitializeParams("2025-06-18", "desk/1.2", OPENING["capabilities"])


@pytest.mark.parametrize(
    ("changed", "client"),
    [
        ({"clientInfo": {"name": "desk"}}, "desk"),
        ({"clientInfo": {"name": "desk", "version": 3}}, "desk"),
        ({"clientInfo": {"name": "a\x1b[31m\nb", "version": "1"}}, "a?[31m?b/1"),
        ({"_meta": {"x/y": 1}, "future": True}, "desk/1.2"),
    ],
)
def test_what_a_client_adds_or_forgets_is_tolerated(changed: dict[str, Any], client: str) -> None:
    read = read_initialize(initialize(**changed))
    assert isinstance(read, InitializeParams)
    assert read.client == client


@pytest.mark.parametrize(
    "changed",
    [
        {"protocolVersion": ...},
        {"protocolVersion": 20250618},
        {"protocolVersion": None},
        {"capabilities": ...},
        {"capabilities": []},
        {"capabilities": None},
        {"clientInfo": ...},
        {"clientInfo": "desk"},
        {"clientInfo": None},
        {"clientInfo": {"version": "1"}},
        {"clientInfo": {"name": 5}},
    ],
)
def test_an_opening_without_what_it_needs_is_refused(changed: dict[str, Any]) -> None:
    refused = read_initialize(initialize(**changed))
    assert isinstance(refused, Rejection)
    assert (refused.code, refused.id) == (messages.INVALID_PARAMS, b"1")


def test_an_opening_without_params_is_refused() -> None:
    refused = read_initialize(Request(b"1", 1, "initialize"))
    assert isinstance(refused, Rejection)
    assert refused.code == messages.INVALID_PARAMS
