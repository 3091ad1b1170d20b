"""GWP-108."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.asking.questions import (
    SAMPLE,
    SAMPLING,
    AnswerCheck,
    asking,
)


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
