from __future__ import annotations

import json
from typing import Any

import pytest

from pactgate.core.failures import GatewayFailure, Kind, Reply, WireError
from pactgate.core.values import Silence
from pactgate.inbound.replies import CANCELLED, answer, cancelled_answer, cancelled_key, status_of
from pactgate.protocol import messages
from pactgate.protocol.messages import Notification, Request

ASKED = Request(b"18446744073709551616", 2**64, "tools/call")


def test_a_result_is_framed_as_the_bytes_it_is() -> None:
    framed = answer(ASKED, Reply(b'{"n":0.30000000000000004, "b":1e400}'))
    assert framed == b'{"jsonrpc":"2.0","id":18446744073709551616,"result":{"n":0.30000000000000004, "b":1e400}}'


def test_an_error_is_framed_with_code_message_and_data() -> None:
    framed = json.loads(answer(ASKED, Reply(error=WireError(-32602, "no", {"a": 1}))))
    assert framed == {"jsonrpc": "2.0", "id": 2**64, "error": {"code": -32602, "message": "no", "data": {"a": 1}}}


def test_a_stopped_request_is_told_why_and_that_it_may_have_run() -> None:
    error = json.loads(cancelled_answer(ASKED, CANCELLED))["error"]
    assert (error["code"], error["message"]) == (messages.INTERNAL_ERROR, CANCELLED)
    assert (error["data"]["failure_mode"], error["data"]["verdict"]) == ("cancelled", "may_have_run")


@pytest.mark.parametrize(
    ("params", "key"),
    [
        (b'{"requestId":1}', 1),
        (b'{"requestId":"1"}', "1"),
        (b'{"requestId":18446744073709551616}', 2**64),
        (b'{"requestId":null}', None),
        (b'{"requestId":true}', None),
        (b'{"requestId":{}}', None),
        (b'{"requestid":1}', None),
        (b"[]", None),
        (None, None),
    ],
)
def test_a_cancellation_names_its_request_with_its_type(params: bytes | None, key: Any) -> None:
    found = cancelled_key(Notification("notifications/cancelled", params))
    assert (found, type(found)) == (key, type(key))


def test_a_silent_channel_takes_everything() -> None:
    Silence().notify("notifications/progress", b"{}")


class _Head:
    """Of an exchange only what an answer adds to its head."""

    extra_head = b""


@pytest.mark.requirement("S2/MCP-007")
@pytest.mark.parametrize(
    ("kind", "wait_ms", "head"),
    [
        (Kind.RATE_LIMITED, 1, b"Retry-After: 1\r\n"),
        (Kind.RATE_LIMITED, 1000, b"Retry-After: 1\r\n"),
        (Kind.RATE_LIMITED, 1001, b"Retry-After: 2\r\n"),
        (Kind.OVERLOADED, 5000, b"Retry-After: 5\r\n"),
        (Kind.OVERLOADED, None, b""),
        (Kind.CALL_TIMEOUT, 1000, b""),
    ],
)
def test_only_a_call_that_came_too_soon_is_asked_to_wait_in_whole_seconds(
    kind: Kind, wait_ms: int | None, head: bytes
) -> None:
    exchange: Any = _Head()
    assert status_of(exchange, GatewayFailure(kind, "later", retry_after_ms=wait_ms), 200) == 200
    assert status_of(exchange, None, 404) == 404
    assert exchange.extra_head == head
