"""The legacy era's session: opened by `initialize`, ended by its owner, and in between a small table of what may come when.

`step` is the table and only judges order; `read_initialize` judges what the opening says. Whoever owns a session takes the
new phase only after it accepted the message. Must not: know sockets, session ids or clocks.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.protocol import messages
from pactgate.protocol.messages import Notification, Rejection, Request
from pactgate.protocol.modern import read_client

INITIALIZE: Final = "initialize"
INITIALIZED: Final = "notifications/initialized"
PING: Final = "ping"


class Phase(StrEnum):
    NEW = "new"
    INITIALIZING = "initializing"
    READY = "ready"
    CLOSED = "closed"


OPEN: Final = (Phase.READY, Phase.INITIALIZING)
"""Here any request but another handshake is admitted and changes nothing, so that `step` need not be asked."""


class LegacyStep(Struct, frozen=True):
    """The phase after the message, and why it was refused if it was. A refused notification is dropped, not answered."""

    phase: Phase
    rejection: Rejection | None = None


_INTO: Final = {phase: LegacyStep(phase) for phase in Phase}


class InitializeParams(Struct, frozen=True):
    """What a legacy client says of itself. `client` is a name to show, nothing to rely on."""

    version: str
    client: str
    capabilities: dict[str, Any]


class _Opening(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any]
    client_info: Raw


class _ClientInfo(Struct):
    name: str


_opening: Final = msgspec.json.Decoder(_Opening)
_client_info: Final = msgspec.json.Decoder(_ClientInfo)


def step(phase: Phase, message: Request | Notification) -> LegacyStep:
    """Requests after `initialize` are served before `notifications/initialized` too: clients in the wild don't wait."""
    if phase is Phase.CLOSED:
        return _refused(phase, message, "The session is closed.")
    if message.method == INITIALIZE:
        if phase is not Phase.NEW or isinstance(message, Notification):
            return _refused(phase, message, "initialize opens a session once, as a request.")
        return _INTO[Phase.INITIALIZING]
    if phase is Phase.NEW:
        if message.method == PING:
            return _INTO[phase]
        return _refused(phase, message, "The session is not open: send initialize first.")
    return _INTO[Phase.READY if message.method == INITIALIZED else phase]


def read_initialize(request: Request) -> InitializeParams | Rejection:
    try:
        opening = _opening.decode(request.params or b"{}")
        _client_info.decode(opening.client_info)
    except msgspec.ValidationError as problem:
        return Rejection(messages.INVALID_PARAMS, f"The params of initialize are not valid: {problem}.", request.id)
    return InitializeParams(opening.protocol_version, read_client(opening.client_info), opening.capabilities)


def _refused(phase: Phase, message: Request | Notification, why: str) -> LegacyStep:
    echo = message.id if isinstance(message, Request) else None
    return LegacyStep(phase, Rejection(messages.INVALID_REQUEST, why, echo))
