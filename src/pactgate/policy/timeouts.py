"""The timeout of a tool call, and the setting it comes from.

An override for the tool wins; otherwise the shorter of the timeouts of its category and its server applies.
Must not: read a clock. Enforces S1/TIMEOUT-002 (equal category, equal limit) and S1/TIMEOUT-003 (overrides).
"""

from __future__ import annotations

from msgspec import Struct

from pactgate.config.sections.limits import Timeouts
from pactgate.policy.categories import ToolCategory


class ToolTimeout(Struct, frozen=True, gc=False):
    """Milliseconds, and the setting they come from, in words for people."""

    ms: int
    source: str


def for_tool(
    full_name: str, bare_name: str, category: ToolCategory | None, server_request_timeout_ms: int, settings: Timeouts
) -> ToolTimeout:
    """The timeout of a tool. `category` is None where it is not known."""
    for name in (full_name, bare_name):
        if name in settings.tool_overrides:
            return ToolTimeout(settings.tool_overrides[name], f'timeouts.toolOverrides["{name}"]')
    if category is None:
        limit = ToolTimeout(settings.default_timeout_ms, "timeouts.defaultTimeoutMs")
    else:
        limit = ToolTimeout(getattr(settings.tool_timeouts, category.value), f"timeouts.toolTimeouts.{category.value}")
    if server_request_timeout_ms < limit.ms:
        return ToolTimeout(server_request_timeout_ms, "requestTimeoutMs of the server")
    return limit


def shortened(limit: ToolTimeout, caller_ms: int | None) -> ToolTimeout:
    """The timeout after the caller asked for a shorter one, of at least 1 ms; a longer one is ignored."""
    if caller_ms is None or caller_ms >= limit.ms:
        return limit
    return ToolTimeout(max(1, caller_ms), "timeoutMs of the caller")
