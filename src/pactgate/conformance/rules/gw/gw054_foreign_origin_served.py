"""GW-054."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pactgate.conformance.http import header, is_success
from pactgate.conformance.message import ExchangeView
from pactgate.conformance.rule import HttpRule, quoted

_FORBIDDEN: Final = 403
_STATUS_SINCE: Final = "2025-11-25"
_NOWHERE: Final = ".invalid"
_UNAUTHORIZED: Final = 401


class ForeignOriginServed(HttpRule):
    """A request from a web page of another site is refused with 403.

    What it checks
        A probe sends a request whose `Origin` is a host under `.invalid`, which no site can have (RFC 2606). It is not served,
        and from 2025-11-25 on the status is 403, or 401 where credentials are looked at first. Other origins are not looked at:
        only the operator knows which are valid.

    Why
        Any web page that a person visits can send requests to a server on that person's machine (DNS rebinding). The `Origin` is
        the only sign of it.

    How to fix
        Compare `Origin`, where there is one, with a list of allowed ones, and answer 403 to all others. The SDKs have a setting.

    Reference
        Transports, Security Warning; revisions 2025-03-26 to 2026-07-28.
    """

    code = "GW-054"
    spec = "basic/transports#security-warning"
    if_nothing = "No request had an Origin that must be refused."

    def on_exchange(self, view: ExchangeView) -> None:
        http = view.exchange.http
        origin = None if http is None else header(http.request_headers, "origin")
        if http is None or http.status is None or origin is None or not _is_nowhere(origin):
            return
        self.seen += 1
        if is_success(http.status):
            self.fault(view, "/http/request_headers", f"A request with the Origin {quoted(origin)} is served.")
        elif http.status not in (_FORBIDDEN, _UNAUTHORIZED) and (view.version or "") >= _STATUS_SINCE:
            text = f"A request with the Origin {quoted(origin)} gets the status {http.status}, not 403."
            self.fault(view, "/http/status", text)


def _is_nowhere(origin: str) -> bool:
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        return False
    return host.endswith(_NOWHERE)
