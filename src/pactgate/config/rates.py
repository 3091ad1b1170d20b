"""The section `rateLimits`: how often one caller may call.

Must not: say which limit a tool gets; that is a matter of policy. Enforces the settings of S2/MCP-006.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from pactgate.config.bounds import ToolPattern

Rpm = Annotated[int, Meta(ge=1, le=10000, description="Calls of one caller in any 60 seconds.")]
Burst = Annotated[
    int, Meta(ge=1, le=1000, description="Calls of one caller at once; one more becomes possible every 60/rpm seconds.")
]


class ExecutionRate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Tools that run something long, together."""

    rpm: Rpm = 30
    burst: Burst = 5


class MutationRate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Tools that change something, and those nothing is known of, together."""

    rpm: Rpm = 100
    burst: Burst = 20


class ReadRate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Tools that only look, together."""

    rpm: Rpm = 200
    burst: Burst = 50


class ToolRate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The tools one name or pattern means, together, instead of what their category says."""

    rpm: Rpm
    burst: Burst


Rate = ExecutionRate | MutationRate | ReadRate | ToolRate


class RateLimits(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How often one caller may call tools. Callers without a token count as one."""

    enabled: Annotated[bool, Meta(description="Whether there are such limits at all.")] = False
    execution: ExecutionRate = ExecutionRate()
    mutation: MutationRate = MutationRate()
    read: ReadRate = ReadRate()
    tools: Annotated[
        dict[ToolPattern, ToolRate],
        Meta(
            max_length=1000,
            description="Limits of their own, by full name (`files.read`) or pattern (`files.*`), before those of the category. The name "
            "itself counts before any pattern, a longer pattern before a shorter, then the first.",
        ),
    ] = {}
