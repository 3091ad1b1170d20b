from __future__ import annotations

from typing import Any

import pytest

from pactgate.core.failures import TABLE, Kind
from pactgate.inbound.auth import Guard
from pactgate.inbound.error_data import encode_internal, encode_refusal, with_data
from pactgate.protocol import messages
from pactgate.protocol.messages import Rejection
from tests.support.each import each
from tests.support.facing import call, credentials, message, modern, serving
from tests.support.raw_http import get, post, request

_JSON = {"content_type": "application/json", "accept": "application/json, text/event-stream"}
_TOKENS = {"t" * 20: ("ann", frozenset[str]())}


def facts_of(answer: Any) -> tuple[str, str]:
    data = answer.json["error"]["data"]
    return data["failure_mode"], data["code"]


@pytest.mark.requirement("S4/FMT-ERR")
@pytest.mark.requirement("S2/MCP-003")
@pytest.mark.parametrize(
    ("sent", "status", "mode", "code"),
    [
        (post(b"{nonsense", **_JSON), 400, "parse_error", "INVALID_FORMAT"),
        (post(b'{"jsonrpc":"1.0"}', **_JSON), 400, "invalid_request", "INVALID_FORMAT"),
        (get("/nowhere"), 404, "unknown_path", "NOT_FOUND"),
        (modern("tools/call", "/mcp/none", name="echo"), 404, "unknown_path", "NOT_FOUND"),
        (request("PUT", "/mcp", {"host": "localhost"}), 405, "invalid_request", "INVALID_FORMAT"),
        (post(call("echo"), content_type="text/plain"), 415, "invalid_request", "INVALID_FORMAT"),
        (
            post(call("echo"), content_type="application/json", accept="image/png"),
            406,
            "invalid_request",
            "INVALID_FORMAT",
        ),
        (get("/mcp", host="elsewhere.example"), 421, "permission_denied", "PERMISSION_DENIED"),
        (get("/mcp", origin="https://elsewhere.example"), 403, "permission_denied", "PERMISSION_DENIED"),
        (get("/mcp", x_long="x" * 100_000), 431, "limit_exceeded", "REQUEST_TOO_LARGE"),
        (post(b" " * 9, content_length="99999999999", **_JSON), 413, "limit_exceeded", "REQUEST_TOO_LARGE"),
        (post(message("tools/list"), mcp_session_id="none", **_JSON), 404, "unknown_session", "NOT_FOUND"),
        (
            request(
                "DELETE", "/mcp", {"host": "localhost", "mcp-session-id": "x", "mcp-protocol-version": "1999-01-01"}
            ),
            400,
            "unsupported_version",
            "NOT_IMPLEMENTED",
        ),
        (modern("no/such"), 404, "method_not_found", "NOT_IMPLEMENTED"),
        (modern("tools/call", name="echo", mcp_name="other"), 400, "header_mismatch", "INVALID_INPUT"),
    ],
)
async def test_every_refusal_at_the_door_says_its_failure_mode_and_code(
    sent: bytes, status: int, mode: str, code: str
) -> None:
    async with serving() as served:
        answer = await served.ask(sent)
        assert (answer.status, *facts_of(answer)) == (status, mode, code)


@pytest.mark.requirement("S4/FMT-ERR")
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}])
async def test_a_client_without_a_good_token_is_told_so_in_the_data_too(headers: dict[str, str]) -> None:
    guard = Guard(host="127.0.0.1", credentials=credentials(_TOKENS))
    async with serving(guard=guard) as served:
        answer = await served.ask(get("/mcp", **headers))
        assert (answer.status, *facts_of(answer)) == (401, "unauthenticated", "PERMISSION_DENIED")


def test_data_that_a_refusal_has_is_kept_beside_the_facts() -> None:
    known = with_data(Rejection(messages.UNSUPPORTED_VERSION, "no", b"1", {"supported": ["a"], "requested": "b"}))
    assert known.data is not None
    assert known.data["supported"] == ["a"]
    assert known.data["failure_mode"] == "unsupported_version"
    own = Rejection(messages.INVALID_REQUEST, "no", b"1", {"failure_mode": "mine"})
    assert with_data(own, 401) is own


@each("kind", Kind)
def test_every_number_of_the_table_gives_data(kind: Kind) -> None:
    body = encode_refusal(Rejection(TABLE[kind].number, "no", b"1"))
    assert messages.value(body)["error"]["data"]["failure_mode"]


def test_an_internal_error_keeps_the_id_and_says_whose_fault_it_is() -> None:
    error = messages.value(encode_internal(b'"seven"'))
    assert (error["id"], error["error"]["data"]["party"]) == ("seven", "gateway")
