"""The failure table and its views."""

from __future__ import annotations

import json

import pytest

from pactgate.core import failures
from pactgate.core.failures import (
    RETRYABLE_ERRORS,
    TABLE,
    Category,
    ErrorCode,
    GatewayFailure,
    Kind,
    Plane,
    Verdict,
    WireSettings,
    http_status,
    to_reply,
)
from pactgate.protocol import messages
from pactgate.protocol.versions import Era
from tests.support.each import each

DEFAULT = WireSettings()


def reply_to(
    kind: Kind, *, is_tool_call: bool = True, era: Era = Era.LEGACY, wire: WireSettings = DEFAULT
) -> failures.Reply:
    return to_reply(
        GatewayFailure(kind, "it broke", tool="a.b"), is_tool_call=is_tool_call, era=era, wire=wire, request_id="r1"
    )


@pytest.mark.requirement("S4/CODES")
@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (Kind.PARSE_ERROR, -32700),
        (Kind.INVALID_REQUEST, -32600),
        (Kind.METHOD_NOT_FOUND, -32601),
        (Kind.INVALID_PARAMS, -32602),
        (Kind.UNKNOWN_TOOL, -32602),
        (Kind.AMBIGUOUS_TOOL, -32602),
        (Kind.INVALID_ARGUMENTS, -32602),
        (Kind.LIMIT_EXCEEDED, -32602),
        (Kind.CALL_TIMEOUT, -32603),
        (Kind.CONNECT_TIMEOUT, -32603),
        (Kind.INTERNAL, -32603),
    ],
)
def test_failures_of_the_contract_and_timeouts_are_errors_with_the_documents_numbers(kind: Kind, number: int) -> None:
    reply = reply_to(kind)
    assert reply.error is not None
    assert reply.error.code == number
    assert reply.result is None


@pytest.mark.requirement("S4/FMT-ERR")
@each("kind", list(Kind))
def test_every_error_says_how_it_failed_and_whether_the_action_can_have_run(kind: Kind) -> None:
    reply = reply_to(kind, is_tool_call=False)
    assert reply.error is not None
    data = reply.error.data
    assert data["failure_mode"] == TABLE[kind].mode
    assert data["category"] in set(Category)
    assert data["code"] in set(ErrorCode)
    assert data["verdict"] in set(Verdict)
    assert data["tool"] == "a.b"
    assert data["requestId"] == "r1"


@pytest.mark.requirement("S4/FMT-RES")
@pytest.mark.requirement("S4/F2")
@pytest.mark.parametrize("kind", [Kind.UPSTREAM_ERROR, Kind.HTTP_STATUS, Kind.CONNECTION_LOST, Kind.CONNECTION_FAILED])
def test_upstream_and_other_transport_failures_of_a_tool_call_are_results_with_is_error(kind: Kind) -> None:
    reply = reply_to(kind)
    assert reply.result is not None
    result = json.loads(reply.result)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "it broke"}]
    assert result["_meta"]["dev.pactgate/envelope"]["failure"]["failure_mode"] == TABLE[kind].mode
    assert "resultType" not in result


def test_an_error_result_for_a_modern_caller_is_complete() -> None:
    reply = reply_to(Kind.UPSTREAM_ERROR, era=Era.MODERN)
    assert reply.result is not None
    assert json.loads(reply.result)["resultType"] == "complete"


def test_methods_that_have_no_tool_result_answer_every_failure_as_an_error() -> None:
    reply = reply_to(Kind.UPSTREAM_ERROR, is_tool_call=False)
    assert reply.error is not None
    assert reply.error.code == messages.INTERNAL_ERROR


@pytest.mark.parametrize(
    ("kind", "wire"),
    [
        (Kind.CALL_TIMEOUT, WireSettings(timeouts=Plane.RESULT)),
        (Kind.CONNECT_TIMEOUT, WireSettings(timeouts=Plane.RESULT)),
        (Kind.INVALID_ARGUMENTS, WireSettings(argument_errors=Plane.RESULT)),
        (Kind.LIMIT_EXCEEDED, WireSettings(argument_errors=Plane.RESULT)),
    ],
)
def test_an_operator_may_have_timeouts_and_argument_errors_shown_to_the_model(kind: Kind, wire: WireSettings) -> None:
    assert reply_to(kind, wire=wire).result is not None
    assert reply_to(kind).error is not None


def test_every_kind_has_a_row_and_every_mode_is_its_kind_or_a_timeout() -> None:
    assert set(TABLE) == set(Kind)
    for kind, row in TABLE.items():
        assert row.mode == kind.value or row.mode == "timeout"


@pytest.mark.parametrize("code", list(ErrorCode))
def test_a_failure_is_transient_exactly_when_its_code_is_retryable(code: ErrorCode) -> None:
    assert GatewayFailure(Kind.HTTP_STATUS, "x", code=code).is_transient is (code in RETRYABLE_ERRORS)


def test_the_record_leaves_out_what_is_not_known_and_keeps_details_last() -> None:
    failure = GatewayFailure(
        Kind.CONNECTION_FAILED,
        "no",
        server="a",
        operation="connect",
        attempts=4,
        retry_after_ms=5,
        details={"status": 1},
    )
    assert failure.record() == {
        "failure_mode": "connection_failed",
        "category": "transport_failure",
        "code": "SERVICE_UNAVAILABLE",
        "party": "upstream",
        "verdict": "did_not_run",
        "transient": True,
        "ecosystemCode": "MCP_ECO_CONNECTION_FAILED",
        "server": "a",
        "operation": "connect",
        "attempts": 4,
        "retryAfterMs": 5,
        "status": 1,
    }


def test_what_an_upstream_said_never_stands_in_for_a_fact_of_ours() -> None:
    said = {"code": "RATE_LIMITED", "verdict": "did_not_run", "transient": True, "retryAfterMs": 1, "hint": "x"}
    record = GatewayFailure(Kind.UPSTREAM_ERROR, "no", details=said).record()
    assert (record["code"], record["verdict"], record["transient"]) == ("OPERATION_FAILED", "may_have_run", False)
    assert "retryAfterMs" not in record
    assert record["hint"] == "x"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (-32700, 400),
        (-32600, 400),
        (-32601, 404),
        (-32602, 400),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (-32603, 200),
        (7, 200),
    ],
)
def test_modern_errors_have_the_specifications_statuses(code: int, status: int) -> None:
    assert http_status(code) == status


def test_a_failure_is_shared_without_anything_that_a_server_wrote() -> None:
    details = {
        "exitCode": 3,
        "signal": "SIGKILL",
        "permanent": True,
        "upstream": {"message": "own words"},
        "body": "own words",
    }
    failure = GatewayFailure(
        Kind.CONNECTION_LOST,
        "db ended with exit code 3: own words",
        public="db ended with exit code 3",
        details=details,
    )
    shared = failure.shared(operation="tools/call")
    assert (shared.message, str(shared)) == ("db ended with exit code 3", "db ended with exit code 3")
    assert "own words" not in str(shared.record())
    assert shared.details == {"exitCode": 3, "signal": "SIGKILL", "permanent": True}
    assert failure.message.endswith("own words")


def test_a_failure_without_words_of_a_server_is_shared_as_it_is() -> None:
    failure = GatewayFailure(Kind.CONNECTION_FAILED, "no such program", details={"errno": "ENOENT"})
    failure.reword(str.upper)
    assert failure.shared().record() == failure.record()
    assert failure.shared().message == "NO SUCH PROGRAM"
