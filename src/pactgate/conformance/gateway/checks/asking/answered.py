"""What the client answers arrives at the server as it was answered."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.asking.questions import (
    ASK_ROOTS,
    ELICIT,
    FORM,
    ROOTS,
    SAMPLE,
    SAMPLING,
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
        # That no question arrives is a finding of this check; of other questions GWP-100 to GWP-102 find it.
        await play_asking(self, lab, {self.asks: self.answer})


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


class FormCheck(AnswerCheck):
    """What the user does with a form arrives at the server.

    Why
        The server may ask in another way after one of the answers, and must not go on after the other.

    How to fix
        Pass the action on as it is.

    Reference
        Elicitation, Response Actions; 2025-06-18 and later.
    """

    spec = "client/elicitation#response-actions"
    asks = ELICIT


class AcceptedFormChanges(FormCheck):
    """What a user filled in reaches the server as it was.

    What it checks
        The client accepts a form with text, numbers, booleans, and an empty value; the server gets every value as it was, and the client
        its result.

    Why
        A server that gets 1 for true, or nothing for an empty value, does something else than the user said.

    How to fix
        Pass the answer on as it is.
    """

    code = "GWP-105"
    tools = (asking("gwp105_@", FORM),)
    answer = '"result":{"action":"accept","content":{"b":"","a":9007199254740993,"c":true,"d":1.0,"e":"\\u00e9\\n"}}'


class DeclineChanges(FormCheck):
    """A user who declines is not taken for one who accepts.

    What it checks
        The client answers a form with the action `decline`; the server gets this action, and the client its result.
    """

    code = "GWP-106"
    tools = (asking("gwp106_@", FORM),)
    answer = '"result":{"action":"decline"}'


class DismissalChanges(FormCheck):
    """A user who dismisses a question is not taken for one who declines.

    What it checks
        The client answers a form with the action `cancel`; the server gets this action, and the client its result.
    """

    code = "GWP-107"
    tools = (asking("gwp107_@", FORM),)
    answer = '"result":{"action":"cancel"}'


class RefusedSamplingSucceeds(AnswerCheck):
    """A user who refuses sampling is seen by the server.

    What it checks
        The client answers a request for sampling with the error -1; the server, of the same era, gets an error with this code and
        message. A modern client has no words for it, and a modern server neither.

    Why
        A server that waits for the answer hangs, one that gets an invented answer goes on.

    How to fix
        Pass the error on as it is.

    Reference
        Sampling, Error Handling: a rejection by the user is -1; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-108"
    spec = "client/sampling#error-handling"
    eras = ("legacy",)
    servers = ("lh",)
    tools = (asking("gwp108_@", SAMPLING),)
    asks = SAMPLE
    answer = '"error":{"code":-1,"message":"User rejected sampling request"}'
