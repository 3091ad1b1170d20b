"""GW-056."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.message import ExchangeView
from pactgate.conformance.rule import HttpRule, RequirementLevel

_SERVER_ERROR: Final = 500
_HONEST: Final = frozenset({501, 503})
"""The method is not implemented; the server is busy or starting."""


class ServerErrorStatus(HttpRule):
    """No request makes the HTTP server fail: what is wrong with it is told by a status below 500.

    What it checks
        No response has a status of 500 or more, except 501 and 503. A probe sends requests with an `Accept` and a `Content-Type` that
        do not fit, and one with a body of several MiB: the specification does not say which status they get, but each is a
        mistake of the client (406, 415, 413), or is served.

    Why
        A status of 500 or more says that the same request may succeed later. Clients and proxies repeat it, and alarms go off.

    How to fix
        Find the exception behind it in the log of the server, and answer with the status 4xx that says what is wrong.

    Reference
        RFC 9110, sections 15.5 and 15.6; revisions 2025-03-26 to 2026-07-28.
    """

    code = "GW-056"
    spec = "https://www.rfc-editor.org/rfc/rfc9110.html#section-15.5"
    level = RequirementLevel.SHOULD

    def on_exchange(self, view: ExchangeView) -> None:
        http = view.exchange.http
        if http is None or http.status is None:
            return
        self.seen += 1
        if http.status >= _SERVER_ERROR and http.status not in _HONEST:
            self.fault(view, "/http/status", f"The status of {http.verb} is {http.status}.")
