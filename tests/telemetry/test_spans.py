"""The spans of one record; whole exchanges are in `journeys/test_traces.py`."""

from __future__ import annotations

from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from pactgate.core.trace_context import CallTrace, TraceParent
from pactgate.core.values import Tool
from pactgate.telemetry.spans import ServerAddress, SpanEncoder
from tests.support.callers import context

TOOL = Tool("files", "read", "files.read", "files__read", b"{}", b"{}", "0")
TRACE = CallTrace(
    trace_id="ab" * 16,
    span_id="cd" * 8,
    client_span_id="ef" * 8,
    is_sampled=True,
    link=TraceParent("12" * 16, "34" * 8, 1),
    rpc_id="7",
)


def spans(*, is_sent: bool) -> list[Span]:
    ctx = context()
    ctx.bind(TOOL)
    if is_sent:
        ctx.sent_at, ctx.received_at = 1.0, 3.0
    encoder = SpanEncoder(lambda server: ServerAddress.of("https://crm.example/mcp"))
    return list(ScopeSpans.FromString(encoder.encode(ctx.seal(4.0), TRACE, 10**9)).spans)


def test_a_call_that_left_has_a_client_span_within_its_server_span() -> None:
    server, client = spans(is_sent=True)
    assert (server.start_time_unix_nano, server.end_time_unix_nano) == (10**9, 5 * 10**9)
    assert (client.start_time_unix_nano, client.end_time_unix_nano) == (2 * 10**9, 4 * 10**9)
    assert client.parent_span_id == server.span_id
    facts = {one.key: one.value.string_value or one.value.int_value for one in client.attributes}
    assert (facts["server.address"], facts["server.port"]) == ("crm.example", 443)


def test_a_call_that_never_left_has_none() -> None:
    (server,) = spans(is_sent=False)
    assert [link.trace_id.hex() for link in server.links] == ["12" * 16]
    assert {one.key for one in server.attributes} >= {
        "jsonrpc.request.id",
        "pactgate.request.id",
        "pactgate.overhead_ms",
    }


def test_a_child_process_is_reached_through_a_pipe() -> None:
    assert ServerAddress.of(None) == ServerAddress("pipe")
    assert ServerAddress.of("http://127.0.0.1:81/x") == ServerAddress("tcp", "127.0.0.1", 81)
