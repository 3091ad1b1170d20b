"""GW-004."""

from __future__ import annotations

from pactgate.conformance.message import RESPONSES, RecordedMessage, Role
from pactgate.conformance.rule import SessionRule, quoted
from pactgate.protocol.messages import INVALID_REQUEST, PARSE_ERROR


class AnswerWithoutRequest(SessionRule):
    """An answer has the id of an open request of the other side, and each request gets one answer.

    What it checks
        The id of each answer equals that of a request that is still open, type included: 1 and "1" differ. Only an error
        about a message that could not be read (-32700, -32600), or in an HTTP response with an error status, may have no id.

    Why
        A client drops what it can't assign, and waits in vain.

    How to fix
        Echo the id as it came, without converting it, and answer once.

    Reference
        Base protocol, Responses; all revisions.
    """

    code = "GW-004"
    spec = "basic#responses"
    category = "messages"
    selects = RESPONSES

    def on_message(self, message: RecordedMessage) -> None:
        request = message.request
        if request is not None and request.role is Role.NOTIFICATION:
            return  # the answer itself is the fault, and GW-001 names it
        self.seen += 1
        identity = message.body.get("id")
        if identity is None:
            if message.code not in (PARSE_ERROR, INVALID_REQUEST) and not message.view.is_refused_by_http:
                self.fault(message, "/id", "The answer has no id.")
        elif request is None:
            self.fault(message, "/id", f"No request with the id {quoted(identity)} is open.")
        elif message.key != request.key:
            self.fault(
                message, "/id", f"The request has the id {quoted(request.body['id'])}, its answer {quoted(identity)}."
            )

    def at_end(self) -> None:
        if self.session.open.has_forgotten:
            self.unjudged("There were more open requests than the checker remembers.")
