"""GWP-107."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.asking.questions import (
    ELICIT,
    FORM,
    AnswerCheck,
    asking,
)


class DismissalChanges(AnswerCheck):
    """A user who dismisses a question is not taken for one who declines.

    What it checks
        The client answers a form with the action `cancel`; the server gets this action, and the client its result.

    Why
        The server may ask in another way after one of the answers, and must not go on after the other.

    How to fix
        Pass the action on as it is.

    Reference
        Elicitation, Response Actions; 2025-06-18 and later.
    """

    code = "GWP-107"
    spec = "client/elicitation#response-actions"
    tools = (asking("gwp107_@", FORM),)
    asks = ELICIT
    answer = '"result":{"action":"cancel"}'
