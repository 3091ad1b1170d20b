"""The section `cache`: how much is kept, for how long, and of which tools.

Must not: say what may be kept of a tool that changes things; that is a matter of policy. Enforces the settings of S1/CACHE-001 to
S1/CACHE-004 and decision D11 (nothing is kept unless it is asked for).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from pactgate.config.problems import ConfigFindings
from pactgate.config.sections.limits import ToolPattern
from pactgate.config.tree import ConfigNode

LONGEST_MS: Final = 2_592_000_000
"""Thirty days."""

EvictionPolicy = Literal["lru", "lfu", "fifo"]


class CacheRule(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is kept of the tools a pattern names."""

    ttl_ms: Annotated[
        Annotated[int, Meta(ge=0, le=LONGEST_MS)] | None,
        Meta(
            description="Milliseconds a result is kept; 0 keeps it until it is evicted or dropped. Left out: `defaultTtlMs`."
        ),
    ] = None


class Cache(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Results of tools that are kept and given again. Nothing is kept of a tool unless `tools` names it."""

    max_size_bytes: Annotated[
        int, Meta(ge=1024, le=17179869184, description="Bytes of all entries, keys and bookkeeping counted.")
    ] = 104857600
    max_entries: Annotated[int, Meta(ge=1, le=1000000, description="Results kept at one time.")] = 10000
    default_ttl_ms: Annotated[
        int,
        Meta(
            ge=0, le=LONGEST_MS, description="Milliseconds a result is kept where no rule says how long; 0: no limit."
        ),
    ] = 3600000
    eviction_policy: Annotated[
        EvictionPolicy,
        Meta(description="What goes first: the least recently used, the least frequently used, or the oldest."),
    ] = "lru"
    high_water_mark: Annotated[
        float, Meta(ge=0.5, le=1, description="Part of `maxSizeBytes` above which entries are evicted.")
    ] = 0.9
    low_water_mark: Annotated[
        float,
        Meta(ge=0.1, le=0.9, description="Part of `maxSizeBytes` down to which they are; less than `highWaterMark`."),
    ] = 0.7
    cleanup_interval_ms: Annotated[
        int, Meta(ge=100, le=86400000, description="Milliseconds between sweeps that free what has expired.")
    ] = 60000
    tools: Annotated[
        dict[ToolPattern, CacheRule],
        Meta(
            max_length=1000,
            description="Whose results are kept, by full name (`files.read`) or pattern (`files.*`); the name itself counts before any "
            "pattern, a longer pattern before a shorter. A pattern means tools known to be read-only or idempotent.",
        ),
    ] = {}


def check_cache(settings: dict[str, object], node: ConfigNode | None, found: ConfigFindings) -> None:
    """What the settings of the section say about each other. `settings` are those that were given, each valid by itself."""
    low = settings.get("lowWaterMark", Cache().low_water_mark)
    high = settings.get("highWaterMark", Cache().high_water_mark)
    if not isinstance(low, int | float) or not isinstance(high, int | float) or low < high:
        return
    given = "lowWaterMark" if "lowWaterMark" in settings else "highWaterMark"
    place = node.value[given].place if node is not None else None
    found.add(
        ("cache", given),
        place,
        f"The low water mark {low} is not below the high one {high}.",
        "Entries are evicted from the high mark down to the low one: leave room between them.",
    )
