"""GW-015."""

from __future__ import annotations

import re
from typing import Final

from pactgate.capture.format import Side
from pactgate.conformance.http import SESSION_HEADER, has_legacy_session, header
from pactgate.conformance.message import ExchangeView
from pactgate.conformance.rule import HttpRule, LegacyRule

_VISIBLE: Final = re.compile(r"[!-~]+")


class SessionIdLost(LegacyRule, HttpRule):
    """The session id is visible ASCII, and every later request of the client carries it, unchanged.

    What it checks
        The `Mcp-Session-Id` of the answer to `initialize` has visible ASCII characters only. Every later HTTP request of the
        session has the same value, and no answer shows another one.

    Why
        The server finds the session by it. A lost id is a 400, a changed one somebody else's session.

    How to fix
        Keep the id with the connection and send it with POST, GET and DELETE alike.

    Reference
        Transports, Session Management; revisions 2025-03-26 to 2025-11-25.
    """

    code = "GW-015"
    spec = "basic/transports#session-management"

    def prepare(self) -> None:
        self._id: str | None = None

    def on_exchange(self, view: ExchangeView) -> None:
        http = view.exchange.http
        if http is None:
            return
        answered = header(http.response_headers, SESSION_HEADER)
        if not has_legacy_session(view.exchange):
            self._id = answered
            if answered is not None:
                self.seen += 1
                if not _VISIBLE.fullmatch(answered):
                    self.fault(view, "/http/response_headers", "The session id has characters beyond visible ASCII.")
            return
        if self._id is None:
            return
        self.seen += 1
        if header(http.request_headers, SESSION_HEADER) != self._id:
            if view.exchange.sender is not Side.CLIENT:
                return
            self.fault(
                view, "/http/request_headers", "The request does not carry the id of the session.", by=Side.CLIENT
            )
        elif answered is not None and answered != self._id:
            self.fault(view, "/http/response_headers", "The answer names another session.")
