"""GW-002."""

from __future__ import annotations

from pactgate.conformance.bounded import id_key
from pactgate.conformance.message import NOTIFICATIONS, REQUESTS, RecordedMessage
from pactgate.conformance.rule import SessionRule, quoted


class IllegalRequestId(SessionRule):
    """The id of a request is a string or an integer.

    What it checks
        Wherever a message with a `method` has the member `id`, it is a string or an integer: not null, no boolean, no
        fraction, no object.

    Why
        Ids are compared to find the request an answer belongs to. Null is what an error has when the id could not be read.

    How to fix
        Count upwards from 1.

    Reference
        Base protocol, Requests; all revisions.
    """

    code = "GW-002"
    spec = "basic#requests"
    category = "messages"
    selects = REQUESTS | NOTIFICATIONS

    def on_message(self, message: RecordedMessage) -> None:
        if "id" not in message.body:
            return
        self.seen += 1
        if id_key(message.body["id"]) is None:
            self.fault(message, "/id", f"The id is {quoted(message.body['id'])}, not a string or an integer.")
