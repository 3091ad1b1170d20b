"""GWP-145."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence

_INTERNAL = re.compile(
    r"Traceback \(most recent|site-packages|node_modules|panicked at|goroutine \d+|"
    r"File \\?\"/|\bat .{1,80}\.(?:js|ts|go|rs):\d+"
)


class InternalsShown(Check):
    """An error shows nothing of the inside of the gateway.

    What it checks
        A client calls an unknown tool, sends an unknown cursor and a name of the wrong type. No answer has a stack trace or the
        path of a source file.

    Why
        Paths, versions and frames help an attacker and nobody else.

    How to fix
        Write traces into the log, and the sentence alone into the answer.

    Reference
        Nothing in the specification; what is not for clients does not belong into answers.
    """

    code = "GWP-145"
    spec = "basic/index#responses"
    family = Family.ERRORS

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client, record = await lab.client(route), lab.record_on(route)
            await client.call(record, "gwp145_nobody", label="wrong")
            await client.request(record, "tools/list", '"cursor":"gwp145"', label="wrong")
            await client.request(record, "tools/call", '"name":[145]', name="gwp145", label="wrong")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("wrong"):
            found = _INTERNAL.search("".join(frame.data for frame in exchange.received))
            if found is not None:
                yield self.evidence(exchange.index, "", f"{exchange.route.era} client: it is shown {found[0]!r}")
