"""INV-001 to INV-007 as documented, with the edge cases that a reader of the document will ask about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.conformance.check import check_capture
from pactgate.conformance.rule import CheckStatus
from pactgate.protocol.modern import CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY
from tests.conformance.captures import (
    HINTS,
    MODERN,
    call,
    capture,
    failed,
    handshake,
    modern,
    notice,
    request,
    status,
    verdicts,
)

PASS, FAIL, NOT_APPLICABLE, NOT_JUDGED = (
    CheckStatus.PASS,
    CheckStatus.FAIL,
    CheckStatus.NOT_APPLICABLE,
    CheckStatus.NOT_JUDGED,
)
DOCUMENT = Path(__file__).parents[2] / "examples" / "captures" / "document.json"
TOOLS = call(2, "tools/list", None, {"tools": []})
DISCOVERY = modern(1, "server/discover", {**HINTS, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})


def initialize(result: Any = None, id_: int = 1) -> dict[str, Any]:
    return call(id_, "initialize", {}, {} if result is None else result)


def tool_result(result: Any) -> dict[str, Any]:
    return capture(*handshake(), call(2, "tools/call", {"name": "x"}, result))


def error_answer(error: Any) -> dict[str, Any]:
    return capture(
        *handshake(), failed(2, "tools/call", error, {"name": "x"}), call(3, "tools/list", None, {"tools": []})
    )


@pytest.mark.requirement("S3/CAPTURE", "S3/INV-002")
def test_the_documents_own_example_is_read_and_lacks_only_the_initialized_notification() -> None:
    report = check_capture(DOCUMENT)
    failures = [result.code for _, result in report.failures()]
    assert (report.exit_code, failures) == (1, ["INV-002"])
    assert check_capture(DOCUMENT, allow_missing_initialized=True).passed


@pytest.mark.requirement("S3/INV-001")
@pytest.mark.parametrize(
    ("exchanges", "expected"),
    [
        ([initialize(), notice("notifications/initialized"), TOOLS], PASS),
        ([TOOLS, initialize(id_=3)], FAIL),
        ([notice("notifications/cancelled", {}), initialize()], PASS),
        ([TOOLS], FAIL),
        ([], NOT_APPLICABLE),
        ([notice("notifications/initialized")], NOT_APPLICABLE),
        ([call(1, "ping", None, {}), initialize(id_=2)], FAIL),
        ([{"request": request(1, "roots/list"), "direction": "server_to_client"}, initialize()], PASS),
        ([DISCOVERY, modern(2, "tools/list", {**HINTS, "tools": []})], NOT_APPLICABLE),
        ([failed(1, "server/discover", {"code": -32601, "message": "?"}, {"_meta": MODERN}), initialize(id_=2)], PASS),
        ([{"request": [request(1, "tools/list"), request(2, "initialize")]}], FAIL),
    ],
    ids=[
        "first",
        "second",
        "notification first",
        "never",
        "empty",
        "no request",
        "ping first",
        "a request of the server first",
        "modern",
        "a modern probe first",
        "batch",
    ],
)
def test_initialize_is_the_first_request(exchanges: list[Any], expected: CheckStatus) -> None:
    assert status(capture(*exchanges), "INV-001") is expected


@pytest.mark.requirement("S3/INV-001")
def test_a_ping_before_initialize_fails_with_a_word_on_the_specification() -> None:
    verdict = verdicts(capture(call(1, "ping", None, {}), initialize(id_=2)))["INV-001"]
    assert verdict.evidence[0].pointer == "/request/method"
    assert "specification allows a ping" in verdict.notes[0]


@pytest.mark.requirement("S3/INV-001", "S3/INV-002")
def test_the_era_can_be_said_instead_of_detected() -> None:
    probed = capture(DISCOVERY, modern(2, "tools/list", {**HINTS, "tools": []}))
    assert status(probed, "INV-001", era="legacy") is FAIL
    assert status(capture(TOOLS), "INV-001", era="modern") is NOT_APPLICABLE
    assert status(capture(*handshake(), TOOLS), "INV-002", era="modern") is NOT_APPLICABLE


INITIALIZED = notice("notifications/initialized")


@pytest.mark.requirement("S3/INV-002")
@pytest.mark.parametrize(
    ("exchanges", "expected"),
    [
        ([initialize(), INITIALIZED, TOOLS], PASS),
        ([initialize(), INITIALIZED], PASS),
        ([INITIALIZED, initialize(), TOOLS], FAIL),
        ([initialize(), TOOLS], FAIL),
        ([initialize(), TOOLS, INITIALIZED], FAIL),
        ([initialize(), call(2, "ping", None, {}), INITIALIZED], PASS),
        ([initialize(), call(2, "ping", None, {})], NOT_APPLICABLE),
        ([initialize()], NOT_APPLICABLE),
        ([failed(1, "initialize", {"code": -32602, "message": "no"}), TOOLS], NOT_APPLICABLE),
        ([{"request": request(1, "initialize")}, TOOLS], NOT_APPLICABLE),
        ([DISCOVERY], NOT_APPLICABLE),
    ],
    ids=[
        "after",
        "nothing else",
        "before",
        "absent",
        "late",
        "a ping between",
        "only a ping follows",
        "nothing follows",
        "initialize failed",
        "initialize lost",
        "modern",
    ],
)
def test_initialized_follows_the_answer_to_initialize(exchanges: list[Any], expected: CheckStatus) -> None:
    assert status(capture(*exchanges), "INV-002") is expected


@pytest.mark.requirement("S3/INV-002")
def test_initialized_sent_twice_is_mentioned() -> None:
    verdict = verdicts(capture(initialize(), INITIALIZED, INITIALIZED, TOOLS))["INV-002"]
    assert verdict.status is PASS
    assert "exchange 2" in verdict.notes[0]


@pytest.mark.requirement("S3/INV-002")
def test_where_the_recorder_numbered_messages_the_numbers_decide_what_came_first() -> None:
    opening = {**initialize(), "seq": 1, "response_seq": 3}
    early = {**INITIALIZED, "seq": 2}
    assert status(capture(opening, early, {**TOOLS, "seq": 4}), "INV-002") is FAIL


@pytest.mark.requirement("S3/INV-003")
@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"tools": {}}, PASS),
        ({"tools": {"listChanged": True}, "x": 1}, PASS),
        ({"tools": True}, PASS),
        ({"tools": None}, FAIL),
        ({"tools": False}, FAIL),
        ({"prompts": {}}, FAIL),
        ({}, FAIL),
        (None, FAIL),
    ],
)
def test_what_is_listed_was_advertised(block: Any, expected: CheckStatus) -> None:
    session = {"server_label": "a", "server_capabilities": block, "exchanges": [*handshake(), TOOLS]}
    assert status(session, "INV-003") is expected


@pytest.mark.requirement("S3/INV-003")
def test_each_list_that_was_not_advertised_is_named() -> None:
    lists = [call(n, f"{kind}/list", None, {kind: []}) for n, kind in enumerate(("tools", "resources", "prompts"), 2)]
    verdict = verdicts(capture(*handshake(), *lists, capabilities={"tools": {}}))["INV-003"]
    assert [evidence.exchange for evidence in verdict.evidence] == [3, 4]
    assert "resources/list" in verdict.message


@pytest.mark.requirement("S3/INV-003")
def test_an_error_or_a_lost_answer_claims_no_capability() -> None:
    refused = failed(2, "tools/list", {"code": -32601, "message": "Method not found"})
    lost = {"request": request(3, "prompts/list")}
    assert status(capture(*handshake(), refused, lost, capabilities={"x": {}}), "INV-003") is NOT_APPLICABLE


@pytest.mark.requirement("S3/INV-003")
def test_a_block_that_differs_from_the_handshake_is_mentioned() -> None:
    session = capture(*handshake(capabilities={"prompts": {}}), TOOLS, capabilities={"tools": {}})
    verdict = verdicts(session)["INV-003"]
    assert verdict.status is PASS
    assert "differs" in verdict.notes[0]


@pytest.mark.requirement("S3/INV-003")
def test_in_a_modern_session_discovery_takes_the_place_of_the_block() -> None:
    lists = modern(2, "prompts/list", {**HINTS, "prompts": []}), modern(3, "tools/list", {**HINTS, "tools": []})
    discovered = {"server_label": "m", "exchanges": [DISCOVERY, *lists]}
    verdict = verdicts(discovered)["INV-003"]
    assert verdict.status is FAIL
    assert "prompts" in verdict.message
    assert status({"server_label": "m", "exchanges": [*lists]}, "INV-003") is NOT_JUDGED


@pytest.mark.requirement("S3/INV-004")
@pytest.mark.parametrize(
    ("errors", "calls", "expected"), [(0, 3, PASS), (2, 3, PASS), (3, 3, FAIL), (0, 0, PASS), (1, 1, FAIL)]
)
def test_not_every_call_to_an_advertised_capability_fails(errors: int, calls: int, expected: CheckStatus) -> None:
    exchanges = [
        failed(n, "tools/call", {"code": -32603, "message": "no"}, {"name": "x"})
        if n < errors + 2
        else call(n, "tools/call", {"name": "x"}, {"content": []})
        for n in range(2, calls + 2)
    ]
    verdict = verdicts(capture(*handshake(), *exchanges))["INV-004"]
    assert verdict.status is expected
    assert any("Weak evidence" in note for note in verdict.notes) == (errors == calls == 1)


@pytest.mark.requirement("S3/INV-004")
def test_tool_errors_and_lost_answers_are_no_failed_calls() -> None:
    error = failed(2, "tools/list", {"code": -32603, "message": "no"})
    tool_error = call(3, "tools/call", {"name": "x"}, {"content": [], "isError": True})
    assert status(capture(*handshake(), error, tool_error), "INV-004") is PASS
    assert status(capture(*handshake(), {"request": request(2, "tools/list")}), "INV-004") is PASS
    assert status(capture(*handshake(), error, capabilities={"logging": {}}), "INV-004") is PASS


@pytest.mark.requirement("S3/INV-004")
@pytest.mark.parametrize(
    ("method", "capability"),
    [
        ("completion/complete", "completions"),
        ("logging/setLevel", "logging"),
        ("prompts/get", "prompts"),
        ("resources/read", "resources"),
    ],
)
def test_each_family_of_methods_belongs_to_its_capability(method: str, capability: str) -> None:
    error = failed(2, method, {"code": -32603, "message": "no"})
    assert status(capture(*handshake(), error, capabilities={capability: {}}), "INV-004") is FAIL


@pytest.mark.requirement("S3/INV-005")
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"content": []}, PASS),
        ({"content": [], "isError": False}, PASS),
        ({"structuredContent": {}}, PASS),
        ({"content": {}, "structuredContent": {}}, PASS),
        ({"content": {}}, FAIL),
        ({}, FAIL),
        ({"structuredContent": []}, FAIL),
        ({"content": [], "isError": "false"}, FAIL),
        ({"content": [], "isError": 0}, FAIL),
        ({"content": [], "isError": None}, FAIL),
        ([], FAIL),
        (None, FAIL),
        ({"resultType": "input_required"}, FAIL),
    ],
)
def test_a_tool_result_has_content_and_a_boolean_is_error(result: Any, expected: CheckStatus) -> None:
    assert status(tool_result(result), "INV-005") is expected


@pytest.mark.requirement("S3/INV-005")
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"resultType": "input_required", "requestState": "s"}, NOT_APPLICABLE),
        ({"resultType": "task", "taskId": "t"}, NOT_APPLICABLE),
        ({"resultType": "complete", "structuredContent": [1]}, PASS),
        ({"resultType": "complete", "structuredContent": None}, PASS),
        ({"resultType": "complete"}, FAIL),
    ],
)
def test_modern_results_may_be_of_another_kind_or_hold_any_json(result: Any, expected: CheckStatus) -> None:
    assert status(capture(modern(1, "tools/call", result, {"name": "x"})), "INV-005") is expected


@pytest.mark.requirement("S3/INV-005")
def test_a_task_handle_is_a_result_of_its_own_in_the_revision_that_has_tasks() -> None:
    asked = {"name": "x", "task": {"ttl": 1}}
    handle = call(2, "tools/call", asked, {"task": {"taskId": "t", "status": "working"}})
    assert status(capture(*handshake("2025-11-25"), handle), "INV-005") is NOT_APPLICABLE
    assert status(capture(*handshake("2025-06-18"), handle), "INV-005") is FAIL


@pytest.mark.requirement("S3/INV-006")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": -32601, "message": "m"}, PASS),
        ({"code": 10**30, "message": ""}, PASS),
        ({"code": "-32601", "message": "m"}, FAIL),
        ({"code": 1.5, "message": "m"}, FAIL),
        ({"code": 1.0, "message": "m"}, FAIL),
        ({"code": True, "message": "m"}, FAIL),
        ({"code": None, "message": "m"}, FAIL),
        ({"message": "m"}, FAIL),
        ({"code": 1}, FAIL),
        ({"code": 1, "message": 2}, FAIL),
        (None, FAIL),
        ("x", FAIL),
    ],
)
def test_an_error_has_an_integer_code_and_a_text(error: Any, expected: CheckStatus) -> None:
    assert status(error_answer(error), "INV-006") is expected


@pytest.mark.requirement("S3/INV-006")
def test_an_empty_message_and_an_answer_that_is_both_are_mentioned() -> None:
    assert "empty" in verdicts(error_answer({"code": 1, "message": ""}))["INV-006"].notes[0]
    both = call(2, "tools/list", None, {"tools": []})
    both["response"]["error"] = {"code": 1, "message": "m"}
    verdict = verdicts(capture(*handshake(), both))["INV-006"]
    assert verdict.status is PASS
    assert "both" in verdict.notes[0]


@pytest.mark.requirement("S3/INV-006")
def test_errors_of_the_client_are_judged_too() -> None:
    refusal = failed("s1", "roots/list", {"code": "x", "message": "m"}, direction="server_to_client")
    assert status(capture(*handshake(), refusal), "INV-006") is FAIL


@pytest.mark.requirement("S3/INV-007")
@pytest.mark.parametrize(
    ("method", "code", "message", "expected"),
    [
        ("tools/list", -32601, "Method not found", PASS),
        ("tools/list", -32600, "Method not found", FAIL),
        ("tools/list", -32603, 'Unknown method "tools/list"', FAIL),
        ("tools/list", -32000, "The method tools/list is not supported", FAIL),
        ("tools/list", -32000, "No handler registered for method tools/list", FAIL),
        ("tools/list", -32000, "METHOD_NOT_FOUND", FAIL),
        ("tools/call", -32602, "Tool not found: x", NOT_APPLICABLE),
        ("tools/call", -32602, "No handler for tool 'x'", NOT_APPLICABLE),
        ("tools/call", -32602, "Unknown tool: method", NOT_APPLICABLE),
        ("resources/read", -32002, "Resource not found", NOT_APPLICABLE),
        ("resources/read", -32002, "The method of this resource was not found", NOT_APPLICABLE),
        ("tools/call", -32603, "HTTP method not allowed", NOT_APPLICABLE),
        ("nope/nope", -32602, "Invalid request parameters", FAIL),
        ("nope/nope", -32000, "Not today", NOT_APPLICABLE),
    ],
)
def test_a_method_that_is_not_found_has_its_own_code(
    method: str, code: int, message: str, expected: CheckStatus
) -> None:
    exchange = failed(2, method, {"code": code, "message": message})
    assert status(capture(*handshake(), exchange), "INV-007") is expected


@pytest.mark.requirement("S3/INV-007")
def test_a_foreign_method_that_works_or_was_advertised_may_have_errors_of_its_own() -> None:
    error = failed(2, "vendor/thing", {"code": -32602, "message": "bad argument"})
    worked = call(3, "vendor/thing", {}, {})
    assert status(capture(*handshake(), error), "INV-007") is FAIL
    assert status(capture(*handshake(), error, worked), "INV-007") is NOT_APPLICABLE
    blocks: list[dict[str, Any]] = [
        {"vendor": {}},
        {"experimental": {"vendor": {}}},
        {"extensions": {"com.example/vendor": {}}},
    ]
    for block in blocks:
        assert status(capture(*handshake(), error, capabilities=block), "INV-007") is NOT_APPLICABLE


def test_a_session_that_speaks_both_eras_is_judged_by_each() -> None:
    enveloped = {PROTOCOL_VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}, CLIENT_INFO_KEY: {}}
    mixed = capture(
        failed(1, "server/discover", {"code": -32601, "message": "Method not found"}, {"_meta": enveloped}),
        *handshake(id_=2),
        call(3, "tools/list", None, {"tools": []}),
    )
    found = verdicts(mixed)
    assert {code: found[code].status for code in ("INV-001", "INV-002", "INV-003")} == {
        "INV-001": PASS,
        "INV-002": PASS,
        "INV-003": PASS,
    }
    assert found["GW-031"].status is NOT_APPLICABLE
