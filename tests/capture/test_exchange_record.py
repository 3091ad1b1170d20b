"""How an exchange is written."""

from __future__ import annotations

import json
from typing import Any

from pactgate.capture.exchange_record import ExchangeRecord, HttpRecord, frame, quoted


def draft(**known: Any) -> ExchangeRecord:
    return ExchangeRecord(1, 2.0, True, 0, **known)


def test_only_what_is_known_is_written() -> None:
    assert json.loads(draft().encode()) == {"seq": 1, "at_ms": 2.0}
    assert json.loads(ExchangeRecord(3, 0.12345, False, 0).encode()) == {
        "seq": 3,
        "at_ms": 0.123,
        "direction": "server_to_client",
    }


def test_everything_that_is_known_is_written() -> None:
    http = HttpRecord(quoted("POST"), b'{"a":["b"]}', 200, b'{"c":["d"]}', 17)
    whole = draft(
        http=http,
        auth=b'"digest"',
        request=b'{"id": 1.0}',
        response=b" [] ",
        response_seq=4,
        response_at_ms=5.5,
        stream="s1",
        closed_by="server",
        event_id='"',
        frames=[frame(b"{}", 2, 3.0, None), frame(b"{}", 3, 4.0, "e")],
    )
    assert json.loads(whole.encode()) == {
        "seq": 1,
        "at_ms": 2.0,
        "request": {"id": 1.0},
        "response": [],
        "response_seq": 4,
        "response_at_ms": 5.5,
        "http": {
            "verb": "POST",
            "request_headers": {"a": ["b"]},
            "status": 200,
            "response_headers": {"c": ["d"]},
            "response_bytes": 17,
        },
        "auth": "digest",
        "stream": "s1",
        "closed_by": "server",
        "event_id": '"',
        "notifications": [
            {"message": {}, "seq": 2, "at_ms": 3.0},
            {"message": {}, "seq": 3, "at_ms": 4.0, "event_id": "e"},
        ],
    }


def test_a_message_is_put_in_byte_for_byte() -> None:
    text = b'{ "id":1 , "n": 12345678901234567890123.0e1, "x":"\\u00fc" }'
    assert text in draft(request=text).encode()


def test_a_request_without_an_answer_has_no_status() -> None:
    assert json.loads(HttpRecord(quoted("GET"), b"{}").encode()) == {"verb": "GET", "request_headers": {}}


def test_two_drafts_share_no_frames() -> None:
    first, second = draft(), draft()
    first.frames.append(b"{}")
    assert second.frames == []
