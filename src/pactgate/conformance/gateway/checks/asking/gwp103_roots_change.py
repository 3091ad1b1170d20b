"""GWP-103."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.asking.questions import (
    ASK_ROOTS,
    ATTRIBUTABLE,
    ROOTS,
    asking,
    judge_answers,
    play_asking,
)
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence

_ANSWER = {ROOTS: '"result":{"roots":[{"uri":"file:///gwp/a%20b","name":"\\u00e9","x":{"n":1}},{"uri":"file:///gwp"}]}'}


class RootsChange(Check):
    """A server that asks for the roots of the client gets them.

    What it checks
        A tool asks for roots; the server gets the list of the client of the call, each member as it was, and the client its result.

    Why
        A server with other roots than its client works in folders that the user did not mean.

    How to fix
        Ask the client of the call, and pass its answer on.

    Reference
        Roots, Listing Roots; all revisions.
    """

    code = "GWP-103"
    spec = "client/roots"
    family = Family.ASKING
    servers = ATTRIBUTABLE
    tools = (asking("gwp103_@", ASK_ROOTS),)

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, _ANSWER)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, _ANSWER, (ROOTS,))
