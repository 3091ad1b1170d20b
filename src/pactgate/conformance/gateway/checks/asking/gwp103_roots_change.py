"""GWP-103."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.asking.questions import (
    ASK_ROOTS,
    ROOTS,
    AnswerCheck,
    asking,
    play_asking,
)
from pactgate.conformance.gateway.lab import Lab


class RootsChange(AnswerCheck):
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
    tools = (asking("gwp103_@", ASK_ROOTS),)
    asks = ROOTS
    answer = '"result":{"roots":[{"uri":"file:///gwp/a%20b","name":"\\u00e9","x":{"n":1}},{"uri":"file:///gwp"}]}'

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, {self.asks: self.answer})
