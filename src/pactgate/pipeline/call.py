"""What the gates know of one tool call while it is on its way.

Must not: decide anything; gates do, and `tool_call` drives them.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

from msgspec import UNSET, Raw

from pactgate.core.context import ExecutionContext
from pactgate.core.values import Tool
from pactgate.pipeline.deadline import Deadline
from pactgate.pipeline.tool_policy import Rulebook, ToolRules
from pactgate.policy.result_cache import Lease
from pactgate.policy.timeouts import ToolTimeout, shortened
from pactgate.protocol.messages import Request
from pactgate.protocol.simple_result import PlainResult, read_plain
from pactgate.protocol.versions import LEGACY
from pactgate.upstreams.dialer import Session

FRAME_BYTES: Final = 40
"""What a JSON-RPC answer has beside its id and its result."""


_NO_META: Final[dict[str, Raw]] = {}


class Call:
    """What the gates know of one call. `members` are the caller's params without `_meta`, each as the bytes it arrived as."""

    bound: ToolRules
    """The rules of its tool, from where the resolve gate has bound one."""

    __slots__ = (
        "arguments",
        "book",
        "bound",
        "caller_limit_ms",
        "ctx",
        "frame_bytes",
        "given",
        "is_answered",
        "is_indirect",
        "is_round",
        "is_sent",
        "is_task",
        "lease",
        "limit",
        "members",
        "meta",
        "params",
        "patience",
        "plain",
        "progress_token",
        "requested",
        "result",
        "sent_at",
        "session",
        "tool",
        "upstream_era",
        "waiting_for",
    )

    def __init__(self, ctx: ExecutionContext, request: Request, book: Rulebook) -> None:
        self.ctx = ctx
        self.params = request.params
        self.given = request.given
        self.frame_bytes = len(request.id) + FRAME_BYTES
        self.book = book
        self.limit: ToolTimeout = book.default_limit
        self.caller_limit_ms: int | None = None
        self.requested = ""
        self.members: dict[str, Raw] = {}
        self.arguments: Any = UNSET
        """The arguments decoded, once somebody has."""
        self.meta: dict[str, Raw] = _NO_META
        self.progress_token: Raw | None = None
        self.tool: Tool | None = None
        self.lease: Lease | None = None
        self.is_answered = False
        self.is_indirect = False
        """Whether the tool was named in the arguments of `tool_invoke`."""
        self.is_sent = False
        self.is_task = False
        self.is_round = False
        """The answer asks its caller for input; what may be said of a result can't be said of it."""
        self.patience: Deadline | None = None
        """Its time limit, from when it first has to wait."""
        self.sent_at: float | None = None
        """When it left, of a call that was begun without waiting."""
        self.session: Session | None = None
        """Where it went, likewise."""
        self.upstream_era = LEGACY
        self.waiting_for: str | None = None
        """The server a name points at, while what it offers is not known yet."""
        self.result = b""
        self.plain: PlainResult | None = None
        """The parts of the result, while it is what its server wrote and of the ordinary shape."""

    def take(self, result: bytes) -> None:
        """What its server answered."""
        self.result = result
        self.plain = read_plain(result)

    def replace(self, result: bytes) -> None:
        """Another result in place of the one that came."""
        self.result = result
        self.plain = None

    def bind(self, tool: Tool) -> None:
        self.tool = tool
        self.bound = rules = self.book.of(tool)
        self.limit = rules.limit if self.caller_limit_ms is None else shortened(rules.limit, self.caller_limit_ms)
        self.ctx.bind(tool)

    def over(self, pending: Awaitable[None]) -> Awaitable[None]:
        """The same to wait for, now under the limit the call has: the default one until its tool is known."""
        limit_ms = self.limit.ms
        if self.patience is None:
            self.patience = Deadline(limit_ms, self.book.input_timeout_ms, self.sent_at)
        elif self.patience.limit_ms != limit_ms:
            self.patience.move(limit_ms)
        return pending

    def has_run_out(self) -> bool:
        """Whether it was its own time limit that ended it."""
        return self.patience is not None and self.patience.ended_it()

    def close(self) -> None:
        """Let go of what would outlive it."""
        if self.patience is not None:
            self.patience.close()
        if self.lease is not None:
            self.lease.decline()  # the first word counts: this is for whatever ended the call without one
