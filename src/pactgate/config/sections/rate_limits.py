"""The section `rateLimits`: how often one caller may call.

Must not: say which limit a tool gets; that is a matter of policy. Enforces the settings of S2/MCP-006.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from pactgate.config.sections.limits import ToolPattern

Rpm = Annotated[int, Meta(ge=1, le=10000, description="Calls of one caller to one tool in any 60 seconds.")]
Burst = Annotated[
    int,
    Meta(
        ge=1,
        le=1000,
        description="Calls of one caller to one tool at once; one more becomes possible every 60/rpm seconds.",
    ),
]


class ExecutionRate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Each tool that runs something long."""

    rpm: Rpm = 30
    burst: Burst = 5


class MutationRate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Each tool that changes something, or of which nothing is known."""

    rpm: Rpm = 100
    burst: Burst = 20


class ReadRate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Each tool that only looks."""

    rpm: Rpm = 200
    burst: Burst = 50


class ToolRate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Each tool a name or pattern means, instead of what its category says."""

    rpm: Rpm
    burst: Burst


Rate = ExecutionRate | MutationRate | ReadRate | ToolRate


class RateLimits(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How often one caller may call a tool. Callers without a token count as one."""

    enabled: Annotated[bool, Meta(description="Whether there are such limits at all.")] = True
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
