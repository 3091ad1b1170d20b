"""GW-030."""

from __future__ import annotations

from pactgate.conformance.input_required import target_of
from pactgate.conformance.message import FROM_CLIENT, REQUESTS, RecordedMessage
from pactgate.conformance.rule import ModernRule


class RequestStateStrayed(ModernRule):
    """A requestState is sent back byte for byte, to the request it was given for, and never before it was given.

    What it checks
        Each `requestState` of a request was given out earlier in the session, and for the same method and name or URI.

    Why
        The state may stand for a decision of the user. On another request it is a forgery.

    How to fix
        Keep the state with the request it came for, and don't touch it.

    Reference
        Multi Round-Trip Requests, Client Requirements; revision 2026-07-28.
    """

    code = "GW-030"
    spec = "basic/patterns/mrtr#client-requirements-basic-workflow"
    category = "input"
    selects = REQUESTS & FROM_CLIENT

    def on_message(self, message: RecordedMessage) -> None:
        if "requestState" not in message.params:
            return
        question = self.session.input_required.issued(message.params["requestState"])
        if question is None and self.session.input_required.has_forgotten:
            self.unjudged("There were more questions than the checker remembers.")
            return
        self.seen += 1
        if question is None:
            self.fault(message, "/params/requestState", "The server has not given out this requestState.")
        elif (question.method, question.target) != (message.method, target_of(message)):
            self.fault(message, "/params/requestState", "The requestState was given out for another request.")
