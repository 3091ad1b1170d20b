"""GW-023."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pactgate.capture.format import Side
from pactgate.conformance.bounded import BoundedDict, Key, id_key
from pactgate.conformance.message import RecordedMessage, Role
from pactgate.conformance.rule import RequiredEvidence, SessionRule, quoted
from pactgate.protocol.modern import PROGRESS_TOKEN

_Place = tuple[Side, Key | None, int | None]


class ProgressOutOfTurn(SessionRule):
    """Progress is told of an open request by its token, with growing numbers, and ends with the answer.

    What it checks
        A progress token is used by one open request at a time. Each `notifications/progress` has the token of a request of
        the other side that is still open, and its `progress` is greater than before. Modern clients never send progress.
        Requests that became tasks may go on after their answer. Where several clients share a capture (`shared`), tokens
        count per request.

    Why
        Late or foreign progress is shown for the wrong call; numbers that fall make waiting clients give up.

    How to fix
        Bind the sender of progress to the request, and cut it off when the answer is sent.

    Reference
        Progress; all revisions.
    """

    code = "GW-023"
    spec = "basic/utilities/progress#behavior-requirements"
    category = "progress"
    needs = RequiredEvidence.SERVER_MESSAGES

    def prepare(self) -> None:
        self._active: BoundedDict[Any] = BoundedDict()
        self._done: BoundedDict[bool] = BoundedDict()

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.REQUEST and PROGRESS_TOKEN in message.meta:
            self._open(message)
        elif message.role is Role.RESPONSE and message.request is not None:
            self._close(message, message.request)
        elif message.method == "notifications/progress":
            self._on_progress(message)

    def _open(self, message: RecordedMessage) -> None:
        token = id_key(message.meta[PROGRESS_TOKEN])
        if token is None:
            self.fault(message, "/params/_meta/progressToken", "The progress token is no string and no integer.")
            return
        place = self._place(message, message.sender, token)
        if place in self._active:
            self.fault(message, "/params/_meta/progressToken", "Another open request has the same progress token.")
        self._active[place] = None
        self._done.pop(place, None)

    def _close(self, message: RecordedMessage, request: RecordedMessage) -> None:
        token = id_key(request.meta.get(PROGRESS_TOKEN))
        is_task = "task" in request.params or message.result.get("resultType") == "task"
        if token is not None and not is_task:
            place = self._place(request, request.sender, token)
            self.seen += 1
            self._active.pop(place, None)
            self._done[place] = True

    def _on_progress(self, message: RecordedMessage) -> None:
        self.seen += 1
        if message.is_modern and message.is_from_client:
            self.fault(message, "/method", "A modern client sends no progress.")
            return
        raw = message.params.get(PROGRESS_TOKEN)
        token, value = id_key(raw), message.params.get("progress")
        if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
            self.fault(message, "/params/progress", f"The progress is {quoted(value)}, not a number.")
            return
        place = self._place(message, message.sender.other, token)
        if token is None or place not in self._active:
            when = "has been answered already" if place in self._done else "is not known"
            self.fault(message, "/params/progressToken", f"The request with the progress token {quoted(raw)} {when}.")
            return
        before = self._active[place]
        if before is not None and value <= before:
            self.fault(message, "/params/progress", f"The progress {quoted(value)} does not exceed {quoted(before)}.")
        self._active[place] = value

    def _place(self, message: RecordedMessage, sender: Side, token: Key | None) -> _Place:
        """Clients that share a capture may use the same tokens; each request then has a stream, and an exchange, of its own."""
        return (sender, token, message.index if self.session.head.is_shared else None)
