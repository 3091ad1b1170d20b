"""Who calls, what is called, what comes back. Frozen values without behaviour of their own.

Must not: hold connections or tasks; `Caller.channel` is an interface handed in by a frontend.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

from msgspec import UNSET, Struct

from pactgate.core.contract import Contract
from pactgate.core.failures import Reply
from pactgate.core.principal import Principal
from pactgate.core.unanswered import CannotAsk
from pactgate.protocol.headers import HeaderParam
from pactgate.protocol.versions import Era


class CallerChannel(Protocol):
    """The way back to one caller while its request is open."""

    def notify(self, method: str, params: bytes) -> None:
        """Hand over a notification. Never waits and never fails: what can't be delivered within bounds is dropped and counted."""

    @property
    def can_ask(self) -> bool:
        """Whether the caller can be asked anything while its request is open. Modern callers can't: they are answered with a round."""

    def ask(self, method: str, params: bytes) -> Awaitable[bytes]:
        """Send a request to the caller and wait for its result, an object. Raises `Unanswered`; whoever asks bounds the time."""


class Silence(CannotAsk):
    """The channel of a caller that can't be told anything before its answer."""

    def notify(self, method: str, params: bytes) -> None:
        return


class SessionNotifier(Protocol):
    """The way to a legacy caller outside its requests."""

    def notify(self, method: str, params: bytes | None) -> None:
        """Hand over a notification. Never waits and never fails: what can't be delivered within bounds is dropped and counted."""


class Responder(Protocol):
    """Writes the reply to one request."""

    def done(self, reply: Reply | None) -> None:
        """Take the reply, or None when the request was cancelled. Called once."""

    def broken(self) -> None:
        """`done` has failed: answer otherwise, or end the connection."""


VIEW_PATH: Final = "v/"
"""Begins what comes after `/mcp/` on the path of a view."""


def split_path(path: str | None) -> tuple[str | None, str | None]:
    """The server and the view that a path below `/mcp/` names; both are None for `/mcp` itself."""
    if path is not None and path.startswith(VIEW_PATH):
        return None, path.removeprefix(VIEW_PATH)
    return path, None


class ListReader(Protocol):
    """Whoever reads lists: its credentials and its path alone decide what is in them."""

    @property
    def principal(self) -> Principal: ...

    @property
    def scope(self) -> str | None: ...

    @property
    def view(self) -> str | None: ...


class ClientGroup(Protocol):
    """Callers of one endpoint that can be told things outside their requests."""

    def tell(self, method: str, concerns: Callable[[ListReader], bool]) -> None:
        """Tell those whom it concerns. Must not wait or raise."""


class HandleOwner(NamedTuple):
    """Whom a handle belongs to: a task, a page of a result, a cursor. A legacy session keeps its handles to itself."""

    subject: str
    session: str | None = None


class Caller(Struct, frozen=True):
    """`scope` is the server id of `/mcp/{serverId}`, or None for all servers; `view` the name of `/mcp/v/{view}`. `capabilities` are those
    that this request may rely on."""

    principal: Principal
    era: Era
    version: str
    channel: CallerChannel
    scope: str | None = None
    session: str | None = None
    client: str = ""
    capabilities: dict[str, Any] = {}
    headers: Mapping[str, list[str]] | None = None
    """The HTTP headers of a modern request, where mirrored arguments have to be compared; None elsewhere."""
    standing: SessionNotifier | None = None
    """How to tell it something outside its requests; None for modern callers, who listen instead."""
    peer: str = ""
    """The address it calls from, where it calls over a network."""
    view: str | None = None
    trace_parent: str = ""
    """The `traceparent` header of its HTTP request, where it sent one."""
    log_level: str | None = None
    """From which level on a modern request wants log messages; None where it wants none."""

    @property
    def owner(self) -> HandleOwner:
        return HandleOwner(self.principal.key, self.session)


class ServerStatus(StrEnum):
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    ERROR = "error"
    DISABLED = "disabled"


class Entry(Struct, frozen=True):
    """A tool or prompt of one server. `definition` is what the upstream said, `exposed_definition` the same under its exposed name."""

    server: str
    name: str
    full_name: str
    exposed_name: str
    definition: bytes
    exposed_definition: bytes
    digest: str


class Prompt(Entry, frozen=True):
    """One prompt of one server."""


class SchemaCheck(Protocol):
    """What a tool's schema says about arguments or a result; empty means that they fit."""

    def check(self, text: bytes, value: Any = UNSET) -> Sequence[SchemaViolation]:
        """`value` is the decoded text, where the caller has it already."""


class SchemaViolation(Protocol):
    """One thing about a value that does not fit."""

    @property
    def message(self) -> str: ...

    def facts(self) -> dict[str, Any]: ...


class Traits(Struct, frozen=True):
    """What kind of tool it is, and who said so (D10).

    `is_known` is False where the category is the careful guess, `is_hinted` is True where only hints of the server set it.
    """

    category: str = "mutation"
    reason: str = "nothing known: may change things"
    rate_class: str = "mutation"
    is_known: bool = False
    is_hinted: bool = False
    is_read_only: bool = False
    is_idempotent: bool | None = None


class Tool(Entry, frozen=True):
    """One tool of one server."""

    header_params: tuple[HeaderParam, ...] = ()
    input_check: SchemaCheck | None = None
    output_check: SchemaCheck | None = None
    traits: Traits = Traits()
    contract: Contract | None = None
    """What the tool promises, where its server is one of ours."""


class Resource(Struct, frozen=True):
    """A resource or a resource template of one server. `full_uri` leads back to its server and nowhere else."""

    server: str
    uri: str
    full_uri: str
    definition: bytes
    full_definition: bytes
    digest: str
