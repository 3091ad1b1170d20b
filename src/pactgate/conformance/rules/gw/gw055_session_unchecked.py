"""GW-055."""

from __future__ import annotations

from pactgate.conformance.http import BAD_REQUEST, NOT_FOUND, SESSION_HEADER, has_legacy_session, header, is_success
from pactgate.conformance.message import ExchangeView
from pactgate.conformance.rule import HttpRule, LegacyRule, RequirementLevel


class SessionUnchecked(LegacyRule, HttpRule):
    """A server with sessions refuses requests without a session id, or with one that it did not give out.

    What it checks
        Where the answer to `initialize` has a session id: a POST without one gets 400, and a POST with one that was never given
        out gets 404. The MUST of the specification is about sessions that have ended (GW-016).

    Why
        Who may send anything with any id needs no session, and what a session holds is not protected by its id. Clients open a
        new session on 404 only.

    How to fix
        Look the id up first: none at all is 400, an unknown one is 404.

    Reference
        Transports, Session Management; revisions 2025-03-26 to 2025-11-25.
    """

    code = "GW-055"
    spec = "basic/transports#session-management"
    level = RequirementLevel.SHOULD
    if_nothing = "The server has no sessions, or every request carried the id of its session."

    def prepare(self) -> None:
        self._given: set[str] = set()

    def on_exchange(self, view: ExchangeView) -> None:
        http = view.exchange.http
        if http is None or http.status is None or http.verb != "POST":
            return
        if not has_legacy_session(view.exchange):
            answered = header(http.response_headers, SESSION_HEADER)
            if answered is not None:
                self._given.add(answered)
            return
        named = header(http.request_headers, SESSION_HEADER)
        if not self._given or named in self._given:
            return
        self.seen += 1
        what, wanted = ("no session id", BAD_REQUEST) if named is None else ("an unknown session id", NOT_FOUND)
        if is_success(http.status):
            self.fault(view, "/http/status", f"A request with {what} is served with the status {http.status}.")
        elif http.status != wanted:
            self.fault(view, "/http/status", f"A request with {what} gets the status {http.status}, not {wanted}.")
