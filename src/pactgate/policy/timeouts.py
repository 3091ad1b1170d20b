"""The timeout of a tool call, and the setting it comes from.

An override for the tool wins; otherwise the shorter of the timeouts of its category and its server applies. A category that only the
hints of a server set has no timeout of its own: a read may take long. Must not: read a clock.
Enforces S1/TIMEOUT-002 (equal category, equal limit) and S1/TIMEOUT-003 (overrides).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pactgate.config.sections.limits import CATEGORY_TIMEOUTS_MS, Timeouts
from pactgate.policy.categories import ToolCategory

CALLERS_LIMIT: Final = "timeoutMs of the client"


class ToolTimeout(Struct, frozen=True, gc=False):
    """Milliseconds, and the setting they come from, in words for people."""

    ms: int
    source: str


def for_tool(
    full_name: str,
    bare_name: str,
    category: ToolCategory | None,
    server_request_timeout_ms: int,
    settings: Timeouts,
    *,
    is_hinted: bool = False,
) -> ToolTimeout:
    """The timeout of a tool. `category` is None where it is not known; `is_hinted` says that only hints of its server set it."""
    for name in (full_name, bare_name):
        if name in settings.tool_overrides:
            return ToolTimeout(settings.tool_overrides[name], f'timeouts.toolOverrides["{name}"]')
    limit: ToolTimeout | None
    if category is None:
        limit = ToolTimeout(settings.default_timeout_ms, "timeouts.defaultTimeoutMs")
    else:
        limit = _of_category(category, settings, is_hinted=is_hinted)
    if limit is None or server_request_timeout_ms < limit.ms:
        return ToolTimeout(server_request_timeout_ms, "requestTimeoutMs of the server")
    return limit


def _of_category(category: ToolCategory, settings: Timeouts, *, is_hinted: bool) -> ToolTimeout | None:
    by_category = settings.tool_timeouts
    given = {
        ToolCategory.QUERY: by_category.query,
        ToolCategory.MUTATION: by_category.mutation,
        ToolCategory.SCAN: by_category.scan,
        ToolCategory.EXECUTION: by_category.execution,
    }[category]
    if given is None and is_hinted:
        return None
    ms = CATEGORY_TIMEOUTS_MS[category.value] if given is None else given
    return ToolTimeout(ms, f"timeouts.toolTimeouts.{category.value}")


def shortened(limit: ToolTimeout, caller_ms: int | None) -> ToolTimeout:
    """The timeout after the caller asked for a shorter one, of at least 1 ms; a longer one is ignored."""
    if caller_ms is None or caller_ms >= limit.ms:
        return limit
    return ToolTimeout(max(1, caller_ms), CALLERS_LIMIT)
