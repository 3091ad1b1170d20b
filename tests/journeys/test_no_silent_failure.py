"""Whatever goes wrong in a call, its answer, its record, the log and the metrics say so, and say the same."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from pactgate.config.model import ResponseSection
from pactgate.config.sections.limits import Limits, Timeouts
from pactgate.config.sections.rate_limits import MutationRate, RateLimits
from pactgate.core.events import RequestFinished
from pactgate.core.failures import Reply
from pactgate.telemetry.log_handler import JsonFormatter
from tests.pipeline.conftest import Inside, open_gateway
from tests.support.servers import scripted

WRONG: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "an unknown tool": ("files.nothing", {}, {}),
    "arguments that are none": ("files.echo", "text", {}),
    "a list too long": ("files.echo", {"text": ["x"] * 9}, {"limits": Limits(max_array_size=3)}),
    "too many calls": ("files.echo", {}, {"rate_limits": RateLimits(mutation=MutationRate(rpm=1, burst=1))}),
    "the tool's own error": ("files.raw", {"text": '{"content":[],"isError":true}'}, {}),
    "an error of the server": ("files.refuse", {"code": -32000}, {}),
    "a result that is none": ("files.raw", {"text": '{"content":7}'}, {}),
    "a server that dies": ("files.crash", {}, {}),
    "a tool too slow": ("files.endless", {}, {"timeouts": Timeouts(tool_overrides={"files.endless": 50})}),
    "a result too large": (
        "files.raw",
        {"text": json.dumps({"structuredContent": {"text": "x" * 5000}})},
        {"response": ResponseSection(max_response_bytes=2000)},
    ),
}


def failure_in(reply: Reply) -> dict[str, Any]:
    """What the answer says of its failure, on whichever plane it says it."""
    if reply.error is not None:
        return dict(reply.error.data)
    result = json.loads(reply.result or b"{}")
    assert result["isError"] is True
    return dict(result["_meta"]["dev.pactgate/envelope"]["failure"])


def finished(inside: Inside) -> RequestFinished:
    return next(event for event in reversed(inside.events) if isinstance(event, RequestFinished))


def logged(event: RequestFinished, records: list[logging.LogRecord]) -> dict[str, Any]:
    """The line that the gateway logged for it, in the JSON format."""
    known = [json.loads(JsonFormatter().format(record)) for record in records if record.name == "pactgate"]
    return next(line for line in reversed(known) if line.get("request_id") == event.record.request_id)


@pytest.mark.requirement("S1/XC-001")
@pytest.mark.parametrize("what", WRONG)
async def test_answer_record_log_and_metrics_agree_on_what_went_wrong(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="pactgate")
    tool, arguments, settings = WRONG[what]
    async with open_gateway(scripted(), **settings) as inside:
        await inside.ask("tools/list")
        if what == "too many calls":
            await inside.call(tool, arguments)
        before = inside.gateway.observers.metrics.calls["failed"]
        reply = await inside.call(tool, arguments)
        after = inside.gateway.observers.metrics.calls["failed"]
        event = finished(inside)
    told, record = failure_in(reply), event.record
    assert record.outcome != "ok"
    assert record.outcome in (told["failure_mode"], "tool_error")
    assert record.failure is None or record.failure["code"] == told["code"]
    assert after == before + 1
    said = logged(event, caplog.records)
    assert said["request_id"] == record.request_id
    assert said["outcome"] == record.outcome


@pytest.mark.requirement("S1/XC-001")
async def test_a_call_that_went_well_is_said_to_have_gone_well_everywhere() -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.call("files.echo", {"text": "a"})
        record = finished(inside).record
        failed = inside.gateway.observers.metrics.calls["failed"]
    assert reply.error is None
    assert "failure" not in json.loads(reply.result or b"{}")["_meta"]["dev.pactgate/envelope"]
    assert (record.outcome, record.failure, failed) == ("ok", None, 0)


@pytest.mark.requirement("S1/XC-001")
async def test_a_server_that_offers_nothing_is_named_in_lists_status_and_discovery() -> None:
    """A list without a server's tools is no success of that server."""
    broken = scripted("broken", options={"hang": "list"}, request_timeout_ms=300)
    async with open_gateway(scripted(), broken) as inside:
        report = await inside.gateway.discover(force_refresh=True)
        listed = json.loads((await inside.ask("tools/list")).result or b"{}")
        rows = {row["serverId"]: row for row in inside.gateway.snapshot()["servers"]}
    assert {row.server_id: row.status for row in report.server_results} == {"files": "success", "broken": "error"}
    assert "broken" in listed["_meta"]["dev.pactgate/missing"]
    assert rows["broken"]["trouble"]
