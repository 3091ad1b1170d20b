"""The story of one call: told from a sealed record or a line of the log, to whom it belongs, and not for ever."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.audit.call_history import MAX_CALLS, MAX_FAILURE_BYTES, CallHistory, advice, call_trace
from pactgate.core.context import ExecutionContext
from pactgate.core.events import GatewayStopped, RequestFinished
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.masking import Mask
from pactgate.core.values import Tool, Traits
from pactgate.protocol.messages import encode_json
from tests.support.callers import caller, context

GATES = (
    "parse_params",
    "resolve_tool",
    "rate_limit",
    "cache_lookup",
    "dispatch",
    "check_result",
    "limit_size",
    "add_envelope",
)
TOOL = Tool("files", "read", "files.read", "files__read", b"{}", b"{}", "0", traits=Traits(category="query"))


class Heard:
    def __init__(self) -> None:
        self.stories = CallHistory(lambda: GATES, wall=lambda: 1_800_000_100.0, clock=lambda: 100.0)

    def finish(
        self, failure: GatewayFailure | None = None, *, gate: str = "add_envelope", **notes: Any
    ) -> ExecutionContext:
        ctx = context()
        if failure is None or gate != "resolve_tool":
            ctx.bind(TOOL)
        ctx.requested, ctx.gate = "read", gate
        for name, note in notes.items():
            setattr(ctx, name, note)
        if failure is not None:
            ctx.fail(failure)
        self.stories.emit(RequestFinished(ctx.seal(0.002)))
        return ctx


def states(story: dict[str, Any]) -> dict[str, str]:
    return {gate["gate"]: gate["state"] for gate in story["gates"]}


def test_an_answered_call_passed_every_gate() -> None:
    heard = Heard()
    ctx = heard.finish(upstream_revision="2025-11-25", is_validated=True)
    story = heard.stories.get(ctx.request_id)
    assert story is not None
    assert set(states(story).values()) == {"passed"}
    assert (story["tool"], story["server"], story["category"], story["outcome"]) == (
        "files.read",
        "files",
        "query",
        "ok",
    )
    assert (story["time"], story["revision"], story["verdict"]) == ("2027-01-15T08:00:00.000Z", "2025-11-25", "ran")
    assert story["source"] == "gateway"


def test_a_call_that_was_stopped_says_where_why_and_what_to_do() -> None:
    heard = Heard()
    ctx = heard.finish(GatewayFailure(Kind.RATE_LIMITED, "Too many.", retry_after_ms=2500), gate="rate_limit")
    story = heard.stories.get(ctx.request_id)
    assert story is not None
    assert states(story) == {
        **dict.fromkeys(("parse_params", "resolve_tool"), "passed"),
        "rate_limit": "stopped",
        **dict.fromkeys(GATES[3:], "not reached"),
    }
    assert (story["code"], story["party"], story["message"]) == ("RATE_LIMITED", "caller", "Too many.")
    assert story["next"] == "Nothing was done. Wait 3 s, then send it again."
    assert story["failure"]["failure_mode"] == "rate_limited"


def test_a_kept_answer_went_round_the_server() -> None:
    heard = Heard()
    ctx = heard.finish(is_cached=True)
    story = heard.stories.get(ctx.request_id)
    assert story is not None
    assert {gate for gate, state in states(story).items() if state == "skipped"} == {"dispatch", "check_result"}


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (Kind.CALL_TIMEOUT, "look before you call again"),
        (Kind.CANCELLED, "gave up"),
        (Kind.CONNECTION_FAILED, "pactgate doctor"),
        (Kind.AUDIT_UNAVAILABLE, "operator"),
        (Kind.SCHEMA_MISMATCH, "does it twice"),
        (Kind.UNKNOWN_TOOL, "Correct the call"),
    ],
)
def test_every_failure_has_advice_that_fits_it(kind: Kind, word: str) -> None:
    heard = Heard()
    ctx = heard.finish(GatewayFailure(kind, "x"), gate="resolve_tool")
    story = heard.stories.get(ctx.request_id)
    assert story is not None
    assert word in story["next"]


def test_a_tools_own_error_is_the_tools_to_explain() -> None:
    assert "tool itself" in advice({"outcome": "tool_error"})


def test_only_calls_are_remembered_and_only_so_many() -> None:
    heard = Heard()
    first = heard.finish()
    heard.stories.emit(GatewayStopped("done"))
    heard.stories.emit(RequestFinished(context("tools/list").seal(0)))
    assert len(heard.stories.latest(10)) == 1
    for _ in range(MAX_CALLS):
        last = heard.finish()
    assert heard.stories.get(first.request_id) is None
    assert heard.stories.get(last.request_id) is not None
    assert heard.stories.latest(5)[0]["requestId"] == last.request_id
    assert len(heard.stories.latest(10**6)) <= MAX_CALLS


def test_what_an_upstream_said_is_kept_within_bounds() -> None:
    heard = Heard()
    details = {"body": "x" * 10**6, "status": 500}
    ctx = heard.finish(GatewayFailure(Kind.HTTP_STATUS, "m" * 10**6, details=details))
    story = heard.stories.get(ctx.request_id)
    assert story is not None
    assert len(encode_json(story)) < 2 * MAX_FAILURE_BYTES
    assert story["failure"]["status"] == 500


def test_a_caller_sees_its_own_calls_and_no_others() -> None:
    heard = Heard()
    ctx = heard.finish()
    assert heard.stories.get(ctx.request_id, "tester") is not None
    assert heard.stories.get(ctx.request_id, "somebody else") is None
    assert heard.stories.latest(5, "somebody else") == []


def test_a_list_has_only_the_calls_that_are_kept() -> None:
    heard = Heard()
    kept = heard.finish()
    heard.finish(GatewayFailure(Kind.CONNECTION_LOST, "gone"), gate="dispatch")
    rows = heard.stories.latest(5, keeps=lambda row: row["outcome"] == "ok")
    assert [row["requestId"] for row in rows] == [kept.request_id]


def test_rows_of_fresh_calls_are_the_same_as_listed_ones_and_without_secrets() -> None:
    masked = CallHistory(lambda: GATES, wall=lambda: 1_800_000_100.0, clock=lambda: 100.0, mask=Mask(["a-secret-name"]))
    records = [context(who=caller(key=who)).seal(0.002) for who in ("a-secret-name", "tester", "a-secret-name")]
    for record in records:
        masked.emit(RequestFinished(record))
    rows = masked.rows(records)
    assert rows == masked.latest(5)[::-1]
    assert [row["subject"] for row in rows] == ["***", "tester", "***"]


def test_a_line_of_the_log_gives_the_same_story_as_far_as_it_goes() -> None:
    line = {
        "gate": "rate_limit",
        "outcome": "rate_limited",
        "verdict": "did_not_run",
        "party": "caller",
        "tool": "files.read",
    }
    story = call_trace(line, GATES, source="audit log")
    assert states(story)["rate_limit"] == "stopped"
    assert story["next"].startswith("Nothing was done.")
    assert call_trace({"gate": "gone"}, GATES, source="x")["gates"] == []
