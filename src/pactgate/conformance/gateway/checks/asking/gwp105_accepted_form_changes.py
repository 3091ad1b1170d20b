"""GWP-105."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.asking.questions import (
    ELICIT,
    FORM,
    AnswerCheck,
    asking,
)


class AcceptedFormChanges(AnswerCheck):
    """What a user filled in reaches the server as it was.

    What it checks
        The client accepts a form with text, numbers, booleans, and an empty value; the server gets every value as it was, and the client
        its result.

    Why
        A server that gets 1 for true, or nothing for an empty value, does something else than the user said.

    How to fix
        Pass the answer on as it is.

    Reference
        Elicitation, Response Actions; 2025-06-18 and later.
    """

    code = "GWP-105"
    spec = "client/elicitation#response-actions"
    tools = (asking("gwp105_@", FORM),)
    asks = ELICIT
    answer = (
            '"result":{"action":"accept","content":{"b":"","a":9007199254740993,"c":true,"d":1.0,"e":"\\u00e9\\n"}}'
        )
