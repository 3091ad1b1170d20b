"""GWP-121."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.tracing.contexts import ContextCheck
from pactgate.conformance.gateway.script import ScriptedTool


class TraceStateVanishes(ContextCheck):
    """The state of a trace reaches the server.

    What it checks
        A client calls with `traceparent` and `tracestate` in `_meta`; the server gets both entries of the state, in their order. An
        entry of the gateway may stand before them.

    Why
        Tracing systems keep their sampling and their own parents in it.

    How to fix
        Pass `tracestate` on, with your own entry at the left if you have one.

    Reference
        Base protocol, _meta: `tracestate` in the format of W3C Trace Context; 2026-07-28.
    """

    code = "GWP-121"
    key = "tracestate"
    tools = (ScriptedTool(name="gwp121_@"),)
    meta = '"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"gwp=a:1,other@gwp=b2"'

    def keeps(self, value: str) -> bool:
        entries = [entry.strip() for entry in value.split(",")]
        return [entry for entry in entries if entry in ("gwp=a:1", "other@gwp=b2")] == ["gwp=a:1", "other@gwp=b2"]
