"""Limits, schemas, cache, sizes and turns, through the whole pipeline in front of a real server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pactgate.app import Gateway
from pactgate.config.model import Config, ResponseSection
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.limits import Limits, Timeouts
from pactgate.config.sections.rate_limits import RateLimits, ReadRate
from pactgate.core.failures import Reply
from pactgate.core.principal import Principal
from pactgate.policy.envelope import ERROR_SCHEMA, SUCCESS_SCHEMA
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import Inside, open_gateway, text_of
from tests.support.callers import caller
from tests.support.eventually import eventually
from tests.support.servers import UNLIMITED, methods, scripted

ENVELOPE = "dev.pactgate/envelope"
ECHO = {
    "name": "echo",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string"}, "n": {"type": "integer"}},
    },
}
RAW = {"name": "raw", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
WRITE = {"name": "write", "inputSchema": {"type": "object"}}
TOOLS = {"definitions": [ECHO, RAW, WRITE, {"name": "slow", "inputSchema": {"type": "object"}}]}
KEPT = Cache(tools={"files.echo": CacheRule(ttl_ms=60000), "files.raw": CacheRule()})


def envelope_of(reply: Reply) -> dict[str, Any]:
    assert reply.result is not None, reply
    envelope: dict[str, Any] = json.loads(reply.result)["_meta"][ENVELOPE]
    return envelope


def sent(log: Path) -> int:
    return methods(log).count("tools/call")


@pytest.mark.requirement("S1/LIMIT-001")
@pytest.mark.requirement("S1/LIMIT-002")
@pytest.mark.requirement("S1/LIMIT-004")
@pytest.mark.parametrize(
    ("extra", "code", "path", "limit", "actual"),
    [
        ({"list": [0] * 101}, "ARRAY_TOO_LARGE", "list", 100, 101),
        ({"deep": [{"a.b": [1] * 101}]}, "ARRAY_TOO_LARGE", "deep[0].a.b", 100, 101),
        ({"long": "x" * 100_001}, "STRING_TOO_LONG", "long", 100_000, 100_001),
    ],
)
async def test_arguments_beyond_a_limit_are_refused_with_place_limit_and_size_and_nothing_is_sent(
    extra: Any, code: str, path: str, limit: int, actual: int, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={**TOOLS, "log": str(log)}), cache=KEPT) as inside:
        reply = await inside.call("files.echo", {"text": "a", **extra})
        assert inside.gateway.snapshot()["cache"]["misses"] == 0
    assert reply.error is not None
    assert reply.error.code == -32602
    data = reply.error.data
    assert (data["code"], data["failure_mode"]) == (code, "limit_exceeded")
    error = data["errors"][0]
    assert (error["path"], error["limit"], error["actual"]) == (path, limit, actual)
    assert sent(log) == 0


@pytest.mark.requirement("S1/LIMIT-003")
async def test_a_tools_own_limit_counts_in_both_directions() -> None:
    limits = Limits(tool_array_limits={"files.echo": 5, "raw": 1000})
    async with open_gateway(scripted(options=TOOLS), limits=limits) as inside:
        few = await inside.call("files.echo", {"text": "a", "list": [0] * 6})
        many = await inside.call("files.raw", {"text": '{"content":[]}', "list": [0] * 500})
    assert few.error is not None
    assert many.result is not None


@pytest.mark.requirement("S0/ECO-300")
@pytest.mark.requirement("S2/MCP-001")
@pytest.mark.parametrize(
    "arguments", [{}, {"text": 5}, {"text": "a", "n": "5"}, {"text": "a", "n": True}, {"text": None}, None]
)
async def test_arguments_that_do_not_fit_the_schema_are_refused_before_anything_is_sent(
    arguments: Any, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={**TOOLS, "log": str(log)})) as inside:
        reply = await inside.call("files.echo", arguments)
    assert reply.error is not None
    assert reply.error.code == -32602
    data = reply.error.data
    assert (data["code"], data["failure_mode"], data["tool"]) == ("INVALID_INPUT", "invalid_arguments", "files.echo")
    assert data["errors"][0]["message"]
    assert data["verdict"] == "did_not_run"
    assert sent(log) == 0


@pytest.mark.requirement("S0/ECO-300")
async def test_extra_arguments_an_open_schema_allows_reach_the_server_and_a_closed_one_refuses_them() -> None:
    closed = {"name": "closed", "inputSchema": {"type": "object", "additionalProperties": False}}
    wire = {"name": "wire", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer", "default": 7}}}}
    async with open_gateway(scripted(options={"definitions": [closed, wire]})) as inside:
        refused = await inside.call("files.closed", {"extra": 1})
        arguments = json.loads(text_of(await inside.call("files.wire", {"extra": [1, None]})))["params"]["arguments"]
    assert refused.error is not None
    assert arguments == {"extra": [1, None]}


@pytest.mark.requirement("S0/ECO-300")
@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"$ref": "http://127.0.0.1:9/schema.json"}, {"type": "string", "pattern": "("}, 7]
)
async def test_a_tool_whose_schema_can_not_be_used_is_left_out_with_the_reason(schema: Any) -> None:
    bad = {"name": "bad", "inputSchema": schema}
    async with open_gateway(scripted(options={"definitions": [bad, ECHO]})) as inside:
        await inside.ask("tools/list")
        row = inside.gateway.snapshot()["servers"][0]
        unknown = await inside.call("files.bad")
    assert row["toolCount"] == 1
    assert row["leftOut"][0].startswith("bad: ")
    assert unknown.error is not None


@pytest.mark.requirement("S1/CACHE-005")
async def test_fifty_equal_calls_at_once_are_one_call_to_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={**TOOLS, "log": str(log)}), cache=KEPT, rate_limits=UNLIMITED) as inside:
        await inside.ask("tools/list")
        replies = await asyncio.gather(*(inside.call("files.echo", {"text": "same"}) for _ in range(50)))
        again = await inside.call("files.echo", {"text": "same"})
        other = await inside.call("files.echo", {"text": "other"})
    assert {text_of(reply) for reply in replies} == {"same"}
    assert sent(log) == 2
    assert [envelope_of(reply)["cached"] for reply in (again, other)] == [True, False]


async def test_kept_answers_are_each_callers_own_and_a_writing_tool_drops_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={**TOOLS, "log": str(log)}), cache=KEPT) as inside:
        somebody = caller()
        for who in (somebody, somebody, _other()):
            await inside.call("files.echo", {"text": "a"}, who=who)
        assert sent(log) == 2
        await inside.call("files.write")
        await inside.call("files.echo", {"text": "a"}, who=somebody)
    assert sent(log) == 4


def _other() -> Any:
    who = caller()
    return type(who)(principal=Principal("somebody else"), era=who.era, version=who.version, channel=who.channel)


async def test_errors_are_never_kept_and_fail_nobody_silently(tmp_path: Path) -> None:
    log = tmp_path / "log"
    failing = {"text": '{"content":[],"isError":true}'}
    async with open_gateway(scripted(options={**TOOLS, "log": str(log)}), cache=KEPT) as inside:
        replies = await asyncio.gather(*(inside.call("files.raw", failing) for _ in range(5)))
    assert all(json.loads(reply.result or b"")["isError"] for reply in replies)
    assert sent(log) == 5


@pytest.mark.parametrize("era", list(Era))
async def test_a_kept_answer_is_shaped_for_whoever_asks(era: Era) -> None:
    async with open_gateway(scripted(options={**TOOLS, "era": "modern"}), cache=KEPT) as inside:
        await inside.call("files.echo", {"text": "a"}, who=caller(Era.MODERN if era is Era.LEGACY else Era.LEGACY))
        reply = await inside.call("files.echo", {"text": "a"}, who=caller(era))
    result = json.loads(reply.result or b"")
    assert result["_meta"][ENVELOPE]["cached"] is True
    assert result["_meta"][ENVELOPE]["upstreamRevision"] == "2026-07-28"
    assert ("resultType" in result) is (era is Era.MODERN)


@pytest.mark.requirement("S1/RESP-003")
@pytest.mark.requirement("S1/RESP-004")
async def test_a_text_that_is_too_large_is_cut_flagged_counted_and_not_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    small = ResponseSection(max_response_bytes=4096)
    text = "é" * 10_000
    async with open_gateway(scripted(options={**TOOLS, "log": str(log)}), response=small, cache=KEPT) as inside:
        replies = [await inside.call("files.echo", {"text": text}) for _ in range(2)]
    for reply in replies:
        envelope = envelope_of(reply)
        assert envelope["truncated"] is True
        assert envelope["originalSizeBytes"] > 20_000
        assert len(reply.result or b"") <= 4096
        assert text_of(reply).endswith("... [truncated]")
    assert sent(log) == 2


async def test_structured_content_that_is_too_large_can_be_read_in_pages_by_its_caller_alone() -> None:
    result = json.dumps({"content": [], "structuredContent": {"rows": ["é" * 50] * 2000}}, ensure_ascii=False)
    who = caller()
    async with open_gateway(scripted(options=TOOLS), response=ResponseSection(max_response_bytes=8192)) as inside:
        reply = await _call_with_large_answer(inside, result, who)
        failure = envelope_of(reply)["failure"]
        assert failure["failure_mode"] == "response_too_large"
        assert envelope_of(reply)["truncated"] is True
        parts, uri = [], failure["resultUri"]
        while uri:
            page = json.loads((await inside.ask("resources/read", who=who, params={"uri": uri})).result or b"")
            parts.append(page["contents"][0]["text"])
            uri = page["_meta"]["dev.pactgate/page"].get("next")
        stranger = await inside.ask("resources/read", who=_other(), params={"uri": failure["resultUri"]})
    assert len(parts) == failure["pages"]
    assert json.loads("".join(parts)) == json.loads(result)
    assert stranger.error is not None


async def _call_with_large_answer(inside: Inside, result: str, who: Any) -> Reply:
    half = len(result) // 2 + 1
    assert half < 100_001
    return await inside.call("files.raw", {"text": result[:half], "more": result[half:]}, who=who)


async def test_a_caller_may_shorten_its_time_and_is_told_whose_limit_it_was() -> None:
    async with open_gateway(scripted(options=TOOLS)) as inside:
        reply = await inside.call("files.slow", {"ms": 60000}, _meta={"dev.pactgate/timeoutMs": 50})
        longer = await inside.call("files.slow", {"ms": 1}, _meta={"dev.pactgate/timeoutMs": 3_000_000})
        odd = await inside.call("files.slow", {"ms": 1}, _meta={"dev.pactgate/timeoutMs": -1})
    assert reply.error is not None
    assert reply.error.data["timeoutMs"] == 50
    assert reply.error.data["limitSource"] == "timeoutMs of the client"
    assert reply.error.data["code"] == "TOOL_TIMEOUT"
    assert longer.result is not None
    assert odd.error is not None


@pytest.mark.requirement("S1/TIMEOUT-001")
async def test_a_hundred_timeouts_at_once_leave_nothing_behind() -> None:
    slow = Timeouts(tool_overrides={"slow": 100})
    async with open_gateway(scripted(options=TOOLS), timeouts=slow, rate_limits=UNLIMITED) as inside:
        await inside.call("files.echo", {"text": "warm"})
        tasks = len(asyncio.all_tasks())
        replies = await asyncio.gather(*(inside.call("files.slow", {"ms": 60000}) for _ in range(100)))
        assert all(reply.error is not None and reply.error.data["failure_mode"] == "timeout" for reply in replies)
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks)
        assert inside.gateway.observers.metrics.calls["failed"] == 100


async def test_a_server_with_all_its_turns_taken_refuses_at_once_and_costs_no_other_server_anything() -> None:
    limits = Limits(max_in_flight_per_server=2, max_queued_per_server=2)
    async with open_gateway(scripted(options=TOOLS), scripted("other"), limits=limits) as inside:
        await inside.call("other.echo", {"text": "warm"})
        slow = [asyncio.create_task(inside.call("files.slow", {"ms": 300})) for _ in range(4)]
        await eventually(lambda: inside.gateway.connections.connected("files") is not None)
        for _ in range(20):
            await asyncio.sleep(0)
        refused = await inside.call("files.slow", {"ms": 1})
        assert text_of(await inside.call("other.echo", {"text": "at once"})) == "at once"
        assert [task.done() for task in slow] == [False] * 4
        assert all(reply.result is not None for reply in await asyncio.gather(*slow))
    failure = envelope_of(refused)["failure"]
    assert (failure["failure_mode"], failure["code"], failure["retryable"]) == (
        "overloaded",
        "SERVICE_UNAVAILABLE",
        True,
    )
    assert failure["retryAfterMs"] > 0


@pytest.mark.requirement("S1/RESP-001")
@pytest.mark.requirement("S1/RESP-002")
@pytest.mark.requirement("S1/TIMEOUT-004")
@pytest.mark.requirement("S0/ECO-301")
@pytest.mark.requirement("S1/TIMEOUT-005")
@pytest.mark.parametrize(
    ("tool", "arguments", "is_success"),
    [
        ("files.echo", {"text": "a"}, True),
        ("files.echo", {}, False),
        ("files.nothing", {}, False),
        ("nothing", {}, False),
        ("files.raw", {"text": '{"content":[],"isError":true}'}, False),
        ("files.raw", {"text": "7"}, False),
        ("files.slow", {"ms": 60000}, False),
        ("broken.tool", {}, False),
    ],
)
async def test_every_outcome_is_exactly_one_envelope_for_a_program_that_calls_us(
    tool: str, arguments: dict[str, Any], is_success: bool
) -> None:
    broken = type(scripted())(id="broken", command="no-such-program-anywhere", max_retries=0)
    config = Config(
        servers={"files": scripted(options=TOOLS), "broken": broken}, timeouts=Timeouts(tool_overrides={"slow": 100})
    )
    async with Gateway.open(config) as gateway:
        envelope = await gateway.invoke(tool, arguments)
    jsonschema.validate(envelope, SUCCESS_SCHEMA if is_success else ERROR_SCHEMA)
    assert envelope["success"] is is_success
    if tool == "files.slow":
        assert envelope["error"]["code"] == "TOOL_TIMEOUT"
    assert envelope["metadata"]["durationMs"] >= 0


@pytest.mark.requirement("S1/RESP-005")
async def test_every_result_on_the_wire_carries_its_provenance() -> None:
    async with open_gateway(scripted(options=TOOLS)) as inside:
        envelope = envelope_of(await inside.call("files.echo", {"text": "a"}))
    assert envelope.pop("requestId")
    assert envelope.pop("durationMs") >= 0
    assert envelope == {
        "server": "files",
        "tool": "files.echo",
        "upstreamRevision": "2025-11-25",
        "effects": "declared",
        "cached": False,
        "truncated": False,
        "validated": False,
    }


@pytest.mark.requirement("S1/XC-002")
@pytest.mark.parametrize("broken", ["get", "put", "drop"])
async def test_a_cache_that_is_broken_stops_no_call(broken: str) -> None:
    async with open_gateway(scripted(options=TOOLS), cache=KEPT) as inside:

        def fail(*args: Any, **more: Any) -> Any:
            raise OSError("the disk is gone")

        setattr(inside.gateway._cache, broken, fail)
        for _ in range(2):
            reply = await inside.call("files.echo", {"text": "a"})
            assert text_of(reply) == "a"
        await inside.call("files.write")
        assert inside.gateway.snapshot()["cache"]["faults"] > 0


@pytest.mark.requirement("S1/TIMEOUT-001")
@pytest.mark.parametrize("manner", ["deaf", "chatty"])
async def test_a_call_ends_at_its_limit_whatever_the_tool_does(manner: str) -> None:
    """Best of three: the bound is 100 ms, and a busy machine may lose that once."""
    config = Config(servers={"files": scripted()}, timeouts=Timeouts(tool_overrides={"slow": 200, "endless": 200}))
    took: list[int] = []
    async with Gateway.open(config) as gateway:
        await gateway.invoke("files.echo", {"text": "warm"})
        for _ in range(3):
            tool, arguments = ("slow", {"ms": 60000, "deaf": True}) if manner == "deaf" else ("endless", {})
            envelope = await gateway.invoke(f"files.{tool}", arguments)
            assert envelope["error"]["code"] == "TOOL_TIMEOUT"
            took.append(envelope["metadata"]["durationMs"])
        after = await gateway.invoke("files.echo", {"text": "still there"})
    assert min(took) <= 300
    assert after["success"] is True


@pytest.mark.requirement("S0/ECO-100")
async def test_progress_carries_a_call_beyond_its_limit_only_where_configured_and_never_beyond_the_maximum() -> None:
    for longest_ms, expected_ms in ((None, 300), (600, 600), (100, 300)):
        limits = Timeouts(tool_overrides={"endless": 300}, progress_timeout_ms=longest_ms)
        async with Gateway.open(Config(servers={"files": scripted()}, timeouts=limits)) as gateway:
            await gateway.invoke("files.echo", {"text": "warm"})
            envelope = await gateway.invoke("files.endless", {})
        assert envelope["error"]["code"] == "TOOL_TIMEOUT"
        assert expected_ms <= envelope["metadata"]["durationMs"] < expected_ms + 700
        source = "progressTimeoutMs" if longest_ms == expected_ms else 'toolOverrides["endless"]'
        assert f"within {expected_ms} ms (" in envelope["error"]["message"]
        assert f"set by timeouts.{source};" in envelope["error"]["message"]


async def test_a_call_whose_progress_has_stopped_ends_at_its_limit_after_the_last_one() -> None:
    limits = Timeouts(tool_overrides={"slow": 300}, progress_timeout_ms=60_000)
    async with Gateway.open(Config(servers={"files": scripted()}, timeouts=limits)) as gateway:
        await gateway.invoke("files.echo", {"text": "warm"})
        envelope = await gateway.invoke("files.slow", {"ms": 60_000, "progress": 1})
    assert "within 300 ms of its last progress" in envelope["error"]["message"]


async def test_a_timeout_names_the_setting_and_how_to_raise_it() -> None:
    read = {"name": "slow", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    options = {"definitions": [read]}
    async with open_gateway(scripted(options=options, request_timeout_ms=1000)) as inside:
        reply = await inside.call("files.slow", {"ms": 60000})
    assert reply.error is not None
    assert "set by requestTimeoutMs of the server" in reply.error.message
    assert 'timeouts.toolOverrides["files.slow"]' in reply.error.message


@pytest.mark.requirement("S1/RESP-006")
@pytest.mark.parametrize(("hint", "retryable"), [(None, True), (True, True), (False, False)])
async def test_a_timeout_may_be_tried_again_unless_the_tool_says_that_this_does_harm(
    hint: bool | None, retryable: bool
) -> None:
    annotations = {} if hint is None else {"annotations": {"idempotentHint": hint}}
    slow = {"name": "slow", "inputSchema": {"type": "object"}, **annotations}
    async with open_gateway(
        scripted(options={"definitions": [slow]}), timeouts=Timeouts(tool_overrides={"slow": 50})
    ) as inside:
        reply = await inside.call("files.slow", {"ms": 60000})
    assert reply.error is not None
    assert reply.error.data["retryable"] is retryable
    assert reply.error.data["transient"] is True
    assert ("retryAfterMs" in reply.error.data) is retryable


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.requirement("S2/MCP-007")
async def test_a_caller_over_its_rate_is_refused_with_when_to_come_back_and_others_are_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rates = RateLimits(enabled=True, read=ReadRate(rpm=200, burst=3))
    async with open_gateway(scripted(options={**TOOLS, "log": str(log)}), rate_limits=rates) as inside:
        replies = [await inside.call("files.echo", {"text": "a"}) for _ in range(5)]
        stranger = await inside.call("files.echo", {"text": "a"}, who=_other())
        limits = inside.gateway.snapshot()["rateLimits"]
    assert ["failure" in envelope_of(reply) for reply in replies] == [False] * 3 + [True] * 2
    failure = envelope_of(replies[-1])["failure"]
    assert (failure["code"], failure["verdict"]) == ("RATE_LIMITED", "did_not_run")
    assert failure["retryAfter"] >= 1
    assert failure["remaining"] == 0
    assert "failure" not in envelope_of(stranger)
    assert sent(log) == 4
    assert limits["read"] == {"rpm": 200, "burst": 3}


OUTPUT = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


@pytest.mark.requirement("S2/MCP-001")
@pytest.mark.parametrize(
    ("result", "is_good"),
    [
        ({"content": [], "structuredContent": {"n": 2**64}}, True),
        ({"content": [], "structuredContent": {"n": "5"}}, False),
        ({"content": [], "structuredContent": {}}, False),
        ({"content": []}, False),
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, True),
    ],
)
async def test_a_result_that_breaks_its_output_schema_is_never_a_success(result: dict[str, Any], is_good: bool) -> None:
    tool = {**RAW, "outputSchema": OUTPUT}
    async with open_gateway(scripted(options={"definitions": [tool]}), cache=KEPT) as inside:
        reply = await inside.call("files.raw", {"text": json.dumps(result)})
    envelope, got = envelope_of(reply), json.loads(reply.result or b"")
    if is_good:
        assert got["content"] == result["content"]
        assert envelope["validated"] is not result.get("isError", False)
    else:
        assert got["isError"] is True
        assert (envelope["failure"]["code"], envelope["failure"]["failure_mode"]) == (
            "INVALID_OUTPUT",
            "schema_mismatch",
        )
        assert envelope["failure"]["verdict"] == "ran"


async def test_a_tool_whose_output_schema_can_not_be_used_is_left_out_with_the_reason() -> None:
    async with open_gateway(
        scripted(options={"definitions": [{**RAW, "outputSchema": {"type": "odd"}}, ECHO]})
    ) as inside:
        await inside.ask("tools/list")
        row = inside.gateway.snapshot()["servers"][0]
    assert row["toolCount"] == 1
    assert "outputSchema" in row["leftOut"][0]
