"""One request on its way to a server, for a caller the server may ask something: what to send, and whose time runs meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Raw

from pactgate.core.values import Caller
from pactgate.policy.state_tokens import Binding
from pactgate.protocol.era_bridge import RESPONSES, STATE
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.notification_router import OnProgress

Headers = tuple[tuple[str, str], ...]


class Patience(Protocol):
    """The time limit of a request."""

    def waiting_for_caller(self) -> AbstractContextManager[None]:
        """While inside, the time for input runs instead of the request's own; may be entered several times at once."""


class Errand:
    """`members` are the params without `_meta`, under the server's own names; `begin` is told the session, and gives headers."""

    __slots__ = (
        "begin",
        "caller",
        "members",
        "meta",
        "method",
        "name",
        "on_asked",
        "on_progress",
        "patience",
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
        patience: Patience,
        begin: Callable[[Session], Headers],
        on_asked: Callable[[], None],
    ) -> None:
        self.caller = caller
        self.server = server
        self.method = method
        self.members = {key: held for key, held in members.items() if key not in (RESPONSES, STATE)}
        self.responses = members.get(RESPONSES)
        self.state = members.get(STATE)
        self.meta = meta
        self.name = name
        self.on_progress = on_progress
        self.patience = patience
        self.begin = begin
        self.on_asked = on_asked
        """Called when the outcome begins to depend on what this caller answers: it concerns nobody else then."""

    def binding(self) -> Binding:
        return Binding(self.caller.subject, self.server, self.method, self.members)
