"""GWP-101."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.asking.questions import (
    FORM,
    QuestionCheck,
    asking,
)


class FormElicitationChanges(QuestionCheck):
    """A form that a server wants filled in reaches the client as it was.

    What it checks
        A tool asks for elicitation with a message and a schema; the client of the call gets both, in the order of the server, with
        every keyword.

    Why
        Clients make a form from the schema. With a keyword less, they send what the server refuses.

    How to fix
        Pass the question on as it is; change only how the era of the client spells a question.

    Reference
        Elicitation, Form Mode; 2025-06-18 and later.
    """

    code = "GWP-101"
    spec = "client/elicitation"
    tools = (asking("gwp101_@", FORM),)
