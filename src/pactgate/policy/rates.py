"""How often a caller may call a tool: which quota counts, and what a refusal says.

A rule for the tool counts before its category (D10); a tool of unknown category is one that may change things. The tools of a category, and
those one rule means, share one quota for each caller: a loop over many tools is as much of a load as one over a single tool. Callers are
told apart by who they are, never by address, session or header. Must not: count; a store does. Enforces S2/MCP-006 and S2/MCP-007.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pactgate.config.rates import Rate, RateLimits
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.model import Tool
from pactgate.policy.categories import RateClass
from pactgate.policy.patterns import most_specific
from pactgate.state.ports import Quota, RateStore, Refusal

WINDOW_SECONDS: Final = 60
_REMEMBERED_NAMES: Final = 4096


class RatePolicy:
    """The rules of one configuration, until the next."""

    def __init__(self, settings: RateLimits, store: RateStore) -> None:
        self.refused_count = 0
        self._take = store.take
        self.reconfigure(settings)

    def reconfigure(self, settings: RateLimits) -> None:
        """Go by other settings from the next call on. What callers have used stays used."""
        rules = {pattern: _quota(f'rateLimits.tools["{pattern}"]', rate) for pattern, rate in settings.tools.items()}

        @lru_cache(_REMEMBERED_NAMES)
        def own(full_name: str) -> Quota | None:
            pattern = most_specific(full_name, rules)
            return None if pattern is None else rules[pattern]

        self._settings = settings
        self._own = own if rules else None
        self._classes = {name.value: _quota(f"rateLimits.{name}", getattr(settings, name)) for name in RateClass}
        self._unknown = self._classes[RateClass.MUTATION]
        self._is_enabled = settings.enabled

    def admit(self, subject: str, tool: Tool) -> None:
        """Count one call of a tool, or raise RATE_LIMITED without counting it."""
        quota = self.quota(tool)
        if quota is None:
            return
        refusal = self._take(subject, quota)
        if refusal is not None:
            self.refused_count += 1
            raise _failure(tool, quota, refusal)

    def quota(self, tool: Tool) -> Quota | None:
        """What each caller has for a tool, by the name of the setting that says so; None when there is no limit."""
        if not self._is_enabled:
            return None
        own = self._own(tool.full_name) if self._own is not None else None
        return own or self._classes.get(tool.traits.rate_class, self._unknown)

    def describe(self) -> dict[str, Any]:
        """The limits as everybody may know them, under the names of the settings."""
        limits = self._settings
        return {
            "enabled": limits.enabled,
            "windowSeconds": WINDOW_SECONDS,
            **{name.value: _facts(getattr(limits, name)) for name in RateClass},
            "tools": {pattern: _facts(rate) for pattern, rate in limits.tools.items()},
        }


def _quota(name: str, rate: Rate) -> Quota:
    return Quota(name, rate.rpm, rate.burst)


def _facts(rate: Rate) -> dict[str, int]:
    return {"rpm": rate.rpm, "burst": rate.burst}


def _failure(tool: Tool, quota: Quota, refusal: Refusal) -> GatewayFailure:
    wait_s = _whole_seconds(refusal.retry_after_ms)
    return GatewayFailure(
        Kind.RATE_LIMITED,
        f"Too many calls: {quota.name} lets one caller make {quota.rpm} in a minute and {quota.burst} at once. "
        f"{tool.full_name} can be called again in {wait_s} s.",
        server=tool.server,
        tool=tool.full_name,
        operation="tools/call",
        retry_after_ms=refusal.retry_after_ms,
        details={
            "retryAfter": wait_s,
            "remaining": 0,
            "remainingInWindow": refusal.remaining_in_window,
            "resetIn": _whole_seconds(refusal.reset_in_ms),
            "limit": quota.rpm,
            "burst": quota.burst,
            "windowSeconds": WINDOW_SECONDS,
            "toolName": tool.full_name,
            "rateClass": tool.traits.rate_class,
            "limitedBy": quota.name,
        },
    )


def _whole_seconds(ms: int) -> int:
    return max(1, -(-ms // 1000))
