"""GW-003."""

from __future__ import annotations

from pactgate.capture.format import Side
from pactgate.conformance.message import REQUESTS, RecordedMessage
from pactgate.conformance.rule import SessionRule, quoted


class RequestIdReused(SessionRule):
    """A request has an id that its sender has not used before.

    What it checks
        Legacy: an id is used once per sender and session; a new handshake begins anew. Modern: an id is not used while a
        request with the same id is still open. Modern requests over HTTP are answered each on its own connection and may
        share ids.

    Why
        Two answers with one id can't be told apart.

    How to fix
        Count upwards and never start again within a session, not even for a repeated request.

    Reference
        Base protocol, Requests; all revisions.
    """

    code = "GW-003"
    spec = "basic#requests"
    category = "messages"
    selects = REQUESTS

    def on_message(self, message: RecordedMessage) -> None:
        if message.key is None or (message.is_modern and message.view.exchange.http is not None):
            return
        self.seen += 1
        if message.is_repeated_id:
            when = "while a request with it is open" if message.is_modern else "a second time"
            self.fault(message, "/id", f"The {message.sender} uses the id {quoted(message.body['id'])} {when}.")

    def at_end(self) -> None:
        if not all(self.session.ids_are_complete(party) for party in Side):
            self.unjudged("There are more ids than the checker remembers.")
