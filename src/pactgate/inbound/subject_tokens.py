"""The tokens with which callers were admitted last, for servers where they are exchanged (RFC 8693). In memory only, and bounded.

A token is kept under its principal with all its rights: a client with fewer rights is not served by the token of one with more. Must not:
keep a token that no server needs, or show one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final

from pactgate.core.principal import Principal

MAX_TOKENS: Final = 10_000


class SubjectTokens:
    """`issuers` are those whose tokens some server exchanges."""

    def __init__(self) -> None:
        self.issuers: Collection[str] = ()
        self._tokens: OrderedDict[Principal, str] = OrderedDict()

    def note(self, principal: Principal, token: str) -> None:
        """A caller was admitted with this token."""
        if principal.issuer in self.issuers:
            self._tokens[principal] = token
            self._tokens.move_to_end(principal)
            if len(self._tokens) > MAX_TOKENS:
                self._tokens.popitem(last=False)

    def of(self, principal: Principal) -> str | None:
        return self._tokens.get(principal)

    def forget(self, subject: str) -> None:
        """Drop what is kept of a principal that may no longer call."""
        for principal in [one for one in self._tokens if one.key == subject]:
            del self._tokens[principal]
