"""GW-031."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.bounded import BoundedDict
from pactgate.conformance.message import FROM_SERVER, RESULTS, RecordedMessage
from pactgate.conformance.rule import ModernRule, quoted
from pactgate.protocol.versions import CACHEABLE

_SCOPES: Final = ("public", "private")


class CacheHintMissing(ModernRule):
    """Lists, reads and discovery say how long and for whom they may be kept.

    What it checks
        Complete results of the six cacheable methods have `ttlMs`, an integer of at least 0, and `cacheScope`, `public` or
        `private`. All pages of one listing have the same scope.

    Why
        Caches between client and server go by it. A page that is public by mistake shows one user's resources to another.

    How to fix
        Set both on every such result; 0 and `private` are always right.

    Reference
        Caching; revision 2026-07-28.
    """

    code = "GW-031"
    spec = "server/utilities/caching"
    category = "caching"
    selects = RESULTS & FROM_SERVER
    methods = CACHEABLE

    def prepare(self) -> None:
        self._chains: BoundedDict[str] = BoundedDict()

    def on_message(self, message: RecordedMessage) -> None:
        result = message.result
        if result.get("resultType", "complete") != "complete":
            return
        self.seen += 1
        ttl, scope = result.get("ttlMs"), result.get("cacheScope")
        if not isinstance(ttl, int) or isinstance(ttl, bool) or ttl < 0:
            self.fault(message, "/result/ttlMs", f"ttlMs is {quoted(ttl)}, not an integer of at least 0.")
        if scope not in _SCOPES:
            self.fault(message, "/result/cacheScope", f"cacheScope is {quoted(scope)}, not public or private.")
            return
        cursor = message.request_params().get("cursor")
        before = self._chains.get((message.method, cursor)) if isinstance(cursor, str) else None
        if before is not None and before != scope:
            self.fault(message, "/result/cacheScope", f"The page is {scope}, but the one before it is {before}.")
        following = result.get("nextCursor")
        if isinstance(following, str):
            self._chains[(message.method, following)] = before or scope
