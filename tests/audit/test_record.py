"""The record of one call says what its sealed context says, within bounds and without secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.audit.argument_shapes import Masking
from pactgate.audit.chain import MAX_LINE_BYTES
from pactgate.audit.record import MAX_ARGUMENTS_BYTES, MAX_DECODED_BYTES, Detail, call_facts, change_facts, own_facts
from pactgate.core.context import ExecutionContext
from pactgate.core.contract import Operation
from pactgate.core.events import ConfigurationChanged
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.masking import Mask
from pactgate.core.values import Tool, Traits
from tests.support.callers import caller, context

SECRET = "s3cr3t-value"
MASKING = Masking(Mask([SECRET]).start)
TOOL = Tool("files", "read", "files.read", "files__read", b"{}", b"{}", "0", traits=Traits(category="query"))
NOON = 1_800_000_000.25


def facts(ctx: ExecutionContext, params: bytes | None = None, detail: Detail = "shape") -> dict[str, Any]:
    said: dict[str, Any] = json.loads(call_facts(ctx.seal(0.0125), params, NOON, detail, MASKING))
    return said


def test_an_answered_call_is_told_with_who_what_and_how_long() -> None:
    ctx = context(who=caller(session="ab12"))
    ctx.bind(TOOL)
    ctx.requested, ctx.upstream_revision, ctx.gate, ctx.is_validated = "read", "2025-11-25", "add_envelope", True
    assert facts(ctx, b'{"name":"read","arguments":{"path":"a.txt"}}') == {
        "kind": "call",
        "time": "2027-01-15T08:00:00.250Z",
        "requestId": ctx.request_id,
        "subject": "tester",
        "client": "tests/1",
        "session": "ab12",
        "era": "legacy",
        "version": "2025-11-25",
        "server": "files",
        "tool": "files.read",
        "requested": "read",
        "category": "query",
        "arguments": {"path": "string 5"},
        "outcome": "ok",
        "verdict": "ran",
        "gate": "add_envelope",
        "revision": "2025-11-25",
        "durationMs": 12.5,
        "times": {"gateway": 12.5},
        "validated": True,
    }


def test_a_failed_call_has_code_mode_party_verdict_and_the_gate_that_stopped_it() -> None:
    ctx = context()
    ctx.requested, ctx.gate = "reed", "rate"
    ctx.fail(GatewayFailure(Kind.RATE_LIMITED, f"Too many, {SECRET}.", retry_after_ms=1500))
    said = facts(ctx)
    assert (said["outcome"], said["code"], said["party"]) == ("rate_limited", "RATE_LIMITED", "caller")
    assert (said["verdict"], said["retryAfterMs"], said["gate"]) == ("did_not_run", 1500, "rate")
    assert (said["requested"], said["message"]) == ("reed", "Too many, ***.")


def test_an_answer_from_the_cache_means_that_the_action_did_not_run() -> None:
    ctx = context()
    ctx.bind(TOOL)
    ctx.is_cached = True
    said = facts(ctx)
    assert (said["outcome"], said["cached"], said["verdict"]) == ("ok", True, "did_not_run")


def test_a_tools_own_error_ran_and_has_a_code() -> None:
    ctx = context()
    ctx.bind(TOOL)
    ctx.note_tool_error()
    said = facts(ctx)
    assert (said["outcome"], said["verdict"], said["code"]) == ("tool_error", "ran", "OPERATION_FAILED")


@pytest.mark.requirement("S2/MCP-002")
def test_what_a_tool_was_seen_doing_is_recorded_with_the_level_and_every_breach() -> None:
    ctx = context()
    ctx.bind(TOOL)
    ctx.operations = (Operation("filesystem.write", f"/tmp/{SECRET}"), Operation(more=3))
    ctx.violations = ctx.operations[:1]
    ctx.effects_level = "observed"
    said = facts(ctx)
    assert said["operations"] == [{"kind": "filesystem.write", "target": "/tmp/***"}, {"more": 3}]
    assert (said["violations"], said["effects"]) == (["filesystem.write /tmp/***"], "observed")


def test_operations_without_end_are_cut_and_counted() -> None:
    ctx = context()
    ctx.operations = tuple(Operation("network", "x" * 250) for _ in range(1000))
    operations = facts(ctx)["operations"]
    assert operations[-1] == {"more": 1000 - len(operations) + 1}


@pytest.mark.parametrize(
    ("params", "detail", "kept"),
    [
        (b'{"arguments":{"a":"s3cr3t-value"}}', "values", {"a": "***"}),
        (b'{"arguments":{"s3cr3t-value":"x"}}', "shape", {"***": "string 1"}),
        (b'{"arguments":{"a":1}}', "none", None),
        (b'{"name":"x"}', "shape", {}),
        (b"[1]", "shape", "unreadable"),
        (None, "shape", None),
        (
            b'{"arguments":{"a":"%b"}}' % (b"x" * MAX_DECODED_BYTES),
            "values",
            f"params of {MAX_DECODED_BYTES + 22} bytes",
        ),
    ],
)
def test_arguments_are_kept_as_the_setting_says(params: bytes | None, detail: Detail, kept: Any) -> None:
    assert facts(context(), params, detail).get("arguments") == kept


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (b'{"name":"files.read","arguments":{"path":"a.txt"},"timeoutMs":5}', {"path": "string 5"}),
        (b'{"name":"files.read"}', {}),
    ],
)
def test_a_call_through_another_tool_has_the_arguments_of_the_tool_that_ran(arguments: bytes, kept: Any) -> None:
    ctx = context()
    ctx.bind(TOOL)
    ctx.requested, ctx.via = "files.read", "pactgate.tool_invoke"
    said = facts(ctx, b'{"name":"tool_invoke","arguments":%b}' % arguments)
    assert (said["tool"], said["arguments"], said["via"]) == ("files.read", kept, "pactgate.tool_invoke")


def test_a_changed_setting_is_told_with_who_what_and_the_revision() -> None:
    change = ConfigurationChanged("ops", "naming.exposed", '"dot"', f'"{SECRET}"', "2d0567f08bde", True)
    assert json.loads(change_facts(change, NOON, MASKING)) == {
        "kind": "change",
        "time": "2027-01-15T08:00:00.250Z",
        "subject": "ops",
        "path": "naming.exposed",
        "old": '"dot"',
        "new": '"***"',
        "revision": "2d0567f08bde",
        "persisted": True,
    }


LONG = "\x00" * 100_000


def test_a_changed_setting_fits_a_line_however_long_it_is() -> None:
    change = ConfigurationChanged(LONG, LONG, LONG, LONG, "2d0567f08bde", False)
    assert len(change_facts(change, NOON, MASKING)) < MAX_LINE_BYTES - 200


def test_values_too_large_to_keep_become_their_shape() -> None:
    held = {f"k{n}": ["x" * 250] * 8 for n in range(20)}
    kept = facts(context(), json.dumps({"arguments": held}).encode(), "values")["arguments"]
    assert kept["k0"] == "array 8 of string"
    assert len(json.dumps(kept)) < MAX_ARGUMENTS_BYTES


@given(st.text(max_size=50), st.integers(0, 200), st.sampled_from(["shape", "values"]))
def test_a_record_fits_a_line_whatever_was_sent_and_done(text: str, count: int, detail: Detail) -> None:
    ctx = context(who=caller())
    ctx.requested = (text + "\x00") * 10
    ctx.operations = tuple(Operation(text, "\x00" * 5000, more=n) for n in range(count))
    ctx.violations = ctx.operations
    ctx.fail(GatewayFailure(Kind.INTERNAL, "\x02" * 100_000))
    params = json.dumps({"arguments": {text: ["\x03" * 300] * count, **{f"{n}\x04" * 50: n for n in range(count)}}})
    line = call_facts(ctx.seal(0), params.encode(), NOON, detail, MASKING)
    assert len(line) < MAX_LINE_BYTES - 200


def test_the_log_tells_of_itself_too() -> None:
    assert json.loads(own_facts("gap", NOON, lostCalls=3)) == {
        "kind": "gap",
        "time": "2027-01-15T08:00:00.250Z",
        "lostCalls": 3,
    }
