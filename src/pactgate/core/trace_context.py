"""W3C Trace Context of one request: what came with it, and what goes on to its server.

MCP carries `traceparent`, `tracestate` and `baggage` in `params._meta` (SEP-414). Pure. Must not: read anything else of `_meta`, or
change `tracestate` and `baggage`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Raw, Struct

TRACE_PARENT: Final = "traceparent"
TRACE_STATE: Final = "tracestate"
BAGGAGE: Final = "baggage"
SAMPLED: Final = 1
MAX_STATE_CHARS: Final = 512
"""The specification asks for at least as many to be passed on."""
_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_TRACE: Final = "0" * 32
_NO_SPAN: Final = "0" * 16


class TraceParent(NamedTuple):
    trace_id: str
    span_id: str
    flags: int

    @property
    def is_sampled(self) -> bool:
        return bool(self.flags & SAMPLED)


class CallContent(Struct):
    """Arguments and result of a tool call, as JSON: they are noted only where the operator wants them in spans."""

    arguments: bytes = b""
    result: bytes = b""


class CallTrace(Struct, frozen=True):
    """The trace a request belongs to: a span of the gateway as a server, and one as the client of the server it calls."""

    trace_id: str
    span_id: str
    client_span_id: str
    is_sampled: bool
    parent_id: str = ""
    link: TraceParent | None = None
    """The context of the HTTP request, where the message itself names another parent."""
    state: str = ""
    rpc_id: str = ""
    """The id of the JSON-RPC request, as text."""
    content: CallContent | None = None

    def carried(self, meta: Mapping[str, Raw]) -> dict[str, Raw]:
        """`_meta` for the server: the gateway's own span as the parent, everything else as it came."""
        flags = "01" if self.is_sampled else "00"
        carried = {**meta, TRACE_PARENT: Raw(f'"00-{self.trace_id}-{self.client_span_id}-{flags}"'.encode())}
        if not self.parent_id:
            carried.pop(TRACE_STATE, None)  # it belongs to the context that was dropped
        return carried


def read_parent(text: str) -> TraceParent | None:
    """The parent that a `traceparent` names; None where it is invalid."""
    found = _PARENT.fullmatch(text)
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest) or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    return TraceParent(trace_id, span_id, int(flags, 16))
