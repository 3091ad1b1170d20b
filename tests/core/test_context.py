"""The execution context keeps one truth and refuses change after the seal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from pactgate.core.context import ContextError, ExecutionContext, ExecutionRecord
from pactgate.core.contract import Operation
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Tool
from tests.support.callers import caller, context
from tests.support.each import each

TOOL = Tool("files", "read", "files.read", "files__read", b"{}", b"{}", "0")


@pytest.mark.requirement("S4/R4")
def test_a_sealed_context_refuses_every_change() -> None:
    ctx = context()
    ctx.seal(1.0)
    changes: list[Callable[[], object]] = [
        lambda: ctx.bind(TOOL),
        lambda: ctx.fail(GatewayFailure(Kind.INTERNAL, "x")),
        ctx.note_tool_error,
        lambda: ctx.seal(2.0),
    ]
    for change in changes:
        with pytest.raises(ContextError):
            change()


@pytest.mark.requirement("S4/R4")
@each("kind", [None, *Kind])
def test_after_the_seal_the_record_can_not_change_on_any_level_whatever_is_done_to_the_context(
    kind: Kind | None,
) -> None:
    ctx = context()
    ctx.bind(TOOL)
    ctx.operations = ctx.violations = (Operation("network"),)
    details: dict[str, Any] = {"errors": [{"path": "a"}], "upstream": {"code": 1}}
    failure = None if kind is None else GatewayFailure(kind, "x", details=details)
    if failure is not None:
        ctx.fail(failure)
    record = ctx.seal(1.0)
    before = repr(record)
    for name in ExecutionRecord.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(record, name, None)
        with pytest.raises(AttributeError):
            delattr(record, name)
    with pytest.raises(AttributeError):
        record.operations[0].kind = "other"  # type: ignore[misc]
    details["errors"].append("more")
    if failure is not None:
        failure.details["upstream"]["code"] = 2
        failure.message = "better"
        assert record.failure is not None
        with pytest.raises(TypeError):
            record.failure["code"] = "BETTER"
        with pytest.raises(TypeError):
            record.failure["errors"][0]["path"] = "b"
    for name in ExecutionContext.__struct_fields__:
        setattr(ctx, name, None)
    assert repr(record) == before


@pytest.mark.requirement("S4/R4")
def test_each_fact_of_the_context_is_in_the_record_under_its_own_name() -> None:
    ctx = context()
    ctx.bind(TOOL)
    told = [name for name in ExecutionRecord.__struct_fields__ if name in ExecutionContext.__struct_fields__]
    told = [name for name in told if name not in ("server", "tool", "failure", "opened_at")]
    for name in told:
        setattr(ctx, name, f"the {name}")
    record = ctx.seal(1.0)
    assert [getattr(record, name) for name in told] == [f"the {name}" for name in told]
    who = ctx.caller
    assert (record.subject, record.client, record.version) == (who.principal.key, who.client, who.version)
    assert (record.era, record.session, record.peer) == (who.era.value, who.session, who.peer)
    assert (record.server, record.tool, record.category) == (TOOL.server, TOOL.full_name, TOOL.traits.category)
    assert (record.outcome, record.failure, record.message, record.duration_ms) == ("ok", None, None, 1000.0)


@pytest.mark.requirement("S4/R4")
def test_a_context_binds_one_tool_once() -> None:
    ctx = context()
    ctx.bind(TOOL)
    with pytest.raises(ContextError):
        ctx.bind(TOOL)


@pytest.mark.requirement("S4/R4")
def test_the_record_of_a_failure_carries_category_mode_code_and_duration() -> None:
    ctx = context()
    ctx.bind(TOOL)
    ctx.fail(GatewayFailure(Kind.CALL_TIMEOUT, "slow", tool="files.read"))
    record = ctx.seal(0.25)
    assert record.duration_ms == pytest.approx(250)
    assert (record.server, record.tool, record.outcome) == ("files", "files.read", "timeout")
    assert record.failure is not None
    assert record.failure["category"] == "transport_failure"
    assert record.failure["code"] == "TOOL_TIMEOUT"


@pytest.mark.requirement("S4/R4")
def test_every_fact_of_a_request_lands_in_the_field_of_its_name() -> None:
    who = caller(scope="scope", session="session")
    ctx = ExecutionContext("tools/call", who, 1.0, "id")
    ctx.bind(TOOL)
    for name in ("requested", "gate", "upstream_revision", "effects_level"):
        setattr(ctx, name, name)
    for name in ("is_cached", "is_truncated", "is_validated"):
        setattr(ctx, name, name)
    ctx.operations, ctx.violations = (Operation("network"),), (Operation("process"),)
    failure = GatewayFailure(Kind.TOOL_ERROR, "told")
    ctx.fail(failure)
    record = ctx.seal(1.5)
    for name in (
        "requested",
        "gate",
        "upstream_revision",
        "effects_level",
        "is_cached",
        "is_truncated",
        "is_validated",
    ):
        assert getattr(record, name) == name
    assert (record.request_id, record.method, record.subject, record.client) == (
        "id",
        "tools/call",
        "tester",
        "tests/1",
    )
    assert (record.era, record.version, record.session) == ("legacy", who.version, "session")
    assert (record.duration_ms, record.opened_at) == (500, 1.0)
    assert (record.server, record.tool, record.category) == ("files", "files.read", "mutation")
    assert (record.outcome, record.failure, record.message) == ("tool_error", failure.record(), "told")
    assert (record.operations, record.violations) == ((Operation("network"),), (Operation("process"),))


@pytest.mark.requirement("S4/R4")
def test_the_record_can_not_be_changed() -> None:
    record = context().seal(0.0)
    with pytest.raises(AttributeError):
        record.outcome = "better"  # type: ignore[misc]


def test_success_and_a_tools_own_error_are_told_apart() -> None:
    good, bad = context(), context()
    bad.note_tool_error()
    assert good.seal(0).outcome == "ok"
    assert bad.seal(0).outcome == "tool_error"


def test_without_a_tool_the_record_names_the_failing_server_or_the_scope() -> None:
    ctx = ExecutionContext("tools/list", caller(scope="files"), 0.0)
    assert ctx.seal(0).server == "files"
    failing = context("tools/list")
    failing.fail(GatewayFailure(Kind.CONNECTION_FAILED, "x", server="other"))
    assert failing.seal(0).server == "other"


def test_a_clock_that_steps_back_never_gives_a_negative_duration() -> None:
    assert context().seal(-5.0).duration_ms == 0


def test_request_ids_are_random_uuids_and_may_be_given() -> None:
    minted = {context().request_id for _ in range(100)}
    assert len(minted) == 100
    assert all(str(UUID(text)) == text and UUID(text).version == 4 for text in minted)
    assert ExecutionContext("ping", caller(), 0.0, "given").request_id == "given"
