"""GWP-111."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.checks.asking.questions import ANSWERS, SAMPLING, asking, play_asking
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence, RequirementLevel


class MissingCapabilityHidden(Check):
    """A modern client learns which capability a call needs.

    What it checks
        A modern client without capabilities calls a tool of a modern server that needs sampling; it gets HTTP 400 and the error -32021
        with `requiredCapabilities` that has `sampling`.

    Why
        With this error a client can offer the capability and call again. With any other it has to give up.

    How to fix
        Pass the error on with its code and data, and with the status that belongs to it.

    Reference
        Base protocol, Error Codes: -32021 with `requiredCapabilities`, and 400 over HTTP; 2026-07-28.
    """

    code = "GWP-111"
    spec = "basic/index#error-codes"
    family = Family.ASKING
    level = RequirementLevel.MUST
    since = "2026-07-28"
    eras = ("modern",)
    servers = ("mh", "dh", "ms")
    tools = (asking("gwp111_@", SAMPLING),)

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, ANSWERS, capabilities="{}")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            if '"tools/call"' not in exchange.request.data:
                continue
            response, found = exchange.response, plain_value(exchange.response).get("error")
            error = found if isinstance(found, dict) else {}
            data = error.get("data")
            required = data.get("requiredCapabilities") if isinstance(data, dict) else None
            if error.get("code") != -32021 or response is None or response.status != 400:
                status = 0 if response is None else response.status
                came = f"HTTP {status} with the code {error.get('code')}"
                yield self.evidence(exchange.index, "/error", f"{exchange.route}: it answers {came}")
            elif not isinstance(required, dict) or "sampling" not in required:
                yield self.evidence(
                    exchange.index, "/error/data", f"{exchange.route}: requiredCapabilities lacks sampling"
                )
