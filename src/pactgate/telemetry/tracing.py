"""Traces of requests: decides at the beginning whether a request is traced, and hands its record to the exporter at the end.

The parent of a request is the context in its `_meta` (SEP-414), and the context of its HTTP request is linked; without the first, the
second is the parent. Where the operator wants arguments and results in spans, their secrets are masked here.
Must not: refuse a request for its context; an invalid one is dropped and counted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw, Struct, field

from pactgate.config.sections.telemetry import Telemetry
from pactgate.core.context import ExecutionContext, ExecutionRecord
from pactgate.core.events import Event, RequestFinished
from pactgate.core.masking import Mask
from pactgate.core.trace_context import (
    MAX_STATE_CHARS,
    TRACE_PARENT,
    TRACE_STATE,
    CallContent,
    CallTrace,
    TraceParent,
    read_parent,
)
from pactgate.protocol import messages
from pactgate.protocol.messages import Request
from pactgate.telemetry.conventions import CALL

_ID_BITS: Final = 64
_RATIO_BITS: Final = 63
_RPC_ID_CHARS: Final = 100
_CONTENT_BYTES: Final = 4096
"""Of the arguments, and of the result, in a span."""


class Exporter(Protocol):
    """Takes records to export. Never waits and never fails."""

    def put(self, record: ExecutionRecord) -> None: ...


class _Meta(Struct):
    traceparent: Any = None
    tracestate: Any = None


class _Params(Struct):
    meta: _Meta | None = field(name="_meta", default=None)


_params: Final = msgspec.json.Decoder(_Params)
_NOTHING: Final[tuple[Any, Any]] = (None, None)


class Tracer:
    """Begins traces, and listens to how their requests ended."""

    def __init__(
        self,
        settings: Telemetry,
        exporter: Exporter,
        random_bits: Callable[[int], int] | None = None,
        mask: Mask | None = None,
    ) -> None:
        self.invalid_count = 0
        self._asks_parent = settings.sampler == "parent"
        self._below = int(settings.sample_ratio * (1 << _RATIO_BITS))
        self._takes_content = settings.content
        self._mask = mask or Mask()
        self._exporter = exporter
        self._bits = random_bits or random.Random(random.SystemRandom().getrandbits(256)).getrandbits

    def begin(self, ctx: ExecutionContext, request: Request) -> CallTrace | None:
        """The trace of a request. None where it is not sampled and its context goes on as it came."""
        said, state = _context_in(request)
        parent = None if said is None else self._read(said)
        ambient = self._read(ctx.caller.trace_parent) if ctx.caller.trace_parent else None
        link = ambient if parent is not None else None
        chosen = parent or ambient
        chance = f"{self._bits(4 * _ID_BITS):064x}"  # asked for once: each time costs 0.3 us
        trace_id = chosen.trace_id if chosen is not None else chance[32:]
        is_sampled = self._is_sampled(chosen, trace_id)
        if not is_sampled and (parent is not None or (said is None and ambient is None)):
            return None
        return CallTrace(
            trace_id=trace_id,
            span_id=chance[:16],
            client_span_id=chance[16:32],
            is_sampled=is_sampled,
            parent_id="" if chosen is None else chosen.span_id,
            link=link,
            state=state if parent is not None and isinstance(state, str) and len(state) <= MAX_STATE_CHARS else "",
            rpc_id=request.id.decode("utf-8", "replace").strip('"')[:_RPC_ID_CHARS],
            content=_content_of(request) if self._takes_content and is_sampled else None,
        )

    def emit(self, event: Event) -> None:
        if isinstance(event, RequestFinished):
            trace = event.record.trace
            if trace is not None and trace.is_sampled:
                if trace.content is not None:
                    trace.content.arguments = self._shown(trace.content.arguments)
                    trace.content.result = self._shown(trace.content.result)
                self._exporter.put(event.record)

    def _shown(self, data: bytes) -> bytes:
        """The beginning of a JSON value without its secrets."""
        return messages.encode_json(self._mask.value(Raw(data)))[:_CONTENT_BYTES] if data else b""

    def _is_sampled(self, parent: TraceParent | None, trace_id: str) -> bool:
        if parent is not None and self._asks_parent:
            return parent.is_sampled
        return int(trace_id[16:], 16) >> 1 < self._below

    def _read(self, said: Any) -> TraceParent | None:
        parent = read_parent(said) if isinstance(said, str) else None
        self.invalid_count += parent is None
        return parent


def _content_of(request: Request) -> CallContent | None:
    """The arguments of a tool call, if it is one that can be read."""
    try:
        arguments = messages.members(request.params or b"{}").get("arguments", Raw())
    except msgspec.DecodeError:
        return None
    return CallContent(bytes(arguments)) if request.method == CALL else None


def _context_in(request: Request) -> tuple[Any, Any]:
    """`traceparent` and `tracestate` of a request's `_meta`, as they are."""
    values = request.values
    if values is not None:
        meta = values.get("_meta")
        return (meta.get(TRACE_PARENT), meta.get(TRACE_STATE)) if isinstance(meta, dict) else _NOTHING
    params = request.params
    if params is None or TRACE_PARENT.encode() not in params:
        return _NOTHING
    try:
        meta = _params.decode(params).meta
    except msgspec.DecodeError:
        return _NOTHING
    return (meta.traceparent, meta.tracestate) if meta is not None else _NOTHING
