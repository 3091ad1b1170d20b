"""Wires the traces of a gateway with an OTLP endpoint: who begins them, who encodes them, who sends them.

Imported only where there is an endpoint. Must not: decide about a request; the tracer does.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

from pactgate.config.sections.telemetry import Telemetry
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Emit
from pactgate.core.masking import Mask
from pactgate.telemetry.otlp_exporter import OtlpExporter
from pactgate.telemetry.snapshot import Gauge
from pactgate.telemetry.spans import ServerAddress, SpanEncoder
from pactgate.telemetry.tracing import Tracer
from pactgate.upstreams.http.client import HttpClient


class TraceExport:
    """`tracer` is asked at the beginning of each request. `servers` are those of now."""

    def __init__(
        self,
        settings: Telemetry,
        client: HttpClient,
        emit: Emit,
        *,
        version: str,
        servers: Callable[[], Mapping[str, ServerConfig]],
        mask: Mask,
    ) -> None:
        own = {"service.name": settings.service_name, "service.version": version}
        resource = {**own, "service.instance.id": str(uuid.uuid4()), **settings.resource_attributes}

        def address_of(server: str) -> ServerAddress | None:
            found = servers().get(server)
            return None if found is None else ServerAddress.of(found.address)

        encoder = SpanEncoder(address_of)
        self._exporter = OtlpExporter(settings, client, encoder, emit, version=version, resource=resource)
        self.tracer = Tracer(settings, self._exporter, mask=mask)
        self.start = self._exporter.start
        self.stop = self._exporter.stop

    def counters(self) -> list[Gauge]:
        exporter = self._exporter
        return [
            ("pactgate_traces_exported_total", "Traced requests exported.", exporter.exported_count),
            ("pactgate_traces_dropped_total", "Traced requests that could not be exported.", exporter.dropped_count),
            ("pactgate_traces_invalid_context_total", "Invalid trace contexts dropped.", self.tracer.invalid_count),
        ]
