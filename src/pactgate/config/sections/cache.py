"""The section `cache`: how much is cached, for how long, and of which tools.

Must not: decide whether the result of a tool may be cached; the policy package does. Enforces the settings of S1/CACHE-001 to
S1/CACHE-004 and decision D11 (nothing is cached unless asked for).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from pactgate.config.problems import ConfigFindings
from pactgate.config.sections import Section, doc
from pactgate.config.sections.limits import ToolPattern

LONGEST_MS: Final = 2_592_000_000
"""Thirty days."""

EvictionPolicy = Literal["lru", "lfu", "fifo"]


class CacheRule(Section, frozen=True, kw_only=True):
    """How results of the tools a pattern names are cached."""

    ttl_ms: Annotated[
        Annotated[int, Meta(ge=0, le=LONGEST_MS)] | None,
        doc("Milliseconds a result stays cached; 0: until it is evicted. Default: `defaultTtlMs`."),
    ] = None


class Cache(Section, frozen=True, kw_only=True):
    """Cached results of tools. Nothing is cached of a tool unless `tools` names it."""

    max_size_bytes: Annotated[
        int, doc("Bytes of all entries, keys and bookkeeping counted.", ge=1024, le=17179869184)
    ] = 104857600
    max_entries: Annotated[int, doc("Results cached at one time.", ge=1, le=1000000)] = 10000
    default_ttl_ms: Annotated[
        int, doc("Milliseconds a result stays cached where no rule sets it; 0: no limit.", ge=0, le=LONGEST_MS)
    ] = 3600000
    eviction_policy: Annotated[
        EvictionPolicy, doc("What is evicted first: the least recently used, the least frequently used, or the oldest.")
    ] = "lru"
    high_water_mark: Annotated[float, doc("Part of `maxSizeBytes` above which entries are evicted.", ge=0.5, le=1)] = (
        0.9
    )
    low_water_mark: Annotated[
        float, doc("Part of `maxSizeBytes` down to which they are evicted; less than `highWaterMark`.", ge=0.1, le=0.9)
    ] = 0.7
    cleanup_interval_ms: Annotated[
        int, doc("Milliseconds between removals of expired results.", ge=100, le=86400000)
    ] = 60000
    tools: Annotated[
        dict[ToolPattern, CacheRule],
        doc(
            "Tools to cache, by full name (`files.read`) or pattern (`files.*`); an exact name takes precedence over "
            "patterns, a longer pattern over a shorter one. Patterns match read-only and idempotent tools only.",
            max_length=1000,
        ),
    ] = {}


def check_cache(settings: dict[str, object], found: ConfigFindings) -> None:
    """Check the water marks against each other. `settings` are those that were given, each valid by itself."""
    low = settings.get("lowWaterMark", Cache().low_water_mark)
    high = settings.get("highWaterMark", Cache().high_water_mark)
    if not isinstance(low, int | float) or not isinstance(high, int | float) or low < high:
        return
    given = "lowWaterMark" if "lowWaterMark" in settings else "highWaterMark"
    message = f"The low water mark {low} is not below the high one {high}."
    found.add(("cache", given), message, "Entries are evicted from the high mark down to the low one.", at_value=True)
