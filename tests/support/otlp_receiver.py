"""A collector on loopback: takes OTLP over HTTP and decodes it with OpenTelemetry's own messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2


class Received(NamedTuple):
    """One span, with the attributes of its resource."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    links: list[str]
    attributes: dict[str, Any]
    resource: dict[str, Any]
    is_error: bool
    duration_ms: float
    state: str


class Collector:
    """What arrived. A collector that hangs answers nothing."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.spans: list[Received] = []
        self.headers: list[dict[str, str]] = []
        self.hangs = hangs
        self.released = threading.Event()
        self.url = ""

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for one in request.resource_spans:
            resource = _facts(one.resource.attributes)
            self.spans += [_read(span, resource) for scope in one.scope_spans for span in scope.spans]

    def named(self, name: str, kind: str = "SERVER") -> list[Received]:
        return [span for span in self.spans if (span.name, span.kind) == (name, kind)]


@contextmanager
def collecting(*, hangs: bool = False) -> Iterator[Collector]:
    collector = Collector(hangs=hangs)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if collector.hangs:
                collector.released.wait(30)
                return
            collector.headers.append({name.lower(): value for name, value in self.headers.items()})
            collector.take(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield collector
    finally:
        collector.released.set()
        server.shutdown()
        thread.join(5)
        server.server_close()


def _read(span: trace_pb2.Span, resource: dict[str, Any]) -> Received:
    return Received(
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        links=[link.trace_id.hex() + "-" + link.span_id.hex() for link in span.links],
        attributes=_facts(span.attributes),
        resource=resource,
        is_error=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        duration_ms=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e6,
        state=span.trace_state,
    )


def _facts(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair) for pair in pairs}


def _value(pair: KeyValue) -> Any:
    return getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
