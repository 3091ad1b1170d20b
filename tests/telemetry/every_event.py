"""One of every event there is."""

from __future__ import annotations

from pactgate.core import events
from pactgate.core.context import ExecutionRecord
from pactgate.core.events import Event
from pactgate.core.failures import GatewayFailure


def finished(failure: GatewayFailure | None = None, outcome: str = "ok") -> events.RequestFinished:
    return events.RequestFinished(
        ExecutionRecord(
            request_id="r1",
            method="tools/call",
            subject="anonymous",
            client="test/1",
            era="modern",
            version="2026-07-28",
            duration_ms=1.23456,
            server="almanac",
            tool="almanac.date_facts",
            outcome=failure.mode if failure else outcome,
            failure=failure.record() if failure else None,
        )
    )


EVERY_EVENT: list[Event] = [
    events.GatewayStarted("http://127.0.0.1:7411", 2),
    events.GatewayStopped("asked to"),
    events.ServerConnecting("almanac", 1),
    events.ServerConnected("almanac", "legacy", "2025-11-25", 1, 12.3),
    events.ServerDisconnected("almanac", "it ended", "MCP_ECO_INVOCATION_FAILED"),
    events.ServerHung("almanac", 5000.0),
    events.ServerFailed("almanac", 4, "no such program", "MCP_ECO_CONNECTION_FAILED"),
    events.OutputMismatched("shop", "shop.get", "id", ("missing member id",)),
    events.ServerDiscovered("almanac", 5, 1.5),
    events.DiscoveryFailed("almanac", "too slow"),
    events.ConfigurationReloaded(("a",), ("b",), ("c",), ("listen",)),
    events.ConfigurationRefused(("pactgate.json:1:1 x: no",)),
    events.ToolChanged("evil", "read", ("description", "annotations"), "aa", "bb", ("readOnlyHint",)),
    events.EntriesChanged("evil", "tools", 1, 2, 3, ("read",)),
    events.DefinitionsDiffered("evil", "hold", 1, ("read",)),
    events.EffectsExceeded("notes", "notes.count", "r1", ("network 127.0.0.1:80",)),
    events.CodeReplaced("notes", "notes.count", "r1", "ODD"),
    events.ToolReported("notes", "notes.count", "crashed", "KeyError: 'x'"),
    events.PermissionUndecided("r1", "crm", "crm.refund", 2, "pactgate.json:6:5", "No such overload"),
    events.CacheFailed("get", "OSError()"),
    events.StoreFailed("TimeoutError: no answer within 100 ms"),
    events.StoreRestored(),
    events.ReplicaJoined("0123456789abcdef", "10.0.0.5:7412"),
    events.ReplicaVanished("0123456789abcdef"),
    events.ConnectionsClosed("192.0.2.1", 32),
    events.ConsoleOpened("ops", "127.0.0.1"),
    events.CaptureEnded("captures/a.json", 3, 0),
    events.CaptureFailed("No space left on device"),
    events.ListenOpened("0248e0a6", "ops", "tests/1", "files", ("tools", "data://a")),
    events.ConfigurationChanged("ops", "limits.maxArraySize", "100", "5", "519893fa3d6d", True),
    events.ConfigurationRestored("ops", "mcpServers.crm.enabled", "with it files lost its connection"),
    events.AuditFailed("audit.jsonl", "No space left on device", "refuse"),
    events.AuditRecovered("audit.jsonl", 3, 0),
    events.UpstreamNoise("almanac", "a line that is no message", "hello"),
    events.CompositionHazard("tool_shadowing", "search", ("crm", "files"), "Two tools are called search.", "hazard"),
    finished(),
    events.ExportFailed("no answer within 10 s"),
    events.RequestRefused(403, None, "Origin", "192.0.2.1"),
    events.HandshakeFailed("127.0.0.1", "it has no client certificate"),
    events.CertificateReplaced("/etc/pactgate/certificate.pem"),
    events.CredentialsRefused("192.0.2.1", 10, 3),
    events.InternalFailure("r1", "kernel", "KeyError('x')", "Traceback\n  line\nKeyError: 'x'"),
]
