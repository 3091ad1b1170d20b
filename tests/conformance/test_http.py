"""Reading recorded HTTP."""

from __future__ import annotations

import pytest

from pactgate.capture.format import RecordedExchange
from pactgate.conformance.http import (
    EVENTS_TYPE,
    JSON_TYPE,
    accepts,
    has_legacy_session,
    header,
    is_success,
    media_type,
)


@pytest.mark.parametrize(
    ("accept", "both"),
    [
        ("application/json, text/event-stream", True),
        ("text/event-stream;q=0.5 , Application/JSON", True),
        ("*/*", True),
        ("application/*, text/*", True),
        ("application/json", False),
        ("", False),
    ],
)
def test_an_accept_header_covers_what_it_lists(accept: str, both: bool) -> None:
    headers = {"accept": [accept]}
    assert (accepts(headers, JSON_TYPE) and accepts(headers, EVENTS_TYPE)) is both


def test_headers_and_media_types() -> None:
    assert header({"a": ["1", "2"]}, "a") == "1, 2"
    assert header({}, "a") is None
    assert media_type({"content-type": ["Text/Event-Stream; charset=utf-8"]}) == EVENTS_TYPE
    assert media_type({}) is None
    assert is_success(204)
    assert not is_success(None)
    assert not is_success(302)


def test_only_initialize_is_outside_of_a_session() -> None:
    assert not has_legacy_session(RecordedExchange(0, {"method": "initialize"}))
    assert has_legacy_session(RecordedExchange(0, {"method": "ping"}))
    assert has_legacy_session(RecordedExchange(0))
