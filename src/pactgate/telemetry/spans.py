"""Spans of a request, from its sealed record: one of the gateway as a server, and one as a client where the request left for a server.

Names and attributes are those of OpenTelemetry's conventions for MCP (docs/gen-ai/mcp.md in semantic-conventions-genai); what they have
no name for is under `pactgate.`. Must not: hold the subject of a client, or arguments and results that the operator did not ask for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pactgate.core.context import CLIENT as ASKED
from pactgate.core.context import QUEUE, ExecutionRecord
from pactgate.core.trace_context import CallTrace
from pactgate.protocol.versions import era_of
from pactgate.telemetry import otlp_message as otlp
from pactgate.telemetry.conventions import (
    CALL,
    client_error_type,
    method_of,
    server_error_type,
    transport_of,
    upstream_code,
)

_MAX_KEPT: Final = 2000
_MAX_CHARS: Final = 500
_PROMPT: Final = "prompts/get"
_READ: Final = "resources/read"


_DOUBLE: Final = struct.Struct("<d")
_ID_BYTES: Final = 36
_REQUEST_ID: Final = otlp.attribute("pactgate.request.id", "0" * _ID_BYTES)[:-_ID_BYTES]
_OVERHEAD: Final = otlp.attribute("pactgate.overhead_ms", 0.0)[: -_DOUBLE.size]
"""Attributes of every span whose values are always as long as this: only the values are put in."""


class ServerAddress(NamedTuple):
    """Where a server is: `transport` is tcp or pipe."""

    transport: str
    host: str = ""
    port: int = 0

    @classmethod
    def of(cls, url: str | None) -> ServerAddress:
        """The address of a server with this URL, or of a child process."""
        if url is None:
            return cls("pipe")
        parts = urlsplit(url)
        return cls("tcp", parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))


class SpanEncoder:
    """Encodes the spans of records. `address_of` tells where a server is."""

    def __init__(self, address_of: Callable[[str], ServerAddress | None]) -> None:
        self._address_of = address_of
        self._kept: dict[tuple[object, ...], tuple[bytes, bytes]] = {}

    def encode(self, record: ExecutionRecord, trace: CallTrace, epoch_ns: int) -> bytes:
        """`epoch_ns` is the wall clock time at which the monotonic clock was 0."""
        server_fixed, client_fixed = self._fixed(record)
        trace_id, span_id = bytes.fromhex(trace.trace_id), bytes.fromhex(trace.span_id)
        began_ns = epoch_ns + int(record.opened_at * 1e9)
        request_id = record.request_id.encode()
        overhead = _DOUBLE.pack(record.overhead_ms)
        rest = b"%b%b%b%b" % (_REQUEST_ID, request_id, _OVERHEAD, overhead)
        if len(request_id) != _ID_BYTES:
            rest = otlp.attributes(
                {"pactgate.request.id": record.request_id, "pactgate.overhead_ms": record.overhead_ms}
            )
        rest += _known("jsonrpc.request.id", trace.rpc_id) + _known("client.address", record.peer)
        if record.session is not None:
            rest += _known("mcp.session.id", record.session)
        if trace.state:
            rest += otlp.state(trace.state)
        if record.waits:
            rest += otlp.attributes(
                {"pactgate.queue_ms": record.waited_ms(QUEUE), "pactgate.client_ms": record.waited_ms(ASKED)}
            )
        if record.method in (_READ, _PROMPT) and record.requested:
            name = "mcp.resource.uri" if record.method == _READ else "gen_ai.prompt.name"
            rest += otlp.attribute(name, record.requested[:_MAX_CHARS])
        if trace.content is not None:
            rest += otlp.attributes(
                {
                    "gen_ai.tool.call.arguments": trace.content.arguments.decode("utf-8", "replace"),
                    "gen_ai.tool.call.result": trace.content.result.decode("utf-8", "replace"),
                }
            )
        if trace.link is not None:
            rest += otlp.link(trace.link.trace_id, trace.link.span_id)
        encoded = otlp.span(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=bytes.fromhex(trace.parent_id),
            began_ns=began_ns,
            ended_ns=began_ns + int(record.duration_ms * 1e6),
            fixed=server_fixed,
            rest=rest,
        )
        if not record.sent_at:
            return encoded
        return encoded + otlp.span(
            trace_id=trace_id,
            span_id=bytes.fromhex(trace.client_span_id),
            parent_id=span_id,
            began_ns=epoch_ns + int(record.sent_at * 1e9),
            ended_ns=epoch_ns + int(max(record.received_at, record.sent_at) * 1e9),
            fixed=client_fixed,
            rest=otlp.state(trace.state) if trace.state else b"",
        )

    def _fixed(self, record: ExecutionRecord) -> tuple[bytes, bytes]:
        """What the spans of many records share: names, kinds and most attributes."""
        failure = record.failure
        key = (
            *(record.method, record.server, record.tool, record.outcome, record.version, record.upstream_revision),
            *(transport_of(record), record.is_cached, record.category, record.era),
            None if failure is None else (record.error_code, client_error_type(record), failure.get("verdict")),
        )
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            kept = self._kept[key] = self._server(record), self._client(record)
        return kept

    def _server(self, record: ExecutionRecord) -> bytes:
        failure, error = record.failure or {}, server_error_type(record)
        facts: dict[str, otlp.Value | None] = {
            **_common(record),
            "mcp.protocol.version": record.version,
            "network.transport": transport_of(record),
            "network.protocol.name": "http" if record.peer else None,
            "error.type": error,
            "rpc.response.status_code": None if record.error_code is None else str(record.error_code),
            "pactgate.server": record.server,
            "pactgate.tool.category": record.category,
            "pactgate.outcome": record.outcome,
            "pactgate.verdict": failure.get("verdict"),
            "pactgate.cached": record.is_cached,
            "pactgate.era.client": record.era,
        }
        return (
            otlp.name_and_kind(_name(record), otlp.SERVER) + otlp.attributes(facts) + (otlp.failed() if error else b"")
        )

    def _client(self, record: ExecutionRecord) -> bytes:
        address = self._address_of(record.server or "") or ServerAddress("")
        error, revision, code = client_error_type(record), record.upstream_revision or "", upstream_code(record)
        facts: dict[str, otlp.Value | None] = {
            **_common(record),
            "mcp.protocol.version": revision,
            "network.transport": address.transport,
            "network.protocol.name": "http" if address.transport == "tcp" else None,
            "server.address": address.host,
            "server.port": address.port or None,
            "error.type": error,
            "rpc.response.status_code": None if code is None else str(code),
            "pactgate.server": record.server,
            "pactgate.era.server": era_of(revision),
        }
        return (
            otlp.name_and_kind(_name(record), otlp.CLIENT) + otlp.attributes(facts) + (otlp.failed() if error else b"")
        )


@lru_cache(maxsize=1024)
def _known(name: str, value: str) -> bytes:
    """An attribute whose values repeat: few clients, and the small numbers that most of them use as ids."""
    return otlp.attribute(name, value) if value else b""


def _common(record: ExecutionRecord) -> dict[str, otlp.Value | None]:
    is_call = record.method == CALL
    return {
        "mcp.method.name": record.method[:_MAX_CHARS],
        "gen_ai.tool.name": record.tool if is_call else None,
        "gen_ai.operation.name": "execute_tool" if is_call else None,
    }


def _name(record: ExecutionRecord) -> str:
    """`{method} {target}`: never a URI or a name that only a client knows, of which there is no end."""
    method = method_of(record)
    return f"{method} {record.tool}" if record.method == CALL and record.tool else method
