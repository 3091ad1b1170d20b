"""Who hears of what happens in a gateway, wired: metrics, traces, log, call history, audit log, recorders, and what servers write.

Knows the secrets that none of them may show. What the configuration does not ask for is not imported. Must not: decide about a request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pactgate import __version__
from pactgate.audit.call_history import CallHistory
from pactgate.capture.recorders import GatewayRecorders
from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Emit
from pactgate.core.fault_barrier import Listeners
from pactgate.core.masking import Mask
from pactgate.telemetry.log import EventLogger
from pactgate.telemetry.metrics import Metrics
from pactgate.telemetry.server_logs import ServerLogs
from pactgate.telemetry.snapshot import Gauge
from pactgate.upstreams.http.client import HttpClient

if TYPE_CHECKING:
    from pactgate.audit.audit_log import AuditLog
    from pactgate.telemetry.trace_export import TraceExport

_LABEL: Final = "pactgate"
"""The gateway itself, in captures."""


class Observers:
    """`emit` takes every event. `gates` are the names of all gates of a call; `client` sends traces; `embedder` is told as well."""

    def __init__(
        self,
        config: Config,
        client: HttpClient,
        *,
        servers: Callable[[], Mapping[str, ServerConfig]],
        gates: Callable[[], Sequence[str]],
        embedder: Emit | None,
    ) -> None:
        self.listeners = Listeners()
        self.emit = self.listeners.emit
        self.mask = Mask(config.secrets)
        self.metrics = Metrics()
        self.server_logs = ServerLogs(self.mask)
        self.stories = CallHistory(gates, mask=self.mask)
        self.recorders = GatewayRecorders(config.capture, config.secrets, self.emit, _LABEL)
        self.audit = self._audit_log(config)
        self.traces = self._trace_export(config, client, servers)
        heard = {
            "metrics": self.metrics.emit,
            "traces": None if self.traces is None else self.traces.tracer.emit,
            "log": EventLogger(self.mask).emit,
            "call history": self.stories.emit,
            "audit": None if self.audit is None else self.audit.emit,
            "embedder": embedder,
        }
        for name, listener in heard.items():
            if listener is not None:
                self.listeners.add(name, listener)

    async def open_audit(self) -> None:
        """Take hold of the audit log, where there is one; nothing is served before. Raises GatewayFailure."""
        if self.audit is not None:
            await self.audit.start()

    def start_traces(self) -> None:
        if self.traces is not None:
            self.traces.start()

    async def end_traces(self) -> None:
        """While there still is a client to send them."""
        if self.traces is not None:
            await self.traces.stop()

    async def close(self) -> None:
        """After everything that is recorded has ended."""
        await self.recorders.close()
        if self.audit is not None:
            await self.audit.stop()

    def know(self, secrets: Iterable[str]) -> None:
        """Mask these values from now on, in messages, log lines and captures, beside those known before."""
        fresh = tuple(secrets)
        self.mask.know(fresh)
        self.recorders.know(fresh)

    def know_tokens(self, tokens: Collection[str]) -> None:
        """The same for tokens of sign-ins."""
        self.mask.know_tokens(tokens)
        self.recorders.know_tokens(tokens)

    def counters(self) -> list[Gauge]:
        return [] if self.traces is None else self.traces.counters()

    def gauges(self) -> list[Gauge]:
        if self.audit is None:
            return []
        failing = float(self.audit.trouble is not None)
        return [("pactgate_audit_failing", "1 while the audit log can't be written.", failing)]

    def _audit_log(self, config: Config) -> AuditLog | None:
        if config.audit.file is None:
            return None
        from pactgate.audit.audit_log import AuditLog  # who keeps none does not pay for it

        return AuditLog(config.audit, version=__version__, masking=self.mask.start, emit=self.emit)

    def _trace_export(
        self, config: Config, client: HttpClient, servers: Callable[[], Mapping[str, ServerConfig]]
    ) -> TraceExport | None:
        if config.telemetry.endpoint is None:
            return None
        from pactgate.telemetry.trace_export import TraceExport  # who exports nothing does not pay for it

        return TraceExport(config.telemetry, client, self.emit, version=__version__, servers=servers, mask=self.mask)
