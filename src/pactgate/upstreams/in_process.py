"""A `Channel` to a server that lives inside the gateway: REST endpoints, and the gateway's own tools.

Such a server is a modern one without a wire: it lists tools and runs them. Everything above it (names, gates, lists, failures) is what any
upstream gets. Must not: hold state of a call, or let an error of the server leave as anything but a failure or a refusal.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any, Final, Protocol

from msgspec import Raw

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import METHOD_NOT_FOUND, Request, encode_json
from pactgate.protocol.versions import MODERN_VERSIONS, Era
from pactgate.upstreams.channel import Outgoing, Receiver

CURRENT_CALL: Final[ContextVar[ExecutionContext]] = ContextVar("UNDER_WAY")
"""The request an inside server is running a tool for: whose it is, and under which id it is recorded."""


class InProcessServer(Protocol):
    """Tools that need no process and no MCP connection."""

    info: dict[str, Any]
    """`name` and `version`, as a server says them of itself."""

    def definitions(self) -> list[Raw]:
        """The tools, each as an encoded definition; asked for when the lists are."""

    async def call(self, name: str, params: dict[str, Raw]) -> bytes:
        """Run one tool; the encoded result, without era members. Raises `GatewayFailure`; cancelling it ends the work.

        `params` are the members of the request: `name`, `arguments`, and whatever else was sent.
        """

    async def close(self) -> None:
        """Release what the server holds."""


class InProcessChannel:
    """Answers within `send`, on the loop it is called on."""

    closing_cancels = True
    answers_in_send = True

    def __init__(self, server_id: str, server: InProcessServer) -> None:
        self._server_id = server_id
        self._server = server
        self._receiver: Receiver | None = None
        self._has_ended = asyncio.Event()

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def settle(self, era: Era, version: str) -> None:
        return

    async def send(self, frame: Outgoing) -> None:
        if frame.id is None or self._receiver is None:
            return
        request = messages.decode(frame.data)
        assert isinstance(request, Request), "a frame with an id is a request of ours"
        if request.method == "tools/call":
            params = messages.members(request.params or b"{}")
            result = await self._server.call(messages.value(params["name"]), params)
        elif request.method == "tools/list":
            result = encode_json({"tools": self._server.definitions(), "resultType": "complete"})
        elif request.method == "server/discover":
            result = self._about()
        elif request.method == modern.LISTEN:
            await self._be_listened_to(frame.id)
            return
        else:
            why = f"{self._server_id} has tools and nothing else"
            self._receiver.receive(messages.encode_error(request.id, METHOD_NOT_FOUND, why))
            return
        self._receiver.receive(messages.encode_result(request.id, result))

    async def close(self) -> None:
        self._receiver = None
        self._has_ended.set()
        await self._server.close()

    def changed(self) -> None:
        """The server's tools are not what they were: whoever listed them should ask again."""
        if self._receiver is not None:
            self._receiver.receive(messages.encode_notification("notifications/tools/list_changed"))

    def lost(self, failure: GatewayFailure) -> None:
        """The server can't go on: the connection ends with this reason."""
        receiver, self._receiver = self._receiver, None
        self._has_ended.set()
        if receiver is not None:
            receiver.lost(failure)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What the server could have offered and does not, each with the reason; most servers have nothing of the kind."""
        return getattr(self._server, "left_out", ())

    async def _be_listened_to(self, id_: int) -> None:
        """Lasts until whoever listens, or the connection, ends it. What changes is told as `changed`."""
        assert self._receiver is not None
        said = {"_meta": {modern.SUBSCRIPTION_ID_KEY: id_}, "notifications": {"toolsListChanged": True}}
        self._receiver.receive(messages.encode_notification(modern.ACKNOWLEDGED, encode_json(said)), id_)
        await self._has_ended.wait()

    def _about(self) -> bytes:
        return encode_json(
            {
                "resultType": "complete",
                "supportedVersions": list(MODERN_VERSIONS),
                "capabilities": {"tools": {"listChanged": True}},
                "_meta": {modern.SERVER_INFO_KEY: self._server.info},
            }
        )


def unknown_tool(server: str, name: str) -> GatewayFailure:
    """For a server asked for a tool it does not have: its list has changed since."""
    return GatewayFailure(Kind.UNKNOWN_TOOL, f"{server} has no tool {name!r} any more.", server=server)
