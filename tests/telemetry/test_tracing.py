"""Which requests are traced, and under which parent; whole exchanges are in `journeys/test_traces.py`."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.config.sections.telemetry import Telemetry
from pactgate.core.context import ExecutionRecord
from pactgate.core.events import RequestFinished
from pactgate.core.trace_context import CallTrace
from pactgate.telemetry.tracing import Tracer
from tests.support.callers import caller, context, request

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Kept:
    def __init__(self) -> None:
        self.records: list[ExecutionRecord] = []

    def put(self, record: ExecutionRecord) -> None:
        self.records.append(record)


def begun(meta: Any = None, ambient: str = "", **settings: Any) -> tuple[CallTrace | None, Tracer]:
    tracer = Tracer(Telemetry(endpoint="http://127.0.0.1:1/", **settings), Kept())
    params = {"name": "x", **({} if meta is None else {"_meta": meta})}
    return tracer.begin(context(who=caller(trace_parent=ambient)), request("tools/call", params)), tracer


@pytest.mark.parametrize("meta", [None, {}, 3, {"traceparent": None}])
def test_a_request_without_a_parent_begins_a_trace(meta: Any) -> None:
    trace, tracer = begun(meta)
    assert trace is not None
    assert (trace.parent_id, trace.is_sampled, tracer.invalid_count) == ("", True, 0)
    assert len({trace.span_id, trace.client_span_id, trace.trace_id}) == 3


@pytest.mark.parametrize("parent", ["", "nonsense", 3, [], f"00-{TRACE}-{SPAN}-0"])
def test_an_invalid_parent_is_counted_and_a_trace_begins(parent: Any) -> None:
    trace, tracer = begun({"traceparent": parent})
    assert trace is not None
    assert (trace.parent_id, tracer.invalid_count) == ("", 1)


def test_the_parent_decides_unless_the_ratio_does() -> None:
    parent = f"00-{TRACE}-{SPAN}-01"
    for sampler, is_sampled in (("parent", True), ("ratio", False)):
        trace, _ = begun({"traceparent": parent}, sampler=sampler, sample_ratio=0.0)
        assert (trace is not None) is is_sampled


def test_only_sampled_requests_are_exported() -> None:
    kept = Kept()
    tracer = Tracer(Telemetry(endpoint="http://127.0.0.1:1/"), kept)
    for is_sampled in (True, False):
        ctx = context()
        ctx.trace = CallTrace(trace_id=TRACE, span_id=SPAN, client_span_id=SPAN, is_sampled=is_sampled)
        tracer.emit(RequestFinished(ctx.seal(1.0)))
    tracer.emit(RequestFinished(context().seal(1.0)))
    assert len(kept.records) == 1
