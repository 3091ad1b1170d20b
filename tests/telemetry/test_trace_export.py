"""What is wired for a gateway with a collector counts what becomes of its traces."""

from __future__ import annotations

from pactgate.config.sections.telemetry import Telemetry
from pactgate.core.masking import Mask
from pactgate.telemetry.trace_export import TraceExport
from pactgate.upstreams.http.client import HttpClient
from tests.telemetry.every_event import finished


async def test_what_could_not_be_exported_is_counted_when_the_gateway_stops() -> None:
    client = HttpClient()
    settings = Telemetry(endpoint="http://127.0.0.1:9/v1/traces", sample_ratio=1.0)
    traces = TraceExport(settings, client, lambda event: None, version="0", servers=dict, mask=Mask())
    event = finished()
    traces.start()
    for _ in range(3):
        traces._exporter.put(event.record)
    await traces.stop()
    await client.close()
    assert {name: value for name, _, value in traces.counters()} == {
        "pactgate_traces_exported_total": 0,
        "pactgate_traces_dropped_total": 3,
        "pactgate_traces_invalid_context_total": 0,
    }
