"""What servers ask arrives at the client as it was asked."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.checks.asking.questions import FORM, SAMPLING, QuestionCheck, asking
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.rule import Evidence


class SamplingRequestChanges(QuestionCheck):
    """A server that asks the model of the client is heard as it asked.

    What it checks
        A tool asks for sampling with preferences, a system prompt and metadata; the client of the call gets the request, or an
        input-required result, with every member as it was.

    Why
        A client whose model gets another prompt, or no limit of tokens, answers another question. Where questions are dropped, the
        call hangs.

    Reference
        Sampling, Creating Messages; all revisions.
    """

    code = "GWP-100"
    spec = "client/sampling#creating-messages"
    tools = (asking("gwp100_@", SAMPLING),)


class FormElicitationChanges(QuestionCheck):
    """A form that a server wants filled in reaches the client as it was.

    What it checks
        A tool asks for elicitation with a message and a schema; the client of the call gets both, in the order of the server, with
        every keyword.

    Why
        Clients make a form from the schema. With a keyword less, they send what the server refuses.

    Reference
        Elicitation, Form Mode; 2025-06-18 and later.
    """

    code = "GWP-101"
    spec = "client/elicitation"
    tools = (asking("gwp101_@", FORM),)


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
