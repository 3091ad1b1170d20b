"""GW-016."""

from __future__ import annotations

from pactgate.capture.format import RecordedHttp, Side
from pactgate.conformance.bounded import BoundedDict
from pactgate.conformance.http import NOT_FOUND, SESSION_HEADER, has_legacy_session, header, is_success
from pactgate.conformance.message import ExchangeView
from pactgate.conformance.rule import HttpRule, LegacyRule


class EndedSessionAnswered(LegacyRule, HttpRule):
    """A session that was ended stays ended: its id gets 404, and the client starts again without it.

    What it checks
        Once a DELETE succeeded or a request got 404, every further use of that session id gets 404, and the next POST of the
        client is an `initialize` without a session id.

    Why
        A session that comes back to life is one whose owner thinks it is gone.

    How to fix
        Server: forget the session at once, and answer unknown ids with 404. Client: treat 404 as the end, and initialize.

    Reference
        Transports, Session Management; revisions 2025-03-26 to 2025-11-25.
    """

    code = "GW-016"
    spec = "basic/transports#session-management"

    def prepare(self) -> None:
        self._ended: BoundedDict[bool] = BoundedDict()
        self._must_initialize = False

    def on_exchange(self, view: ExchangeView) -> None:
        http = view.exchange.http
        if http is None or http.status is None:
            return
        named = header(http.request_headers, SESSION_HEADER)
        if http.verb == "POST" and self._must_initialize:
            self._check_restart(view, named)
        if named is None:
            return
        self.seen += 1
        if named in self._ended and http.status != NOT_FOUND:
            self.fault(view, "/http/status", f"The session had ended, but the status is {http.status}.")
        if _ends(http):
            self._ended[named] = True
            self._must_initialize = http.status == NOT_FOUND

    def _check_restart(self, view: ExchangeView, named: str | None) -> None:
        if has_legacy_session(view.exchange) or named is not None:
            self.fault(
                view, "/request", "After 404 the client must send initialize without a session id.", by=Side.CLIENT
            )
        self._must_initialize = False


def _ends(http: RecordedHttp) -> bool:
    return http.status == NOT_FOUND or (http.verb == "DELETE" and is_success(http.status))
