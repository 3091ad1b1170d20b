"""What Prometheus scrapes."""

from __future__ import annotations

import re

from pactgate.core.events import RequestFinished, ServerFailed
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.telemetry.metrics import Metrics
from tests.support.callers import context

ROW = {"serverId": "files", "status": "connected", "toolCount": 3, "resourceCount": 1, "attempts": 1}
LINE = re.compile(r'[a-z_]+(\{([a-z_]+="[^"\\\n]*",?)+\})? [0-9.e+-]+|# (HELP|TYPE) .+')


def finished(method: str = "tools/call", kind: Kind | None = None, took_s: float = 0.003) -> RequestFinished:
    ctx = context(method)
    if kind is not None:
        ctx.fail(GatewayFailure(kind, "no", server="files"))
    return RequestFinished(ctx.seal(took_s))


def text(metrics: Metrics) -> str:
    return metrics.render([ROW], 12.5, {"pactgate_cache_bytes": 7}).decode()


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
    assert "pactgate_cache_bytes 7" in shown
    assert "pactgate_uptime_seconds 12.5" in shown
