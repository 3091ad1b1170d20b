"""What is encoded by hand is what OpenTelemetry's own messages decode."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pactgate.telemetry import otlp_message as otlp

VALUES = st.one_of(st.text(min_size=1), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))


@given(
    name=st.text(),
    ids=st.tuples(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8)),
    times=st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
    facts=st.dictionaries(st.text(min_size=1), VALUES, max_size=5),
)
def test_a_span_is_decoded_as_it_was_meant(
    name: str, ids: tuple[bytes, bytes], times: tuple[int, int], facts: dict[str, otlp.Value]
) -> None:
    fixed = otlp.name_and_kind(name, otlp.CLIENT) + otlp.attributes(facts)
    rest = otlp.link("ab" * 16, "cd" * 8) + otlp.failed() + otlp.state("a=1")
    span = otlp.span(
        trace_id=ids[0], span_id=ids[1], parent_id=b"", began_ns=times[0], ended_ns=times[1], fixed=fixed, rest=rest
    )
    body = otlp.request(otlp.resource({"service.name": "x"}), "pactgate", "1", [span, span])
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    (scope,) = resource.scope_spans
    first, second = scope.spans
    assert first == second
    assert (first.name, first.kind, first.trace_id, first.span_id) == (name, otlp.CLIENT, *ids)
    assert (first.start_time_unix_nano, first.end_time_unix_nano) == times
    assert {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in first.attributes} == facts
    assert (first.links[0].trace_id, first.status.code, first.trace_state) == (bytes.fromhex("ab" * 16), 2, "a=1")
    assert (scope.scope.name, resource.resource.attributes[0].key) == ("pactgate", "service.name")
