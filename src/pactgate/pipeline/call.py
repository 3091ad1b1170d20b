"""The state of one tool call, which the gates share.

Must not: decide anything. The gates decide, and `tool_call` runs them.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, cast

from msgspec import UNSET, Raw, Struct, field

from pactgate.catalog.search_surface import SearchSurface
from pactgate.core.context import CLIENT, ExecutionContext
from pactgate.core.values import Tool
from pactgate.pipeline.deadline import Deadline, TimeoutQueue
from pactgate.pipeline.tool_policy import PolicyTable, ToolPolicy
from pactgate.policy.permissions.rules import Grant
from pactgate.policy.result_cache import LeaderTicket
from pactgate.policy.timeouts import ToolTimeout, shortened
from pactgate.protocol.messages import Request, Response
from pactgate.protocol.simple_result import SimpleResult, encode_simple, read_simple, size_of
from pactgate.protocol.versions import LEGACY, Era
from pactgate.upstreams.dialer import Session

FRAME_BYTES: Final = 40
"""What a JSON-RPC answer has beside its id and its result."""


class Call(Struct, eq=False):
    """The state of one call. `members` are the caller's params without `_meta`, each as the bytes it arrived as."""

    ctx: ExecutionContext
    request: Request
    policies: PolicyTable
    timeouts: TimeoutQueue
    limit: ToolTimeout
    """That of its tool and its caller; the default until the tool is known."""
    policy: ToolPolicy = cast("ToolPolicy", UNSET)
    """The policy of its tool, from where the resolve gate has bound one."""
    session: Session = cast("Session", UNSET)
    """Where the answer came from, if it is not of the ordinary shape."""
    caller_limit_ms: int | None = None
    requested: str = ""
    members: dict[str, Raw] = field(default_factory=dict)
    arguments: Any = UNSET
    """The arguments decoded, once somebody has."""
    meta: dict[str, Raw] = field(default_factory=dict)
    progress_token: Raw | None = None
    tool: Tool | None = None
    ticket: LeaderTicket | None = None
    is_answered: bool = False
    """Answered from the cache."""
    grant: Grant | None = None
    """What lets its caller call the tool; None where no permissions are configured, and for tools of the gateway itself."""
    outer: Tool | None = None
    """The tool that was called, where it names another one in its arguments."""
    fixed: frozenset[str] = frozenset()
    """The arguments that a view has put in."""
    search: SearchSurface | None = None
    """Where its caller sees a search surface: what answers for it."""
    is_sent: bool = False
    is_task: bool = False
    is_input_required: bool = False
    """The answer asks its caller for input; what may be said of a result can't be said of it."""
    deadline: Deadline | None = None
    """Its time limit, from when it first has to wait."""
    upstream_era: Era = LEGACY
    waiting_for: str | None = None
    """The server a name points at, while what it offers is not known yet."""
    _result: bytes | None = b""
    simple: SimpleResult | None = None
    """The parts of the result, while it is of the ordinary shape."""

    @property
    def result(self) -> bytes:
        if self._result is None:
            assert self.simple is not None, "a result is there as bytes or in its parts"
            self._result = encode_simple(self.simple)
        return self._result

    @property
    def result_bytes(self) -> int:
        """How large the result is, at most."""
        return size_of(self.simple) if self._result is None and self.simple is not None else len(self.result)

    def take(self, response: Response) -> None:
        """Take the answer of the server as the result."""
        if response.attempts > 1:
            self.ctx.observed += b'"attempts":%d,' % response.attempts
        if response.simple is not None:
            self._result, self.simple = None, response.simple
        else:
            self.replace(response.result)

    def replace(self, result: bytes) -> None:
        """Replace the result by another one."""
        self._result = result
        self.simple = read_simple(result)

    def finish(self, result: bytes) -> None:
        """Set the bytes that go out as the result."""
        self._result = result

    def bind(self, tool: Tool, grant: Grant | None) -> None:
        self.tool = tool
        self.grant = grant
        self.policy = policy = self.policies.of(tool)
        self.limit = policy.limit if self.caller_limit_ms is None else shortened(policy.limit, self.caller_limit_ms)
        self.ctx.bind(tool)

    def with_deadline(self, pending: Awaitable[None]) -> Awaitable[None]:
        """Start or move the deadline of the call to its present limit (the default until the tool is known), and return `pending`."""
        if self.deadline is None:
            self.deadline = self.timeouts.begin(self.ctx.interrupt, self.limit.ms, self.policies.input_timeout_ms)
        else:
            self.deadline.move(self.limit.ms)
        return pending

    @property
    def has_timed_out(self) -> bool:
        return self.deadline is not None and self.deadline.has_expired

    def release_ticket(self) -> None:
        """The outcome is for nobody else. Only the first report of a ticket counts."""
        if self.ticket is not None:
            self.ticket.release()

    def close(self) -> None:
        """Let go of what would outlive it, and of what may be large: a frame or an exception may hold the call itself for longer."""
        self.arguments = UNSET
        self.members = {}
        if self.deadline is not None:
            self.deadline.close()
            if self.deadline.client_s:
                self.ctx.note_wait(CLIENT, self.deadline.client_s)
        if self.ticket is not None:
            self.ticket.release()  # for whatever ended the call without a word about it
