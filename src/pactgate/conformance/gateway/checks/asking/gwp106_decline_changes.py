"""GWP-106."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.asking.questions import (
    ELICIT,
    FORM,
    AnswerCheck,
    asking,
)


class DeclineChanges(AnswerCheck):
    """A user who declines is not taken for one who accepts.

    What it checks
        The client answers a form with the action `decline`; the server gets this action, and the client its result.

    Why
        The server may ask in another way after one of the answers, and must not go on after the other.

    How to fix
        Pass the action on as it is.

    Reference
        Elicitation, Response Actions; 2025-06-18 and later.
    """

    code = "GWP-106"
    spec = "client/elicitation#response-actions"
    tools = (asking("gwp106_@", FORM),)
    asks = ELICIT
    answer = '"result":{"action":"decline"}'
