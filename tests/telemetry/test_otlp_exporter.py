"""The queue of the exporter is bounded, and what finds no room is counted."""

from __future__ import annotations

from pactgate.config.sections.telemetry import Telemetry
from pactgate.telemetry.otlp_exporter import MAX_QUEUED, OtlpExporter
from pactgate.telemetry.spans import ServerAddress, SpanEncoder
from pactgate.upstreams.http.client import HttpClient
from tests.telemetry.every_event import finished


async def test_what_finds_no_room_in_the_queue_is_dropped_and_counted() -> None:
    client = HttpClient()
    exporter = OtlpExporter(
        Telemetry(endpoint="http://127.0.0.1:9/v1/traces"),
        client,
        SpanEncoder(lambda server: ServerAddress("pipe")),
        lambda event: None,
        version="0",
        resource={},
    )
    record = finished().record
    for _ in range(MAX_QUEUED + 100):
        exporter.put(record)
    assert exporter.dropped_count == 100
    await exporter.stop()
    await client.close()
