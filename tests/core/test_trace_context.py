"""What is read of a `traceparent`, and what goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pactgate.core.trace_context import CallTrace, TraceParent, read_parent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
OURS = CallTrace(trace_id=TRACE, span_id="a" * 16, client_span_id="b" * 16, is_sampled=True, parent_id=SPAN)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"00-{TRACE}-{SPAN}-01", TraceParent(TRACE, SPAN, 1)),
        (f"00-{TRACE}-{SPAN}-00", TraceParent(TRACE, SPAN, 0)),
        (f"cc-{TRACE}-{SPAN}-01-more", TraceParent(TRACE, SPAN, 1)),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}", None),
    ],
)
def test_a_traceparent_is_read_as_its_specification_says(text: str, found: TraceParent | None) -> None:
    assert read_parent(text) == found


@given(st.text())
def test_any_other_text_is_no_parent(text: str) -> None:
    assert read_parent(text) is None


def test_only_the_parent_is_replaced_and_the_rest_stays_in_place() -> None:
    meta = {"x": Raw(b"1"), "traceparent": Raw(b'"old"'), "tracestate": Raw(b'"a=1"'), "baggage": Raw(b'"b=2"')}
    carried = OURS.carried(meta)
    assert list(carried) == list(meta)
    assert bytes(carried.pop("traceparent")) == f'"00-{TRACE}-{"b" * 16}-01"'.encode()
    assert carried == {name: held for name, held in meta.items() if name != "traceparent"}
