"""GWP-124."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.tracing.credentials import WRONG, judge_header, play_headers
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel


class ClientTokenSentOn(Check):
    """The token of the client does not reach the servers.

    What it checks
        A client calls with `Authorization`, that of the operator (`--header`) or else one that nobody gave out. No server over HTTP gets
        a header `Authorization`: the gateway was given no credentials for them.

    Why
        Whoever runs one server can then act at the gateway, and at every other server behind it, as the user.

    How to fix
        Take `Authorization` for the gateway's own, and send servers only what is configured for them.

    Reference
        Authorization, Access Token Privilege Restriction: a token that was received must not be passed through; 2025-06-18 and later.
    """

    code = "GWP-124"
    spec = "basic/authorization#access-token-privilege-restriction"
    family = Family.TRACING
    level = RequirementLevel.MUST
    servers = ("lh", "mh", "dh")
    needs_gateway = True
    tools = (ScriptedTool(name="gwp124_@"),)

    async def play(self, lab: Lab) -> None:
        has_own = any(name.lower() == "authorization" for name in lab.gateway.identity)
        await play_headers(self, lab, {} if has_own else {"Authorization": WRONG})

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_header(self, recording, "authorization")
