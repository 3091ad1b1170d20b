"""What Prometheus scrapes."""

from __future__ import annotations

import re

from pactgate.core.events import RequestFinished, ServerFailed
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Tool
from pactgate.telemetry.exposition import Exposition
from pactgate.telemetry.metrics import MAX_TOOLS, Metrics
from tests.support.callers import context

ROW = {
    "serverId": "files",
    "status": "connected",
    "toolCount": 3,
    "resourceCount": 1,
    "definitionsChanged": 0,
    "attempts": 1,
}
LINE = re.compile(r'[a-z_]+(\{([a-z_]+="[^"\\\n]*",?)+\})? [0-9.e+-]+|# (HELP|TYPE) .+')
TOOL = Tool("files", "read", "files.read", "files__read", b"{}", b"{}", "0")


def finished(method: str = "tools/call", kind: Kind | None = None, took_s: float = 0.003) -> RequestFinished:
    ctx = context(method)
    if kind is not None:
        ctx.fail(GatewayFailure(kind, "no", server="files"))
    return RequestFinished(ctx.seal(took_s))


def text(metrics: Metrics) -> str:
    to = Exposition(is_open=False)
    metrics.render(to, [ROW])
    return to.encode().decode()


def test_requests_are_counted_by_method_and_outcome() -> None:
    metrics = Metrics()
    for event in (finished(), finished(), finished(kind=Kind.CALL_TIMEOUT), finished("tools/list")):
        metrics.emit(event)
    shown = text(metrics)
    assert 'pactgate_requests_total{method="tools/call",outcome="ok"} 2' in shown
    assert 'pactgate_requests_total{method="tools/call",outcome="timeout"} 1' in shown
    assert 'pactgate_tool_calls_total{server="files",outcome="timeout"} 1' in shown
    assert metrics.calls == {"total": 3, "failed": 1}


def test_durations_are_a_cumulative_histogram_in_seconds() -> None:
    metrics = Metrics()
    for took_s in (0.0005, 0.003, 100.0):
        metrics.emit(finished(took_s=took_s))
    shown = text(metrics)
    name = "pactgate_request_duration_seconds"
    assert f'{name}_bucket{{method="tools/call",le="0.001"}} 1' in shown
    assert f'{name}_bucket{{method="tools/call",le="0.005"}} 2' in shown
    assert f'{name}_bucket{{method="tools/call",le="+Inf"}} 3' in shown
    assert f'{name}_count{{method="tools/call"}} 3' in shown


def test_labels_can_not_grow_with_what_callers_invent() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.emit(finished(f"evil/{number}", Kind.METHOD_NOT_FOUND))
    assert 'pactgate_requests_total{method="other",outcome="method_not_found"} 1000' in text(metrics)
    assert "evil" not in text(metrics)


def test_every_line_is_one_the_scraper_understands() -> None:
    metrics = Metrics()
    metrics.emit(finished())
    metrics.emit(ServerFailed("files", 4, 'no "quotes"\n', "MCP_ECO_CONNECTION_FAILED"))
    for line in text(metrics).splitlines():
        assert LINE.fullmatch(line), line


def test_servers_show_the_one_state_they_are_in() -> None:
    shown = text(Metrics())
    assert 'pactgate_server_status{server="files",status="connected"} 1' in shown
    assert 'pactgate_server_status{server="files",status="error"} 0' in shown
    assert 'pactgate_server_tools{server="files"} 3' in shown


def called(
    tool: Tool | None = TOOL, *, server_s: float = 0.02, took_s: float = 0.0201, **notes: object
) -> RequestFinished:
    ctx = context()
    if tool is not None:
        ctx.bind(tool)
        ctx.sent_at, ctx.received_at = 0.00005, 0.00005 + server_s
    for name, note in notes.items():
        setattr(ctx, name, note)
    return RequestFinished(ctx.seal(took_s))


def test_the_time_at_a_server_and_what_the_gateway_added_are_histograms_of_their_own() -> None:
    metrics = Metrics()
    metrics.emit(called(upstream_revision="2025-06-18"))
    metrics.emit(called(upstream_revision="2025-06-18", waits=(("queue", 4.0),), took_s=0.0241))
    shown = text(metrics)
    client = 'mcp_method_name="tools/call",gen_ai_tool_name="files.read",mcp_protocol_version="2025-06-18",pactgate_server="files"'
    assert f'mcp_client_operation_duration_seconds_bucket{{{client},le="0.02"}} 2' in shown
    server = 'mcp_method_name="tools/call",gen_ai_tool_name="files.read",mcp_protocol_version="2025-11-25",network_transport="pipe"'
    assert f"mcp_server_operation_duration_seconds_count{{{server}}} 2" in shown
    assert 'pactgate_overhead_seconds_bucket{method="tools/call",le="5e-05"} 0' in shown
    assert 'pactgate_overhead_seconds_bucket{method="tools/call",le="0.00025"} 2' in shown
    assert 'pactgate_queue_seconds_bucket{server="files",le="0.005"} 1' in shown


def test_errors_of_a_server_are_counted_by_its_own_codes_as_far_as_they_are_known() -> None:
    metrics = Metrics()
    for code in (-32602, 7, 8):
        failure = GatewayFailure(Kind.UPSTREAM_ERROR, "no", server="files", details={"upstream": {"code": code}})
        metrics.emit(called(failure=failure))
    shown = [
        line for line in text(metrics).splitlines() if line.startswith("mcp_client_operation_duration_seconds_count")
    ]
    assert len(shown) == 2
    assert any('error_type="-32602"' in line and line.endswith(" 1") for line in shown)
    assert any('error_type="_OTHER"' in line and line.endswith(" 2") for line in shown)


def test_ten_thousand_invented_names_leave_the_scrape_below_a_megabyte() -> None:
    metrics = Metrics()
    for number in range(10_000):
        metrics.emit(called(None, requested=f"evil-{number}", failure=GatewayFailure(Kind.UNKNOWN_TOOL, "no")))
    assert len(text(metrics)) < 100_000
    assert "evil" not in text(metrics)


def test_a_catalog_without_end_is_counted_by_its_first_tools_and_the_rest_together() -> None:
    metrics = Metrics()
    for number in range(2 * MAX_TOOLS):
        name = f"files.t{number}"
        metrics.emit(called(Tool("files", name, name, name, b"{}", b"{}", "0")))
    shown = text(metrics)
    name = "mcp_client_operation_duration_seconds_count"
    counts = [line for line in shown.splitlines() if line.startswith(name)]
    assert len(counts) == MAX_TOOLS + 1
    assert any('gen_ai_tool_name="other"' in line and line.endswith(f" {MAX_TOOLS}") for line in counts)
