"""What a channel knows of a sign-in: a token to send, and whom to ask when a server refused it. `upstreams/oauth` has the one there is."""

from __future__ import annotations

from typing import Protocol

from pactgate.core.failures import GatewayFailure


class TokenSource(Protocol):
    @property
    def token(self) -> str:
        """The token to send now; empty: none."""

    def answers(self, used: str, header: str) -> bool:
        """Whether a 401 with this challenge is about a sign-in."""

    async def renew(self, used: str) -> None:
        """After a 401: have another token than the one that was used. Raises where only a person can help."""

    async def widen(self, used: str, header: str) -> bool:
        """After a 403: whether there is a token with more scopes now. Raises where a sign-in would give one."""

    def refused(self) -> GatewayFailure:
        """The failure of a request whose fresh token was refused as well."""
