"""The sections `timeouts` and `limits`, the words of `categories` and `isolation`: how long, how large, what kind, whose session.

Must not: say which limit a tool gets; that is a matter of policy. Enforces the settings of S1/TIMEOUT-002, S1/TIMEOUT-003 (a limit
of zero or less is refused) and S1/LIMIT-001 to S1/LIMIT-003.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

LONGEST_CALL_MS: Final = 3_600_000
"""One hour."""

ToolName = Annotated[str, Meta(min_length=1, max_length=300)]
ToolPattern = Annotated[str, Meta(min_length=1, max_length=300)]
CategoryName = Literal["query", "mutation", "scan", "execution"]
CallMs = Annotated[int, Meta(ge=1, le=LONGEST_CALL_MS)]
ItemCount = Annotated[int, Meta(ge=0, le=10000000)]

Categories = Annotated[
    dict[ToolPattern, CategoryName],
    Meta(
        max_length=1000,
        description="What tools do, by full name (`files.read`) or pattern (`files.read_*`), before what their servers say: `query` and "
        "`scan` only look, quickly or at length; `mutation` changes something; `execution` runs something long. "
        "The name itself counts before any pattern, a longer pattern before a shorter, then the first.",
    ),
]

Isolation = Annotated[
    Literal["shared", "session"] | None,
    Meta(
        description="`session` gives each caller a session of its own with the server (a process of its own, for a `command`), so that the "
        "server can ask it for input; `shared` gives all callers one, and asks nobody. Left out: `shared` for a `command`; "
        "for a `url`, `session` for callers that can be asked something.",
    ),
]


class ToolTimeouts(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Milliseconds a call may take, by the category of its tool."""

    query: Annotated[CallMs, Meta(description="Tools that only look, quickly.")] = 10000
    mutation: Annotated[CallMs, Meta(description="Tools that change something.")] = 30000
    scan: Annotated[CallMs, Meta(description="Tools that only look, at length.")] = 120000
    execution: Annotated[CallMs, Meta(description="Tools that run something long.")] = 1200000


class Timeouts(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How long a caller waits."""

    default_timeout_ms: Annotated[
        int,
        Meta(
            ge=100,
            le=LONGEST_CALL_MS,
            description="Milliseconds a call may take, waiting and connecting included, where nothing is known of its tool.",
        ),
    ] = 30000
    input_timeout_ms: Annotated[
        int,
        Meta(
            ge=1000,
            le=LONGEST_CALL_MS,
            description="Milliseconds one call may wait, in all, for its caller to answer what the server asks; this time does not "
            "count against the call's own limit.",
        ),
    ] = 600000
    tool_timeouts: ToolTimeouts = ToolTimeouts()
    tool_overrides: Annotated[
        dict[ToolName, CallMs],
        Meta(
            max_length=1000,
            description="Milliseconds for single tools, by full name (`files.read`) or, after that, bare name (`read`). "
            "Counts before the category and before the server's `requestTimeoutMs`.",
        ),
    ] = {}


class Limits(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How large things may be, and how many calls there may be at once."""

    max_request_bytes: Annotated[
        int, Meta(ge=1024, le=104857600, description="Bytes of one request from a caller.")
    ] = 10485760
    max_upstream_frame_bytes: Annotated[
        int,
        Meta(
            ge=1024, le=104857600, description="Bytes of one message from a server; a longer one ends its connection."
        ),
    ] = 8388608
    max_array_size: Annotated[ItemCount, Meta(description="Items of one list anywhere in the arguments of a call.")] = (
        100
    )
    tool_array_limits: Annotated[
        dict[ToolName, ItemCount],
        Meta(
            max_length=1000,
            description="The same for single tools, more or less, by full name (`files.read`) or, after that, bare name (`read`).",
        ),
    ] = {}
    max_string_length: Annotated[
        int,
        Meta(ge=1, le=104857600, description="Characters of one text or key anywhere in the arguments of a call."),
    ] = 100000
    max_object_depth: Annotated[
        int,
        Meta(ge=1, le=60, description="Levels of lists and tables in the arguments of a call; they are the first."),
    ] = 10
    max_in_flight: Annotated[
        int, Meta(ge=1, le=100000, description="Calls under way at one time in all, those that wait included.")
    ] = 1000
    max_in_flight_per_server: Annotated[
        int, Meta(ge=1, le=100000, description="Calls one server works on at one time; further ones wait their turn.")
    ] = 100
    max_queued_per_server: Annotated[
        int, Meta(ge=0, le=100000, description="Calls that may wait for one server; further ones are refused at once.")
    ] = 400
