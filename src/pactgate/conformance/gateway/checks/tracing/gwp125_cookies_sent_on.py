"""GWP-125."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.tracing.credentials import judge_header, play_headers
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence


class CookiesSentOn(Check):
    """Cookies of the client do not reach the servers.

    What it checks
        A client calls with a header `Cookie`; no server over HTTP gets one.

    Why
        A cookie was set by the gateway or by what stands before it, and signs its user in there.

    How to fix
        Send servers only the headers that are configured for them and those of the protocol.

    Reference
        Security Best Practices, Token Passthrough, says it of tokens; RFC 6265, 5.4: a cookie goes back to the host that set it.
    """

    code = "GWP-125"
    spec = "basic/security_best_practices#token-passthrough"
    family = Family.TRACING
    servers = ("lh", "mh", "dh")
    needs_gateway = True
    tools = (ScriptedTool(name="gwp125_@"),)

    async def play(self, lab: Lab) -> None:
        await play_headers(self, lab, {"Cookie": "gwp=125"})

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_header(self, recording, "cookie")
