"""The rate limits of tools and of other requests: which quota applies, and the failure that a caller over the limit gets.

A rule for the tool applies before its category (D10); a tool of unknown category counts as one that may change things. Every caller has
its own quota for every tool, and one for every other kind of request. Callers are identified by subject, never by address, session or
header. Must not: count; the store counts.
Enforces S2/MCP-006 and S2/MCP-007.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, NamedTuple

from pactgate.config.sections.rate_limits import Rate, RateLimits
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Tool
from pactgate.policy.categories import RateClass
from pactgate.policy.tool_patterns import most_specific
from pactgate.state.ports import Quota, RateRefusal, RateStore

WINDOW_SECONDS: Final = 60
_REMEMBERED_TOOLS: Final = 20_000
_REQUESTS: Final = "rateLimits.requests"


class Allowance(NamedTuple):
    """The quota of each caller for one tool, and the setting it comes from."""

    setting: str
    quota: Quota


class RatePolicy:
    """The rate limits of the current configuration."""

    def __init__(self, settings: RateLimits, store: RateStore) -> None:
        self.refused_count = 0
        self._take = store.take
        self.reconfigure(settings)

    def reconfigure(self, settings: RateLimits) -> None:
        """Apply other settings from the next call on. Calls already counted stay counted."""
        self._settings = settings
        self._known: dict[tuple[str, str], Allowance] = {}
        self._requests: dict[str, Quota] = {}
        self._is_enabled = settings.enabled

    def admit(self, subject: str, tool: Tool) -> Awaitable[None] | None:
        """Count one call of a tool, or raise RATE_LIMITED without counting it. An awaitable does so once the store has answered."""
        if not self._is_enabled:
            return None
        allowance = self._known.get((tool.full_name, tool.traits.rate_class)) or self._work_out(tool)
        refusal = self._take(subject, allowance.quota)
        if refusal is None:
            return None
        if not isinstance(refusal, RateRefusal):
            return self._admit_later(refusal, tool, allowance)
        self.refused_count += 1
        raise _failure(tool, allowance, refusal)

    async def _admit_later(self, asked: Awaitable[RateRefusal | None], tool: Tool, allowance: Allowance) -> None:
        refusal = await asked
        if refusal is not None:
            self.refused_count += 1
            raise _failure(tool, allowance, refusal)

    def admit_request(self, subject: str, kind: str) -> Awaitable[None] | None:
        """Count one request other than a call, as `admit` does. `kind` is one of a few."""
        if not self._is_enabled:
            return None
        quota = self._requests.get(kind)
        if quota is None:
            rate = self._settings.requests
            quota = self._requests[kind] = Quota(f"{kind} request", rate.rpm, rate.burst)
        refusal = self._take(subject, quota)
        if refusal is None:
            return None
        if not isinstance(refusal, RateRefusal):
            return self._admit_request_later(refusal, kind, quota)
        self.refused_count += 1
        raise _request_failure(kind, quota, refusal)

    async def _admit_request_later(self, asked: Awaitable[RateRefusal | None], kind: str, quota: Quota) -> None:
        refusal = await asked
        if refusal is not None:
            self.refused_count += 1
            raise _request_failure(kind, quota, refusal)

    def facts_of(self, tool: Tool) -> dict[str, Any] | None:
        """The limit of one tool, which is public; None when there is none."""
        if not self._is_enabled:
            return None
        setting, quota = self._known.get((tool.full_name, tool.traits.rate_class)) or self._work_out(tool)
        return {"rpm": quota.rpm, "burst": quota.burst, "setting": setting}

    def describe(self) -> dict[str, Any]:
        """The limits, which are public, under the names of the settings."""
        limits = self._settings
        return {
            "enabled": limits.enabled,
            "windowSeconds": WINDOW_SECONDS,
            **{name.value: _facts(getattr(limits, name)) for name in RateClass},
            "requests": _facts(limits.requests),
            "tools": {pattern: _facts(rate) for pattern, rate in limits.tools.items()},
        }

    def _work_out(self, tool: Tool) -> Allowance:
        settings, name, rate_class = self._settings, tool.full_name, tool.traits.rate_class
        pattern = most_specific(name, settings.tools)
        if pattern is not None:
            setting, rate = f'rateLimits.tools["{pattern}"]', settings.tools[pattern]
        else:
            known = RateClass(rate_class) if rate_class in _CLASSES else RateClass.MUTATION
            setting, rate = f"rateLimits.{known}", getattr(settings, known)
        if len(self._known) >= _REMEMBERED_TOOLS:  # a server may invent names without end
            self._known.clear()
        allowance = self._known[name, rate_class] = Allowance(setting, Quota(name, rate.rpm, rate.burst))
        return allowance


_CLASSES: Final = frozenset(name.value for name in RateClass)


def _facts(rate: Rate) -> dict[str, int]:
    return {"rpm": rate.rpm, "burst": rate.burst}


def _failure(tool: Tool, allowance: Allowance, refusal: RateRefusal) -> GatewayFailure:
    wait_s = _whole_seconds(refusal.retry_after_ms)
    setting, quota = allowance
    return GatewayFailure(
        Kind.RATE_LIMITED,
        f"Too many calls: {setting} allows each client {quota.rpm} calls of a tool per minute (burst {quota.burst}). "
        f"{tool.full_name} can be called again in {wait_s} s. The operator changes it in the configuration, or with "
        f"`pactgate config set {setting}.rpm NUMBER`.",
        server=tool.server,
        tool=tool.full_name,
        operation="tools/call",
        retry_after_ms=refusal.retry_after_ms,
        details={
            **_details(setting, quota, refusal),
            "toolName": tool.full_name,
            "rateClass": tool.traits.rate_class,
        },
    )


def _request_failure(kind: str, quota: Quota, refusal: RateRefusal) -> GatewayFailure:
    return GatewayFailure(
        Kind.RATE_LIMITED,
        f"Too many requests: {_REQUESTS} allows each client {quota.rpm} requests of the kind {kind!r} per minute "
        f"(burst {quota.burst}). Try again in {_whole_seconds(refusal.retry_after_ms)} s. The operator changes it in the "
        f"configuration, or with `pactgate config set {_REQUESTS}.rpm NUMBER`.",
        retry_after_ms=refusal.retry_after_ms,
        details={**_details(_REQUESTS, quota, refusal), "rateClass": kind},
    )


def _details(setting: str, quota: Quota, refusal: RateRefusal) -> dict[str, Any]:
    return {
        "retryAfter": _whole_seconds(refusal.retry_after_ms),
        "remaining": 0,
        "remainingInWindow": refusal.remaining_in_window,
        "resetIn": _whole_seconds(refusal.reset_in_ms),
        "limit": quota.rpm,
        "burst": quota.burst,
        "windowSeconds": WINDOW_SECONDS,
        "limitedBy": setting,
    }


def _whole_seconds(ms: int) -> int:
    return max(1, -(-ms // 1000))
