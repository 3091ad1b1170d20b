"""GW-024."""

from __future__ import annotations

from typing import Final

from pactgate.capture.format import Side
from pactgate.conformance.bounded import BoundedDict, id_key
from pactgate.conformance.message import ExchangeView, RecordedMessage, Role
from pactgate.conformance.rule import SessionRule, quoted
from pactgate.protocol.modern import PROGRESS_TOKEN
from pactgate.protocol.versions import LATEST_MODERN

_IN_FLIGHT_MS: Final = 1000.0


class CancelledRequestAnswered(SessionRule):
    """A cancellation names an earlier request of the same sender, and the request gets no answer afterwards.

    What it checks
        `notifications/cancelled` has the id of a request that the same side sent before. What was in flight may still arrive:
        one message, within a second where the capture tells the time. More is a breach: for a legacy request an answer, for a
        modern one any message. A modern request whose stream the client closed gets nothing more at all.

    Why
        A cancelled call that still answers is one that still works, at somebody's cost.

    How to fix
        Client: cancel only what is open. Server: stop the work, and drop the answer.

    Reference
        Cancellation; all revisions, a MUST since 2026-07-28.
    """

    code = "GW-024"
    spec = "basic/utilities/cancellation#behavior-requirements"
    category = "cancellation"
    must_since = LATEST_MODERN

    def prepare(self) -> None:
        self._cancelled: BoundedDict[tuple[RecordedMessage, int]] = BoundedDict()
        self._tokens: BoundedDict[tuple[Side, object]] = BoundedDict()

    def on_exchange(self, view: ExchangeView) -> None:
        exchange = view.exchange
        if view.is_modern and exchange.closed_by is Side.CLIENT and exchange.response is not None:
            self.fault(view, "/response", "The client had closed the stream, and the request was answered still.")

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.REQUEST and message.key is not None:
            self._cancelled.pop((message.sender, message.key), None)
        elif message.method == "notifications/cancelled":
            self._on_cancelled(message)
        elif message.role is Role.RESPONSE and message.request is not None:
            self._on_later(message, (message.request.sender, message.request.key))
        elif message.method == "notifications/progress" and message.is_modern:
            token = id_key(message.params.get(PROGRESS_TOKEN))
            place = self._tokens.get((message.sender.other, token))
            if place is not None:
                self._on_later(message, place)

    def _on_cancelled(self, message: RecordedMessage) -> None:
        self.seen += 1
        raw = message.params.get("requestId")
        key = id_key(raw)
        if message.is_modern and not message.is_from_client:
            return  # a server may only end a listen, which GW-039 looks at
        if key is None or not self.session.has_sent(message.sender, key):
            self.fault(message, "/params/requestId", f"The {message.sender} sent no request {quoted(raw)}.")
            return
        place = (message.sender, key)
        request = self.session.open.get(place)
        if request is None:
            return  # it had been answered: the two crossed
        self._cancelled[place] = (message, 0)
        token = id_key(request.meta.get(PROGRESS_TOKEN))
        if token is not None:
            self._tokens[(message.sender, token)] = place

    def _on_later(self, message: RecordedMessage, place: tuple[Side, object]) -> None:
        notice, count = self._cancelled.get(place, (None, 0))
        if notice is None:
            return
        self._cancelled[place] = (notice, count + 1)
        waited_ms = 0.0 if message.at_ms is None or notice.at_ms is None else message.at_ms - notice.at_ms
        if count or waited_ms > _IN_FLIGHT_MS:
            self.fault(message, "", "This follows the cancellation of the request it belongs to.")
