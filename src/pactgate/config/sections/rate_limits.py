"""The section `rateLimits`: how often one client may call.

Must not: decide which limit a tool gets; the policy package does. Enforces the settings of S2/MCP-006.
"""

from __future__ import annotations

from typing import Annotated

from pactgate.config.sections import Section, doc
from pactgate.config.sections.limits import ToolPattern

Rpm = Annotated[int, doc("Calls of one client to one tool in any 60 seconds.", ge=1, le=10000)]
Burst = Annotated[
    int, doc("Calls of one client to one tool at once; one more is allowed every 60/rpm seconds.", ge=1, le=1000)
]


class ExecutionRate(Section, frozen=True, kw_only=True):
    """Each tool that runs something long."""

    rpm: Rpm = 30
    burst: Burst = 5


class MutationRate(Section, frozen=True, kw_only=True):
    """Each tool that changes something or has no known category."""

    rpm: Rpm = 100
    burst: Burst = 20


class ReadRate(Section, frozen=True, kw_only=True):
    """Each tool that only reads."""

    rpm: Rpm = 200
    burst: Burst = 50


class ToolRate(Section, frozen=True, kw_only=True):
    """Each tool a name or pattern matches, instead of the limits of its category."""

    rpm: Rpm
    burst: Burst


class RequestRate(Section, frozen=True, kw_only=True):
    """Everything but tool calls, each kind by itself: reads of resources, prompts, completions, subscriptions, tasks, extensions."""

    rpm: Annotated[int, doc("Requests of one kind of one client in any 60 seconds.", ge=1, le=100000)] = 600
    burst: Annotated[
        int,
        doc("Requests of one kind of one client at once; one more is allowed every 60/rpm seconds.", ge=1, le=10000),
    ] = 200


Rate = ExecutionRate | MutationRate | ReadRate | ToolRate | RequestRate


class RateLimits(Section, frozen=True, kw_only=True):
    """How often one client may call a tool, or request anything else. Clients without a token count as one."""

    enabled: Annotated[bool, doc("Whether calls and other requests are rate limited.")] = True
    execution: ExecutionRate = ExecutionRate()
    mutation: MutationRate = MutationRate()
    read: ReadRate = ReadRate()
    requests: RequestRate = RequestRate()
    tools: Annotated[
        dict[ToolPattern, ToolRate],
        doc(
            "Limits by full name (`files.read`) or pattern (`files.*`), instead of those of the category. An exact "
            "name takes precedence over patterns, a longer pattern over a shorter one.",
            max_length=1000,
        ),
    ] = {}
