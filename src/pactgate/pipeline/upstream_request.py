"""One request of a caller to a server: what to send, for whom, and its deadline. Must not: send anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from msgspec import UNSET, Raw, Struct

from pactgate.core.context import ExecutionContext
from pactgate.core.values import Caller
from pactgate.pipeline.deadline import Deadline
from pactgate.policy.state_tokens import StateBinding
from pactgate.protocol.era_bridge import RESPONSES, STATE
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.notification_router import OnProgress

Headers = tuple[tuple[str, str], ...]


def _nothing() -> None:
    return


class UpstreamRequest(Struct, eq=False):
    """`members` are the params without `_meta`, under the server's own names; `on_send` is told the session, and gives headers."""

    ctx: ExecutionContext
    caller: Caller
    server: str
    method: str
    members: dict[str, Raw]
    meta: Mapping[str, Raw]
    name: str | None
    on_progress: OnProgress | None
    deadline: Deadline
    on_send: Callable[[Session], Headers]
    on_asked: Callable[[], None] = _nothing
    """Called when the outcome begins to depend on what this caller answers: it concerns nobody else then."""
    responses: Raw | None = None
    state: Raw | None = None
    is_continuation: bool = False
    """Whether the caller comes back with answers to an input-required result."""
    session: Session = cast("Session", UNSET)
    """Where it was sent last."""
    is_bridged: bool = False
    """Whether whatever its server asks is seen to while it runs."""
    is_input_required: bool = False
    """Whether the answer is an input-required result for a modern caller."""

    def __post_init__(self) -> None:
        members = self.members
        if RESPONSES in members or STATE in members:
            self.is_continuation = True
            self.responses, self.state = members.get(RESPONSES), members.get(STATE)
            self.members = {key: held for key, held in members.items() if key not in (RESPONSES, STATE)}

    def binding(self) -> StateBinding:
        return StateBinding(self.caller.principal.key, self.server, self.method, self.members)
