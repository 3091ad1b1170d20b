"""The interfaces of the upstream side: a `Channel` moves frames, a `Receiver` takes what comes in, a `Session` is a connected server,
a `TokenSource` has the token of a sign-in.

A channel knows bytes, processes and sockets but not what a message means. A session knows the protocol but no transport.
Foreign errors leave a channel only as `GatewayFailure` of a transport kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from pactgate.core.failures import GatewayFailure
from pactgate.protocol.versions import Era


class Outgoing(Struct, frozen=True, gc=False):
    """One frame to send. `id` is set for requests only; `name` and `headers` are what a modern HTTP request mirrors into headers."""

    data: bytes
    method: str = ""
    id: int | None = None
    name: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


class OutputLog(Protocol):
    """Takes what a server writes beside its messages. Never waits and never fails."""

    def wrote(self, server: str, lines: Sequence[bytes]) -> None:
        """Whole lines of stderr."""

    def said(self, server: str, params: bytes) -> None:
        """The params of a `notifications/message`."""


class Receiver(Protocol):
    """Takes what a channel brings. Both methods are called on the event loop and must not wait or raise."""

    def receive(self, frame: bytes, for_request: int | None = None) -> bool:
        """One whole frame (JSON text), as it arrived. Whether it is an answer: anything else came unasked.

        `for_request` is the id of the request whose own stream brought it; None where one stream brings everything.
        """

    def lost(self, failure: GatewayFailure) -> None:
        """The channel has ended by itself; nothing will come any more. Called at most once, never after `close`."""


class Channel(Protocol):
    """A way to one server process or endpoint, bounded in every direction."""

    closing_cancels: bool
    """True where ending the exchange tells the server (modern HTTP); otherwise a session says `notifications/cancelled`."""

    answers_in_send: bool
    """True where `send` of a request returns only after its answer was received (Streamable HTTP)."""

    async def open(self, receiver: Receiver) -> None:
        """Spawn or dial. Raises CONNECTION_FAILED with a cause a person can act on. Bounded by the caller's timeout; safe to cancel."""

    def settle(self, era: Era, version: str) -> None:
        """What the negotiation found; from now on frames carry it where the transport has a place for it."""

    async def send(self, frame: Outgoing) -> int | None:
        """Write one frame. Over HTTP a request's `send` lasts until its exchange has ended, and what it brings goes to `receive`.

        Returns how often it was sent, where that was not once. Raises a transport failure; cancelling it abandons the exchange.
        """

    async def close(self) -> None:
        """End it, bounded: afterwards no process, socket or task of this channel is left."""


@runtime_checkable
class ProcessChannel(Protocol):
    """What a channel to a child process of the gateway has beside others."""

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""

    @property
    def sandbox_level(self) -> str | None:
        """How far its declared effects are enforced; None without a declaration, and before the child was started."""


class TokenSource(Protocol):
    """What a channel knows of a sign-in. `upstreams/oauth` has the one there is."""

    @property
    def token(self) -> str:
        """The token to send now; empty: none."""

    async def prepare(self) -> None:
        """Have a token, where there can be one. Raises while the server waits for a sign-in."""

    def answers(self, used: str, header: str) -> bool:
        """Whether a 401 with this challenge is about a sign-in."""

    async def renew(self, used: str) -> None:
        """After a 401: have another token than the one that was used. Raises where only a person can help."""

    async def widen(self, used: str, header: str) -> bool:
        """After a 403: whether there is a token with more scopes now. Raises where a sign-in would give one."""

    def refused(self) -> GatewayFailure:
        """The failure of a request whose fresh token was refused as well."""
