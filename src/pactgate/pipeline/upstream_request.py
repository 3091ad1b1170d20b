"""One request of a caller to a server: what to send, for whom, and its deadline. Must not: send anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Raw

from pactgate.core.values import Caller
from pactgate.pipeline.deadline import Deadline
from pactgate.policy.state_tokens import StateBinding
from pactgate.protocol.era_bridge import RESPONSES, STATE
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.notification_router import OnProgress

Headers = tuple[tuple[str, str], ...]


def _nothing() -> None:
    return


class UpstreamRequest:
    """`members` are the params without `_meta`, under the server's own names; `on_send` is told the session, and gives headers."""

    __slots__ = (
        "caller",
        "deadline",
        "is_continuation",
        "members",
        "meta",
        "method",
        "name",
        "on_asked",
        "on_progress",
        "on_send",
        "responses",
        "server",
        "state",
    )

    def __init__(
        self,
        caller: Caller,
        server: str,
        method: str,
        members: dict[str, Raw],
        *,
        meta: Mapping[str, Raw],
        name: str | None,
        on_progress: OnProgress | None,
        deadline: Deadline,
        on_send: Callable[[Session], Headers],
        on_asked: Callable[[], None] = _nothing,
    ) -> None:
        self.caller = caller
        self.server = server
        self.method = method
        self.responses = members.get(RESPONSES)
        self.state = members.get(STATE)
        self.is_continuation = self.responses is not None or self.state is not None
        """Whether the caller comes back with answers to an input-required result."""
        if self.is_continuation:
            members = {key: held for key, held in members.items() if key not in (RESPONSES, STATE)}
        self.members = members
        self.meta = meta
        self.name = name
        self.on_progress = on_progress
        self.deadline = deadline
        self.on_send = on_send
        self.on_asked = on_asked
        """Called when the outcome begins to depend on what this caller answers: it concerns nobody else then."""

    def binding(self) -> StateBinding:
        return StateBinding(self.caller.principal.key, self.server, self.method, self.members)
