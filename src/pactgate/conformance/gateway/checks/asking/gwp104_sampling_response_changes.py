"""GWP-104."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.asking.questions import (
    SAMPLE,
    SAMPLING,
    AnswerCheck,
    asking,
)


class SamplingResponseChanges(AnswerCheck):
    """The answer of the model of the client reaches the server as it was.

    What it checks
        The client answers a request for sampling with text, model and stop reason; the server gets every member as it was, and the
        client its result.

    Why
        Servers decide by the model and the reason why it stopped.

    How to fix
        Pass the answer on as it is.

    Reference
        Sampling, Creating Messages; all revisions.
    """

    code = "GWP-104"
    spec = "client/sampling#creating-messages"
    tools = (asking("gwp104_@", SAMPLING),)
    asks = SAMPLE
    answer = (
            '"result":{"role":"assistant","content":{"type":"text","text":"\\u00e9\\n","annotations":{"priority":0.25}},'
            '"model":"gwp","stopReason":"something new"}'
        )
