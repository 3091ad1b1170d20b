"""The life of one server as a table: which state follows which happening. All of it is here, and nothing else is.

The five states are the requirement document's. Enforces S0/ECO-200 and S0/ECO-201: a happening without a row is a bug
and changes nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pactgate.core.values import ServerStatus


class Happening(StrEnum):
    ATTEMPT_BEGAN = "attempt began"
    CONNECTED = "connected"
    ATTEMPT_FAILED = "attempt failed"
    GAVE_UP = "gave up"
    LOST = "lost"
    STOPPED = "stopped"
    DISABLED = "disabled"
    ENABLED = "enabled"


_S, _H = ServerStatus, Happening

TRANSITIONS: Final[dict[tuple[ServerStatus, Happening], ServerStatus]] = {
    (_S.DISCONNECTED, _H.ATTEMPT_BEGAN): _S.CONNECTING,
    (_S.ERROR, _H.ATTEMPT_BEGAN): _S.CONNECTING,
    (_S.CONNECTING, _H.ATTEMPT_BEGAN): _S.CONNECTING,
    (_S.CONNECTING, _H.CONNECTED): _S.CONNECTED,
    (_S.CONNECTING, _H.ATTEMPT_FAILED): _S.CONNECTING,
    (_S.CONNECTING, _H.GAVE_UP): _S.ERROR,
    (_S.CONNECTED, _H.LOST): _S.DISCONNECTED,
    (_S.DISCONNECTED, _H.STOPPED): _S.DISCONNECTED,
    (_S.CONNECTING, _H.STOPPED): _S.DISCONNECTED,
    (_S.CONNECTED, _H.STOPPED): _S.DISCONNECTED,
    (_S.ERROR, _H.STOPPED): _S.DISCONNECTED,
    (_S.DISCONNECTED, _H.DISABLED): _S.DISABLED,
    (_S.CONNECTING, _H.DISABLED): _S.DISABLED,
    (_S.CONNECTED, _H.DISABLED): _S.DISABLED,
    (_S.ERROR, _H.DISABLED): _S.DISABLED,
    (_S.DISABLED, _H.ENABLED): _S.DISCONNECTED,
}


class IllegalTransition(Exception):  # noqa: N818 - it names what happened
    """The supervisor asked for a step the table does not have."""


def step(status: ServerStatus, happening: Happening) -> ServerStatus:
    try:
        return TRANSITIONS[status, happening]
    except KeyError:
        raise IllegalTransition(f"{status} has no row for {happening}") from None
