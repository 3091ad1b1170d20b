"""GWP-102."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.checks.asking.questions import (
    QuestionCheck,
    asking,
)
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence

_URL = (
    '{"method":"elicitation/create","params":{"mode":"url","elicitationId":"gwp102","url":"https://gwp.example/a?b=c%2Fd&e=#f",'
    '"message":"Sign in there."}}'
)


class UrlElicitationChanges(QuestionCheck):
    """A URL that a server wants visited reaches the client as it was.

    What it checks
        A tool asks for elicitation with a URL that has a query and escapes; the client of the call gets the same URL and message.
        `elicitationId` may change or go, since it exists in one revision only.

    Why
        Users sign in or pay there. A URL with another escape is another URL.

    How to fix
        Pass the question on as it is; change only how the era of the client spells a question.

    Reference
        Elicitation, URL Mode; 2025-11-25 and later.
    """

    code = "GWP-102"
    spec = "client/elicitation"
    tools = (asking("gwp102_@", _URL),)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for evidence in super().judge(recording):
            if evidence.pointer != "/params/elicitationId":
                yield evidence
