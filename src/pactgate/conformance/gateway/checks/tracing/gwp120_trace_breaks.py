"""GWP-120."""

from __future__ import annotations

import re
from typing import Final

from pactgate.conformance.gateway.checks.tracing.contexts import ContextCheck
from pactgate.conformance.gateway.script import ScriptedTool

_TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
_PARENT: Final = re.compile(rf"00-{_TRACE}-(?!0{{16}})[0-9a-f]{{16}}-[0-9a-f]{{2}}")


class TraceBreaks(ContextCheck):
    """A trace that begins before the gateway goes on behind it.

    What it checks
        A client calls with `traceparent` in `_meta`; the server gets one of the same trace. The parent may be a span of the gateway.

    Why
        With another trace, or none, nobody sees which call of the agent a slow query belongs to.

    How to fix
        Pass `traceparent` on, or make a span of your own in the same trace.

    Reference
        Base protocol, _meta: `traceparent` in the format of W3C Trace Context; 2026-07-28.
    """

    code = "GWP-120"
    key = "traceparent"
    tools = (ScriptedTool(name="gwp120_@"),)
    meta = f'"traceparent":"00-{_TRACE}-00f067aa0ba902b7-01"'

    def keeps(self, value: str) -> bool:
        return _PARENT.fullmatch(value) is not None
