"""The envelope of a finished call: every outcome fits exactly one schema, and the three views agree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import Raw

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import (
    ENVELOPE_KEY,
    RETRYABLE_ERRORS,
    TABLE,
    EcosystemCode,
    ErrorCode,
    GatewayFailure,
    Kind,
    Reply,
    Verdict,
    WireSettings,
    to_reply,
)
from pactgate.policy.envelope import (
    ECOSYSTEM_SCHEMA,
    ERROR_SCHEMA,
    SUCCESS_SCHEMA,
    CallFacts,
    Outcome,
    ecosystem_view,
    encode_envelope,
    encode_view,
    failure_facts,
    failure_of,
    merge_meta,
    room_bytes,
    runtime_view,
    stamp_failure,
)
from pactgate.protocol.messages import encode_json, members
from pactgate.protocol.modern import PREFIX, SERVER_INFO_KEY
from pactgate.protocol.versions import Era
from tests.support.callers import caller
from tests.support.each import each

REQUEST_ID = ExecutionContext("tools/call", caller(), 0.0).request_id
SUCCESS, ERROR = Draft202012Validator(SUCCESS_SCHEMA), Draft202012Validator(ERROR_SCHEMA)
ECOSYSTEM = Draft202012Validator(ECOSYSTEM_SCHEMA)


def facts(**more: Any) -> CallFacts:
    return CallFacts(**{"request_id": REQUEST_ID, "duration_ms": 12.9, "server": "crm", "tool": "crm.find", **more})


def result(*texts: str, **more: Any) -> bytes:
    return encode_json({"content": [{"type": "text", "text": text} for text in texts], **more})


def checked_view(about: CallFacts, outcome: Outcome) -> dict[str, Any]:
    """The runtime view, which must be exactly one of the two envelopes, and the same after a trip over a wire."""
    view = runtime_view(about, outcome)
    assert SUCCESS.is_valid(view) is not ERROR.is_valid(view)
    assert ERROR.is_valid(view) is not view["success"]
    assert json.loads(json.dumps(view)) == json.loads(encode_view(view)) == view
    ECOSYSTEM.validate(ecosystem_view(about, outcome))
    return view


def error_of(about: CallFacts, outcome: Outcome) -> dict[str, Any]:
    error: dict[str, Any] = checked_view(about, outcome)["error"]
    return error


def stamp(held: dict[str, Raw], about: CallFacts) -> None:
    held["_meta"] = Raw(merge_meta(encode_envelope(about), held.get("_meta")))


def stamped(meta: bytes | None = None, about: CallFacts | None = None, **more: Any) -> dict[str, Any]:
    held = {"content": Raw(b"[]")} | ({} if meta is None else {"_meta": Raw(meta)})
    stamp(held, about or facts(**more))
    read: dict[str, Any] = json.loads(encode_json(held))
    return read


@pytest.mark.requirement("S1/RESP-001")
def test_a_success_is_an_envelope_with_the_result_as_data() -> None:
    own = {"com.example/k": 1, ENVELOPE_KEY: {"requestId": "x"}}
    outcome = result("found", structuredContent={"n": None}, isError=False, resultType="complete", _meta=own)
    assert checked_view(facts(), outcome) == {
        "success": True,
        "data": {
            "content": [{"type": "text", "text": "found"}],
            "structuredContent": {"n": None},
            "_meta": {"com.example/k": 1},
        },
        "metadata": {"durationMs": 12, "cached": False, "truncated": False, "requestId": REQUEST_ID},
    }


def test_a_meta_that_held_only_our_stamp_is_no_part_of_the_data() -> None:
    held = members(result("x"))
    stamp(held, facts())
    assert checked_view(facts(), encode_json(held))["data"] == {"content": [{"type": "text", "text": "x"}]}


@pytest.mark.requirement("S1/RESP-001")
@pytest.mark.requirement("S1/RESP-002")
@pytest.mark.requirement("S1/RESP-005")
@each("kind", list(Kind))
@each("message", ["it broke", "", " \n", "x" * 5000, "é" * 1001])
def test_every_failure_is_an_error_envelope_with_a_code_of_the_set_and_a_message(kind: Kind, message: str) -> None:
    view = checked_view(facts(), GatewayFailure(kind, message, server="crm"))
    assert view["error"]["code"] == TABLE[kind].code
    assert view["error"]["context"]["failure_mode"] == TABLE[kind].mode
    assert 1 <= len(view["error"]["message"].strip()) <= 1000
    assert view["metadata"]["durationMs"] == 12


@pytest.mark.requirement("S1/TIMEOUT-004")
def test_a_timeout_has_its_own_code_in_all_three_views() -> None:
    failure = GatewayFailure(
        Kind.CALL_TIMEOUT, "crm.find did not answer", server="crm", details={"timeoutMs": 50, "limitSource": "category"}
    )
    error = error_of(facts(), failure)
    assert error["code"] == "TOOL_TIMEOUT"
    assert (error["context"]["timeoutMs"], error["context"]["limitSource"]) == (50, "category")
    assert error["context"]["ecosystemCode"] == "MCP_ECO_INVOCATION_FAILED"
    assert ecosystem_view(facts(), failure)["errorCode"] == "MCP_ECO_INVOCATION_FAILED"
    data = failure_facts(facts(), failure)
    assert (data["code"], data["failure_mode"]) == ("TOOL_TIMEOUT", "timeout")


@pytest.mark.requirement("S1/TIMEOUT-004")
def test_a_tool_that_reports_a_timeout_of_its_own_has_not_run_into_ours() -> None:
    outcome = result(
        "TimeoutError: upstream took too long", isError=True, structuredContent={"error": {"code": "TIMEOUT"}}
    )
    error = error_of(facts(), outcome)
    assert (error["code"], error["context"]["toolCode"]) == ("OPERATION_FAILED", "TIMEOUT")
    assert error["retryable"] is False


@pytest.mark.requirement("S1/TIMEOUT-005")
@pytest.mark.requirement("S1/RESP-005")
@each("duration_ms", [0.0, 0.4, 1.0, 99.999, 123456.7, -3.0])
@each(
    "outcome",
    [
        result("ok"),
        result("no", isError=True),
        GatewayFailure(Kind.CALL_TIMEOUT, "slow"),
        GatewayFailure(Kind.RATE_LIMITED, "later"),
        GatewayFailure(Kind.LIMIT_EXCEEDED, "large"),
        GatewayFailure(Kind.UNKNOWN_TOOL, "which?"),
    ],
)
@each("is_cached", [True, False])
def test_every_outcome_says_how_long_it_took_in_whole_milliseconds(
    duration_ms: float, outcome: Outcome, is_cached: bool
) -> None:
    about = facts(duration_ms=duration_ms, is_cached=is_cached)
    metadata = checked_view(about, outcome)["metadata"]
    assert metadata["durationMs"] == max(0, int(duration_ms))
    assert metadata["cached"] is is_cached
    assert ecosystem_view(about, outcome)["durationMs"] == metadata["durationMs"]
    assert stamped(about=about)["_meta"][ENVELOPE_KEY]["durationMs"] == metadata["durationMs"]


@pytest.mark.requirement("S1/RESP-006")
@each("code", list(ErrorCode))
@each("is_idempotent", [True, False, None])
def test_retryable_is_what_the_code_says_unless_the_tool_declares_that_repeating_does_harm(
    code: ErrorCode, is_idempotent: bool | None
) -> None:
    failure = GatewayFailure(Kind.HTTP_STATUS, "x", code=code, retry_after_ms=1500)
    error = error_of(facts(is_idempotent=is_idempotent), failure)
    assert error["retryable"] is (code in RETRYABLE_ERRORS and is_idempotent is not False)
    assert error["context"]["transient"] is (code in RETRYABLE_ERRORS)
    assert error.get("retryAfterMs") == (1500 if error["retryable"] else None)
    assert error["context"].get("retryAfter") == (2 if error["retryable"] else None)


@pytest.mark.parametrize(("wait_ms", "wait_s"), [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (60_000, 60)])
def test_a_wait_is_told_in_milliseconds_and_in_whole_seconds_rounded_up(wait_ms: int, wait_s: int) -> None:
    error = error_of(facts(), GatewayFailure(Kind.RATE_LIMITED, "x", retry_after_ms=wait_ms))
    assert (error["retryAfterMs"], error["context"]["retryAfter"]) == (wait_ms, wait_s)


def test_no_wait_is_advised_where_nobody_knows_one() -> None:
    error = error_of(facts(), GatewayFailure(Kind.CALL_TIMEOUT, "x"))
    assert error["retryable"] is True
    assert "retryAfterMs" not in error
    assert "retryAfter" not in error["context"]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_context_says_whether_anything_can_have_happened(verdict: Verdict) -> None:
    error = error_of(facts(), GatewayFailure(Kind.UPSTREAM_ERROR, "x", verdict=verdict))
    assert error["context"]["dispatched"] is (verdict is not Verdict.DID_NOT_RUN)


@pytest.mark.requirement("S1/RESP-002")
def test_an_upstreams_own_code_is_kept_in_the_context_and_never_becomes_ours() -> None:
    said = {"code": -1, "message": "no", "data": Raw(b'{"code":"X","big":18446744073709551616}')}
    failure = GatewayFailure(
        Kind.UPSTREAM_ERROR, "x", details={"upstream": said, "code": "RATE_LIMITED", "retryable": True}
    )
    error = error_of(facts(), failure)
    assert error["code"] == "OPERATION_FAILED"
    assert error["retryable"] is False
    assert error["context"]["upstream"]["data"] == {"code": "X", "big": 18446744073709551616}


def test_the_context_is_bounded_whatever_an_upstream_said() -> None:
    error = error_of(facts(), GatewayFailure(Kind.UPSTREAM_ERROR, "x", details={"upstream": "y" * 1_000_000}))
    assert error["context"]["leftOut"] == 1
    assert error["context"]["failure_mode"] == "upstream_error"


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (result("no such row", isError=True), "no such row"),
        (result(" one ", "", "two", isError=True), "one\ntwo"),
        (result("", isError=True), "crm.find reported an error without saying which."),
        (encode_json({"content": [], "isError": True}), "crm.find reported an error without saying which."),
        (encode_json({"structuredContent": {}, "isError": True}), "crm.find reported an error without saying which."),
        (
            encode_json({"content": [7, {"type": "image", "text": "x"}, {"type": "text"}], "isError": True}),
            "crm.find reported",
        ),
        (result("x" * 3000, isError=True), "xxx"),
    ],
)
def test_a_tools_own_error_is_told_in_its_own_words(outcome: bytes, message: str) -> None:
    error = error_of(facts(), outcome)
    assert error["message"].startswith(message)
    assert (error["code"], error["context"]["failure_mode"]) == ("OPERATION_FAILED", "tool_error")
    assert error["context"]["verdict"] == "ran"
    view = ecosystem_view(facts(), outcome)
    assert (view["success"], view["isError"]) == (False, True)
    assert view["content"] == json.loads(outcome).get("content", [])
    assert view["error"] == error["message"]
    assert view["errorCode"] == "OPERATION_FAILED"


@pytest.mark.parametrize(
    ("structured", "code"),
    [
        ({"error": {"code": "ROW_LOCKED"}}, "ROW_LOCKED"),
        ({"error": {"code": "not a code"}}, None),
        ({"error": {"code": "X" * 65}}, None),
        ({"error": {"code": 7}}, None),
        ({"error": "x"}, None),
        ({"code": "ROW_LOCKED"}, None),
        ([1], None),
    ],
)
def test_the_code_a_tool_declares_travels_beside_ours(structured: Any, code: str | None) -> None:
    error = error_of(facts(), result("x", isError=True, structuredContent=structured))
    assert error["context"].get("toolCode") == code
    assert error["code"] == "OPERATION_FAILED"


def test_the_ecosystem_view_of_a_success_is_the_content() -> None:
    assert ecosystem_view(facts(), result("found", isError=False)) == {
        "success": True,
        "toolName": "crm.find",
        "serverId": "crm",
        "content": [{"type": "text", "text": "found"}],
        "isError": False,
        "durationMs": 12,
    }


def test_the_ecosystem_view_of_a_failure_has_the_ecosystems_code_where_there_is_one() -> None:
    unknown = ecosystem_view(facts(server=None, tool="nope"), GatewayFailure(Kind.UNKNOWN_TOOL, "There is no nope."))
    assert unknown == {
        "success": False,
        "toolName": "nope",
        "serverId": None,
        "content": [],
        "isError": True,
        "error": "There is no nope.",
        "errorCode": EcosystemCode.TOOL_NOT_FOUND,
        "durationMs": 12,
    }
    assert ecosystem_view(facts(), GatewayFailure(Kind.RATE_LIMITED, "x"))["errorCode"] == "RATE_LIMITED"


@pytest.mark.requirement("S1/RESP-004")
@pytest.mark.parametrize("outcome", [result("cut"), GatewayFailure(Kind.RESPONSE_TOO_LARGE, "too large")])
def test_a_cut_answer_says_so_with_its_original_size(outcome: Outcome) -> None:
    about = facts(is_truncated=True, original_size_bytes=2_000_000)
    metadata = checked_view(about, outcome)["metadata"]
    assert (metadata["truncated"], metadata["originalSizeBytes"]) == (True, 2_000_000)
    ours = stamped(about=about)["_meta"][ENVELOPE_KEY]
    assert (ours["truncated"], ours["originalSizeBytes"]) == (True, 2_000_000)
    whole = stamped()["_meta"][ENVELOPE_KEY]
    assert whole["truncated"] is False
    assert "originalSizeBytes" not in whole


def test_numbers_no_machine_holds_survive_a_view() -> None:
    outcome = b'{"content":[],"structuredContent":{"a":1e400,"b":18446744073709551616}}'
    assert b'{"a":1E+400,"b":18446744073709551616}' in encode_view(runtime_view(facts(), outcome))


def test_the_stamp_says_where_a_result_comes_from() -> None:
    about = facts(is_cached=True, is_validated=True, upstream_revision="2025-11-25")
    assert stamped(about=about) == {
        "content": [],
        "_meta": {
            ENVELOPE_KEY: {
                "requestId": REQUEST_ID,
                "server": "crm",
                "tool": "crm.find",
                "upstreamRevision": "2025-11-25",
                "effects": "unknown",
                "durationMs": 12,
                "cached": True,
                "truncated": False,
                "validated": True,
            }
        },
    }


@pytest.mark.parametrize(
    ("meta", "others"),
    [
        (b"{}", {}),
        (b"{ \n}", {}),
        (b'{ "a":1}', {"a": 1}),
        (b'{"a":{"dev.pactgate/envelope":1}}', {"a": {ENVELOPE_KEY: 1}}),
        (b'{"dev.pactgate/envelope":{"requestId":"forged"},"b":[2]}', {"b": [2]}),
        (b'{"dev.pactgate/envelope":"forged"}', {}),
        (b'{"dev\\u002epactgate/envelope":"forged","b":2}', {"b": 2}),
        (b'{"dev.pactgate\\/envelope":"forged","b":"\\n"}', {"b": "\n"}),
        (b"7", {}),
        (b"null", {}),
        (b"[]", {}),
    ],
)
def test_the_stamp_stands_beside_what_others_put_there_and_replaces_what_claims_to_be_ours(
    meta: bytes, others: dict[str, Any]
) -> None:
    held = {"_meta": Raw(meta)}
    stamp(held, facts())
    pairs = json.loads(bytes(held["_meta"]), object_pairs_hook=list)
    assert [key for key, _ in pairs].count(ENVELOPE_KEY) == 1
    read = json.loads(bytes(held["_meta"]))
    assert read.pop(ENVELOPE_KEY)["requestId"] == REQUEST_ID
    assert read == others


def test_a_meta_with_a_key_twice_is_refused() -> None:
    for meta in (b'{"dev.pactgate/envelope":1,"dev.pactgate/envelope":2}', b'{"a":1,"\\u0061":2}'):
        with pytest.raises(GatewayFailure, match="twice"):
            stamp({"_meta": Raw(meta)}, facts())


OWN = b'{"name":"gate"}'


@pytest.mark.parametrize("size", [0, 5000], ids=["memoised", "large"])
@pytest.mark.parametrize("told", [None, {"name": "theirs"}])
def test_a_modern_caller_is_told_the_servers_identity_or_else_ours_and_a_legacy_one_nothing_of_the_kind(
    size: int, told: dict[str, str] | None
) -> None:
    own = {"a": 1, PREFIX + "other": 2, "pad": "x" * size, **({} if told is None else {SERVER_INFO_KEY: told})}
    text = json.dumps(own).encode()

    def merged(info: bytes = b"", *, strip: bool = False) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(merge_meta(encode_envelope(facts()), text, info, strip_modern=strip))
        assert read.pop(ENVELOPE_KEY)["requestId"] == REQUEST_ID
        return read

    for strip in (False, True):
        assert merged(OWN, strip=strip) == {SERVER_INFO_KEY: {"name": "gate"}, **own}
    assert merged() == own
    assert merged(strip=True) == {"a": 1, "pad": "x" * size}
    assert merged() == own, "one caller's view is not another's"


def test_members_of_meta_keep_their_bytes() -> None:
    held = merge_meta(encode_envelope(facts()), b'{"a": [1.50e1, 18446744073709551616], "b":"\\u0041"}', OWN)
    assert b"[1.50e1, 18446744073709551616]" in held
    assert b'"\\u0041"' in held


@given(
    meta=st.dictionaries(
        st.text(max_size=30) | st.just(ENVELOPE_KEY), st.text(max_size=30) | st.integers(), max_size=4
    ),
    is_ascii=st.booleans(),
    server=st.none() | st.text(max_size=60),
    tool=st.none() | st.text(max_size=200),
    revision=st.none() | st.text(max_size=20),
    size=st.none() | st.integers(0, 2**40),
    duration_ms=st.floats(0, 1e12),
)
def test_a_stamp_is_valid_json_and_takes_no_more_room_than_it_says(
    meta: dict[str, Any],
    is_ascii: bool,
    server: str | None,
    tool: str | None,
    revision: str | None,
    size: int | None,
    duration_ms: float,
) -> None:
    about = CallFacts(REQUEST_ID, duration_ms, server, tool, True, True, size, False, revision)
    held = {"content": Raw(b"[]"), "_meta": Raw(json.dumps(meta, ensure_ascii=is_ascii).encode())}
    before = len(encode_json(held))
    stamp(held, about)
    text = encode_json(held)
    assert len(text) <= before + room_bytes(server, tool, revision)
    read = json.loads(text)["_meta"]
    ours = read.pop(ENVELOPE_KEY)
    assert read == {key: value for key, value in meta.items() if key != ENVELOPE_KEY}
    assert (ours.get("server"), ours.get("tool"), ours.get("upstreamRevision")) == (server, tool, revision)
    assert (ours["durationMs"], ours.get("originalSizeBytes")) == (int(duration_ms), size)


def test_a_stamp_where_there_was_no_meta_takes_no_more_room_than_it_says() -> None:
    held = {"content": Raw(b"[]")}
    stamp(held, facts(original_size_bytes=2**60, duration_ms=1e15, upstream_revision="2025-11-25"))
    assert len(encode_json(held)) <= len(b'{"content":[]}') + room_bytes("crm", "crm.find", "2025-11-25")


def replied(failure: GatewayFailure, *, is_tool_call: bool = True, era: Era = Era.LEGACY) -> Reply:
    wire = WireSettings()
    return to_reply(failure, is_tool_call=is_tool_call, era=era, wire=wire, request_id=REQUEST_ID)


@pytest.mark.parametrize("era", list(Era))
def test_a_failure_shown_as_a_result_carries_the_whole_envelope(era: Era) -> None:
    failure = GatewayFailure(Kind.RATE_LIMITED, "wait", server="crm", retry_after_ms=10)
    reply = stamp_failure(replied(failure, era=era), facts(), failure, 10_000)
    read = json.loads(reply.result or b"")
    ours = read["_meta"][ENVELOPE_KEY]
    assert (read["isError"], read["content"][0]["text"]) == (True, "wait")
    assert (ours["requestId"], ours["durationMs"], ours["tool"]) == (REQUEST_ID, 12, "crm.find")
    assert ours["failure"] == {"message": "wait", **failure_facts(facts(), failure)}
    assert ours["effects"] == "unknown"
    assert (ours["failure"]["retryable"], ours["failure"]["retryAfterMs"], ours["failure"]["retryAfter"]) == (
        True,
        10,
        1,
    )
    assert read.get("resultType") == ("complete" if era is Era.MODERN else None)


def test_a_failures_stamp_leaves_what_stands_beside_it_in_meta() -> None:
    failure = GatewayFailure(Kind.RATE_LIMITED, "wait")
    beside = Reply(result=result("wait", isError=True, _meta={"com.example/k": 1, ENVELOPE_KEY: {"failure": {}}}))
    read = json.loads(stamp_failure(beside, facts(), failure, 10_000).result or b"")
    assert read["_meta"]["com.example/k"] == 1
    assert read["_meta"][ENVELOPE_KEY]["failure"]["code"] == "RATE_LIMITED"


def test_a_failure_shown_as_an_error_carries_the_same_in_its_data() -> None:
    failure = GatewayFailure(Kind.CALL_TIMEOUT, "slow", server="crm")
    reply = stamp_failure(replied(failure), facts(), failure, 10_000)
    assert reply.error is not None
    assert (reply.error.code, reply.error.message) == (-32603, "slow")
    assert reply.error.data == {
        **failure_facts(facts(), failure),
        "effects": "unknown",
        "requestId": REQUEST_ID,
        "durationMs": 12,
    }


@pytest.mark.requirement("S1/RESP-003")
@pytest.mark.parametrize("kind", [Kind.UPSTREAM_ERROR, Kind.CALL_TIMEOUT])
@pytest.mark.parametrize("max_bytes", [100, 700, 1024, 20_000])
def test_a_failure_is_within_the_bound_whatever_an_upstream_said(kind: Kind, max_bytes: int) -> None:
    failure = GatewayFailure(kind, "é" * 50_000, server="crm", details={"upstream": "y" * 50_000, "hint": "z" * 600})
    reply = stamp_failure(replied(failure), facts(), failure, max_bytes)
    if reply.result is not None:
        assert len(reply.result) <= max_bytes
        read = json.loads(reply.result)
        assert read["isError"] is True
        if max_bytes >= 1024:  # the least that can be set
            assert read["_meta"][ENVELOPE_KEY]["failure"]["failure_mode"] == "upstream_error"
            assert read["content"][0]["text"].startswith("é")
    else:
        assert reply.error is not None
        assert len(encode_json(reply.error)) <= max_bytes


def test_only_failures_and_tools_own_errors_are_failures() -> None:
    failure = GatewayFailure(Kind.INTERNAL, "x")
    assert failure_of(facts(), failure) is failure
    assert failure_of(facts(), result("fine")) is None
    told = failure_of(facts(), result("no", isError=True))
    assert told is not None
    assert (told.kind, told.server, told.tool) == (Kind.TOOL_ERROR, "crm", "crm.find")


@pytest.mark.parametrize("content", [[], [{"type": "image", "data": "", "mimeType": "image/png"}]])
def test_an_error_result_without_text_still_has_a_message_in_the_envelope(content: list[Any]) -> None:
    outcome = encode_json({"content": content, "isError": True})
    failure = failure_of(facts(), outcome)
    assert failure is not None
    assert failure_facts(facts(), failure, has_message=True)["message"] == (
        "crm.find reported an error without saying which."
    )
