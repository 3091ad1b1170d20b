"""GWP-100."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.asking.questions import (
    SAMPLING,
    QuestionCheck,
    asking,
)


class SamplingRequestChanges(QuestionCheck):
    """A server that asks the model of the client is heard as it asked.

    What it checks
        A tool asks for sampling with preferences, a system prompt and metadata; the client of the call gets the request, or an
        input-required result, with every member as it was.

    Why
        A client whose model gets another prompt, or no limit of tokens, answers another question. Where questions are dropped, the
        call hangs.

    How to fix
        Pass the question on as it is; change only how the era of the client spells a question.

    Reference
        Sampling, Creating Messages; all revisions.
    """

    code = "GWP-100"
    spec = "client/sampling#creating-messages"
    tools = (asking("gwp100_@", SAMPLING),)
