"""GW-047."""

from __future__ import annotations

from pactgate.conformance.bounded import BoundedDict, Key, id_key
from pactgate.conformance.message import RecordedMessage, Role
from pactgate.conformance.methods import LISTS
from pactgate.conformance.rule import RequirementLevel, SessionRule


class CursorInvented(SessionRule):
    """A client sends only cursors it was given by the same method, a server refuses others, and no page leads back.

    What it checks
        The `cursor` of each list request equals a `nextCursor` that the same method gave out before (an empty text is a
        cursor too). A page does not name, as the next one, the cursor it was asked for or one that led to it. In a session
        with a probe, which invents a cursor on purpose, the server answers that with an error (a SHOULD).

    Why
        Cursors are the server's own words. A circle of pages keeps a client listing for ever, and a server that takes an old
        cursor for the beginning shows items twice.

    How to fix
        Client: hand the cursor back untouched. Server: leave `nextCursor` out on the last page, and answer -32602 to a cursor
        that you did not give out.

    Reference
        Pagination; all revisions.
    """

    code = "GW-047"
    spec = "server/utilities/pagination#error-handling"
    category = "lists"
    methods = frozenset(LISTS)

    def prepare(self) -> None:
        self._given: BoundedDict[bool] = BoundedDict()
        self._chains: dict[str, BoundedDict[bool]] = {}

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.REQUEST and message.is_from_client:
            self._on_request(message)
        elif message.role is Role.RESPONSE and message.is_success:
            self._on_page(message)

    def _on_request(self, message: RecordedMessage) -> None:
        cursor = message.params.get("cursor")
        if cursor is None:
            self._chains[message.method] = BoundedDict()
            return
        self.seen += 1
        place = (message.method, id_key(cursor))
        if not isinstance(cursor, str):
            self.fault(message, "/params/cursor", "The cursor is not a text.")
        elif place not in self._given and not self._given.has_forgotten:
            self.fault(message, "/params/cursor", "The server did not give out this cursor for this method.")

    def _check_refusal(self, message: RecordedMessage, asked: Key) -> None:
        if (message.method, asked) not in self._given and not self._given.has_forgotten and self.session.head.is_probe:
            text = "The server did not give out this cursor, and serves it."
            self.fault(message, "/result", text, RequirementLevel.SHOULD)

    def _on_page(self, message: RecordedMessage) -> None:
        chain = self._chains.setdefault(message.method, BoundedDict())
        asked, following = id_key(message.request_params().get("cursor")), message.result.get("nextCursor")
        if asked is not None:
            chain[asked] = True
            self._check_refusal(message, asked)
        if not isinstance(following, str):
            return
        self.seen += 1
        if id_key(following) in chain:
            self.fault(message, "/result/nextCursor", "The next page is one that was shown before.")
        self._given[(message.method, id_key(following))] = True
