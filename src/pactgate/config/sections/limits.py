"""The sections `timeouts` and `limits`, and the types of `categories` and `isolation`.

Must not: decide which limit a tool gets; the policy package does. Enforces the settings of S1/TIMEOUT-002, S1/TIMEOUT-003 (a limit
of zero or less is refused) and S1/LIMIT-001 to S1/LIMIT-003.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from pactgate.config.sections import Section, doc

LONGEST_CALL_MS: Final = 3_600_000
"""One hour."""

ToolName = Annotated[str, Meta(min_length=1, max_length=300)]
ToolPattern = Annotated[str, Meta(min_length=1, max_length=300)]
CategoryName = Literal["query", "mutation", "scan", "execution"]
CallMs = Annotated[int, Meta(ge=1, le=LONGEST_CALL_MS)]
ItemCount = Annotated[int, Meta(ge=0, le=10000000)]

Categories = Annotated[
    dict[ToolPattern, CategoryName],
    doc(
        "What tools do, by full name (`files.read`) or pattern (`files.read_*`), instead of what their "
        "servers say: `query` (short read), `scan` (long read), `mutation` (changes something), `execution` (runs "
        "something long). An exact name takes precedence over patterns, a longer pattern over a shorter one.",
        max_length=1000,
    ),
]

Isolation = Annotated[
    Literal["shared", "session"] | None,
    doc(
        "`session` gives each client its own session with the server (its own process, for a `command`), so that "
        "the server can ask it for input and list tools for what it offers; `shared` gives all clients one, without input. "
        "Default: `shared` for a `command`; for a `url`, `session` for clients that declare elicitation, sampling or roots."
    ),
]


CATEGORY_TIMEOUTS_MS: Final = {"query": 10_000, "mutation": 30_000, "scan": 120_000, "execution": 1_200_000}
"""For tools whose category the operator or a contract sets."""


class ToolTimeouts(Section, frozen=True, kw_only=True):
    """Milliseconds a call may take, by the category of its tool.

    The defaults hold where `categories` or the definition of a Python tool sets the category. Where only the hints of a server do,
    `requestTimeoutMs` of the server holds, unless the timeout is set here: `readOnlyHint` says nothing about speed.
    """

    query: Annotated[CallMs | None, doc("Short reads. Default: 10000.")] = None
    mutation: Annotated[CallMs | None, doc("Tools that change something. Default: 30000.")] = None
    scan: Annotated[CallMs | None, doc("Long reads. Default: 120000.")] = None
    execution: Annotated[CallMs | None, doc("Tools that run something long. Default: 1200000.")] = None


class Timeouts(Section, frozen=True, kw_only=True):
    """How long a client waits. Time in the queue and for connecting counts."""

    default_timeout_ms: Annotated[
        int, doc("Milliseconds of a call if its tool has no known category.", ge=100, le=LONGEST_CALL_MS)
    ] = 30000
    input_timeout_ms: Annotated[
        int,
        doc(
            "Milliseconds a call may wait for input from its client, not counted in its timeout.",
            ge=1000,
            le=LONGEST_CALL_MS,
        ),
    ] = 600000
    progress_timeout_ms: Annotated[
        CallMs | None,
        doc(
            "With progress of its server, the timeout of a call begins anew with each progress notification, up to so many milliseconds "
            "in all. Default: progress extends no timeout."
        ),
    ] = None
    tool_timeouts: ToolTimeouts = ToolTimeouts()
    tool_overrides: Annotated[
        dict[ToolName, CallMs],
        doc(
            "Milliseconds for single tools, by full name (`files.read`) or bare name (`read`). Takes precedence over "
            "the category and the server's `requestTimeoutMs`.",
            max_length=1000,
        ),
    ] = {}


class Limits(Section, frozen=True, kw_only=True):
    """Maximum sizes, and calls at one time."""

    max_request_bytes: Annotated[int, doc("Bytes of one request from a client.", ge=1024, le=104857600)] = 10485760
    max_upstream_frame_bytes: Annotated[
        int, doc("Bytes of one message from a server; a longer one ends its connection.", ge=1024, le=104857600)
    ] = 8388608
    max_array_size: Annotated[ItemCount, doc("Items of one array anywhere in the arguments of a call.")] = 100
    tool_array_limits: Annotated[
        dict[ToolName, ItemCount],
        doc("The same for single tools, by full name (`files.read`) or bare name (`read`).", max_length=1000),
    ] = {}
    max_string_length: Annotated[
        int, doc("Characters of one string or key anywhere in the arguments of a call.", ge=1, le=104857600)
    ] = 100000
    max_object_depth: Annotated[
        int, doc("Levels of arrays and objects in the arguments of a call, the arguments included.", ge=1, le=60)
    ] = 10
    max_in_flight: Annotated[int, doc("Calls at one time in total, queued ones included.", ge=1, le=100000)] = 1000
    max_in_flight_per_server: Annotated[
        int,
        doc(
            "Calls one server works on at one time; further ones are queued. Where several clients can be told apart "
            "(`auth.tokens`), one of them gets at most three quarters of what the others leave, here and in the queue.",
            ge=1,
            le=100000,
        ),
    ] = 100
    max_queued_per_server: Annotated[
        int, doc("Calls queued for one server; further ones are refused at once.", ge=0, le=100000)
    ] = 400
