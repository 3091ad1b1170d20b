"""What the scopes of an access token allow: which of them a tool of each category needs, and what everything else needs.

Only tokens of identity providers have scopes; every other principal is not limited by them. A scope includes those it implies. Must not:
read tokens, or know transports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pactgate.config.sections.oauth import CATEGORIES, DEFAULT_SCOPES, Scope, closure
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal
from pactgate.policy.categories import ToolCategory

FREE_METHODS: Final = frozenset({"initialize", "server/discover", "ping", "logging/setLevel"})
"""Methods that give nothing away."""
SCOPES: Final = "scopes"
"""The detail of a failure that names the scopes which would have sufficed."""


class RequiredScope:
    """One scope that a request needs. `sufficient` are all scopes that include it."""

    __slots__ = ("name", "sufficient")

    def __init__(self, name: str, scopes: Mapping[str, Scope]) -> None:
        self.name = name
        self.sufficient = frozenset(one for one in scopes if name in closure(one, scopes))

    def is_held_by(self, principal: Principal) -> bool:
        return principal.scopes is None or not self.sufficient.isdisjoint(principal.scopes)

    def require(self, principal: Principal, what: str) -> None:
        """Raise unless the principal has the scope, or is not limited by scopes."""
        held = principal.scopes
        if held is not None and self.sufficient.isdisjoint(
            held
        ):  # not by `is_held_by`: every call of a tool comes here
            raise GatewayFailure(
                Kind.INSUFFICIENT_SCOPE,
                f"{what} needs the scope {self.name!r}, which the access token does not have. Ask for a token with it.",
                details={SCOPES: [self.name]},
            )


class ScopePolicy:
    """The scope that each category needs. There is none in a gateway without issuers."""

    def __init__(self, scopes: Mapping[str, Scope]) -> None:
        scopes = scopes or DEFAULT_SCOPES
        self._by_category: dict[str, RequiredScope] = {
            category: RequiredScope(name, scopes)
            for category in CATEGORIES
            for name, scope in scopes.items()
            if category in scope.categories
        }
        self.read = self._by_category[ToolCategory.QUERY.value]
        """For everything that is no tool."""
        self.unknown = self._by_category[ToolCategory.MUTATION.value]
        """For what nobody knows: it may change something (D10)."""

    def of(self, category: str) -> RequiredScope:
        return self._by_category[category]
