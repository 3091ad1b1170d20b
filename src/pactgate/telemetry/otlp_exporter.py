"""Sends spans to an OTLP endpoint over HTTP, in the background: `put` never waits, and a collector that hangs costs nothing but spans.

The queue is bounded; what finds no room is dropped and counted. A batch that can't be delivered within its time is dropped and counted
too, and the next attempt waits. Must not: send a batch twice, or hold up a request.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from pactgate.config.sections.telemetry import Telemetry
from pactgate.core.context import ExecutionRecord
from pactgate.core.events import Emit, ExportFailed
from pactgate.core.failures import GatewayFailure
from pactgate.telemetry import otlp_message as otlp
from pactgate.telemetry.spans import SpanEncoder
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.request_message import HttpTarget, header_block

MAX_QUEUED: Final = 2048
"""Records, of two spans at most. Both numbers are those of OpenTelemetry's batch processor."""
DELAY_S: Final = 5.0
_BATCH: Final = 512
_AT_ONCE: Final = 64
"""So many records are encoded in one turn of the loop, in about half a millisecond."""
_FLUSH_S: Final = 2.0
_HEADERS: Final = b"Content-Type: application/x-protobuf\r\nUser-Agent: pactgate\r\n"


class OtlpExporter:
    """Exports the spans of records from `start` to `stop`."""

    def __init__(
        self,
        settings: Telemetry,
        client: HttpClient,
        encoder: SpanEncoder,
        emit: Emit,
        *,
        version: str,
        resource: Mapping[str, str],
        delay_s: float = DELAY_S,
    ) -> None:
        assert settings.endpoint is not None, "there is nothing to export to"
        self.exported_count = 0
        self.dropped_count = 0
        self._target = HttpTarget("the collector", settings.endpoint, connect_timeout_s=settings.timeout_ms / 1000)
        self._headers = _HEADERS + header_block(settings.headers.items())
        self._timeout_s = settings.timeout_ms / 1000
        self._client = client
        self._encoder = encoder
        self._emit = emit
        self._version = version
        self._resource = otlp.resource(resource)
        self._delay_s = delay_s
        self._queue: deque[ExecutionRecord] = deque()
        self._is_failing = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def put(self, record: ExecutionRecord) -> None:
        if len(self._queue) >= MAX_QUEUED:
            self.dropped_count += 1
            return
        self._queue.append(record)
        if len(self._queue) == _BATCH:
            self._wake.set()

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="trace exporter")

    async def stop(self) -> None:
        """Send what is left, within a bound."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait({task})
        try:
            async with asyncio.timeout(_FLUSH_S):
                while self._queue and not self._is_failing:
                    await self._export()
        except TimeoutError:
            pass
        self.dropped_count += len(self._queue)
        self._queue.clear()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._delay_s):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            while self._queue and await self._export():
                pass
            if self._is_failing:
                await asyncio.sleep(self._delay_s)

    async def _export(self) -> bool:
        """Send one batch. Whether it arrived."""
        batch = [self._queue.popleft() for _ in range(min(_BATCH, len(self._queue)))]
        epoch_ns = time.time_ns() - time.monotonic_ns()
        try:
            spans = await self._encode(batch, epoch_ns)
            body = otlp.request(self._resource, "pactgate", self._version, spans)
            async with asyncio.timeout(self._timeout_s):
                response = await self._client.request(b"POST", self._target, self._headers, body, takes_any=True)
            why = None if response.status < 300 else f"HTTP {response.status}"
        except TimeoutError:
            why = f"no answer within {self._timeout_s:g} s"
        except GatewayFailure as failure:
            why = failure.message
        except asyncio.CancelledError:
            self.dropped_count += len(batch)
            raise
        if why is None:
            self.exported_count += len(batch)
            self._is_failing = False
            return True
        self.dropped_count += len(batch)
        if not self._is_failing:
            self._emit(ExportFailed(why))
        self._is_failing = True
        return False

    async def _encode(self, batch: Sequence[ExecutionRecord], epoch_ns: int) -> list[bytes]:
        """The spans of a batch, with a turn of the loop for others now and then."""
        spans = []
        for number, one in enumerate(batch, 1):
            if one.trace is not None:
                spans.append(self._encoder.encode(one, one.trace, epoch_ns))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return spans
